"""What made an artifact: the version of numtok, its commit, the libraries.

None of it is part of an artifact's version: two library versions may well give
the same bytes, and where they do not, this is how one finds out why.
"""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from numtok.version import __version__

# The installed ones of these are recorded: each can change the bytes of an artifact.
_LIBRARIES = (
    *("coco-experiment", "msgspec", "numba", "numcodecs", "numpy", "openml", "peft", "polars"),
    *("pyarrow", "rebound", "safetensors", "tokenizers", "torch", "transformers", "xarray", "zarr"),
)


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``git_commit`` and ``git_dirty`` are None unless numtok runs from its own git checkout."""

    numtok: str
    git_commit: str | None
    git_dirty: bool | None
    libraries: dict[str, str]


@cache
def provenance() -> Provenance:
    """Of this process; never fails, whatever is or is not installed."""
    commit = _git("rev-parse", "HEAD")
    changed = None if commit is None else _git("status", "--porcelain", "--untracked-files=no")
    return Provenance(
        numtok=__version__,
        git_commit=commit,
        git_dirty=None if changed is None else changed != "",
        libraries=libraries(),
    )


def libraries() -> dict[str, str]:
    """The versions of Python and of the installed libraries that can change what is made."""
    found = {name: installed(name) for name in _LIBRARIES}
    return {"python": platform.python_version()} | {
        name: version for name, version in found.items() if version is not None
    }


def installed(name: str) -> str | None:
    """The installed version of a distribution, without importing it; None if it is absent."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    source = Path(__file__).parents[2]
    # Installed below some other project's checkout, numtok must not record that one's commit.
    if not (source / ".git").exists():
        return None
    # Variables such as GIT_DIR, set inside git's own hooks, would point at another repository.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(source), *arguments]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()
