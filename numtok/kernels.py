"""numba, set up once: where compiled kernels are kept.

Compiling takes seconds, loading a compiled kernel milliseconds, so the result
is cached in a folder of the user's (``$NUMBA_CACHE_DIR``, else
``$XDG_CACHE_HOME/numtok`` or ``~/.cache/numtok``), else in a private folder
under the temporary directory, else nowhere, with one note on stderr. numba
alone looks beside the source file first and raises where nothing is writable.

The folder carries a digest of every source file that defines kernels, because
numba itself does not notice that a kernel inlined from another file changed.
"""

import hashlib
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numba.core.config
from numba import types

_PACKAGE = Path(__file__).parent
_MARK = b"from numtok.kernels import"


def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        content = path.read_bytes()
        if _MARK in content or path.name == "kernels.py":
            digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + content)
    return digest.hexdigest()[:16]


def _candidates() -> list[Path]:
    """Folders to try, best first; the last is private to this user."""
    places = []
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        places.append(Path(chosen))
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        places.append((Path(cache) if cache else Path.home() / ".cache") / "numtok")
    except RuntimeError:  # no home directory is known for this user
        pass
    places.append(Path(tempfile.gettempdir()) / f"numtok-{os.getuid()}")
    return places


def _usable(folder: Path) -> bool:
    """True if files can be made in ``folder`` and nobody else can write there.

    numba's index is a pickle, so a folder that another user may write to is a
    way to run code as this one: such a folder is never used.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022:
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _choose() -> Path | None:
    digest = _sources_digest()
    places = _candidates()
    for place in places:
        if _usable(place) and _usable(place / digest):
            return place / digest
    if multiprocessing.parent_process() is None:
        print(
            "numtok: note: compiled kernels cannot be kept, so each start compiles them again; "
            f"no folder among {', '.join(map(str, places))} is writable and private; "
            "set NUMBA_CACHE_DIR to one that is",
            file=sys.stderr,
        )
    return None


_folder = _choose()
if _folder is not None:
    numba.core.config.CACHE_DIR = str(_folder)


def reads(dtype: Any) -> Any:
    """The type of a contiguous array that a kernel only reads (Arrow's buffers are read-only)."""
    return types.Array(dtype, 1, "C", readonly=True)


def writes(dtype: Any) -> Any:
    """The type of a contiguous array that a kernel writes."""
    return types.Array(dtype, 1, "C")


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function for one signature when its module is imported, cached.

    Kernels trust their callers: no bounds are checked, so shapes are checked
    before the call. They release the GIL.
    """
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = numba.njit(
        signature, cache=_folder is not None, nogil=True, error_model="numpy"
    )
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only kernels call; compiled into each of them."""
    compiled: Callable[..., Any] = numba.njit(inline="never", nogil=True, error_model="numpy")(
        function
    )
    return compiled
