"""Provenance of artifacts: the version and commit of numtok, and the versions of libraries.

Provenance is not part of an artifact's version, because different library versions usually give the
same bytes. If they do not, the provenance explains the difference.
"""

import os
import platform
import re
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import msgspec

from numtok.version import __version__

# Recorded if installed, because each can change the bytes of an artifact.
_LIBRARIES = (
    *("coco-experiment", "msgspec", "numba", "numcodecs", "numpy", "openml", "peft", "polars"),
    *("pyarrow", "rebound", "safetensors", "tokenizers", "torch", "transformers", "xarray", "zarr"),
)


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Versions of numtok and its libraries with which an artifact was made.

    ``git_commit`` and ``git_dirty`` are None unless numtok runs from its own git checkout.
    """

    numtok: str
    git_commit: str | None
    git_dirty: bool | None
    libraries: dict[str, str]


@cache
def provenance() -> Provenance:
    """Return the provenance for artifacts that this process makes. Never raises an exception."""
    commit = _git("rev-parse", "HEAD")
    changed = None if commit is None else _git("status", "--porcelain", "--untracked-files=no")
    return Provenance(
        numtok=__version__,
        git_commit=commit,
        git_dirty=None if changed is None else changed != "",
        libraries=libraries(),
    )


def libraries() -> dict[str, str]:
    """Return the versions of Python and of the installed libraries that can affect artifacts, keyed
    by name."""
    versions = {name: installed(name) for name in _LIBRARIES}
    return {"python": platform.python_version()} | {
        name: version for name, version in versions.items() if version is not None
    }


def installed(name: str) -> str | None:
    """Return the version of an installed distribution, or None if it is not installed. Nothing is
    imported."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    # Its property ``version`` parses the whole file, with the package's README.
    metadata = found.read_text("METADATA") or ""
    version = re.search(r"^Version: (.+)$", metadata, re.M)
    return found.version if version is None else version[1]


def _git(*arguments: str) -> str | None:
    source = Path(__file__).parents[2]
    # If installed inside another project's checkout, do not record that project's commit.
    if not (source / ".git").exists():
        return None
    # Variables such as GIT_DIR, set in git hooks, may point to another repository.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(source), *arguments]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()
