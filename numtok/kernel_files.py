"""Files of compiled kernels: the folder that keeps them, and their names.

The cache is in one of the user's folders (``$NUMBA_CACHE_DIR``, or else ``$XDG_CACHE_HOME/numtok``
or ``~/.cache/numtok``), or in a private folder under the temporary directory. If none of these is
usable, a note is printed to stderr and nothing is cached.

The name of a file contains a digest of everything compiled into the kernel: its bytecode, the
bytecode of the functions that it calls, the values of the globals that they read, the processor,
and the versions of the compiler. A file begins with the sha256 of the rest, so a damaged one is
discarded and rewritten.
"""

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import EnumMeta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np

from numtok.kernel_types import ScalarType, Signature

_DIGEST = hashlib.sha256().digest_size


class Compilable:
    """A function that kernels call: what is compiled, and how."""

    function: Callable[..., Any]
    options: Mapping[str, Any]


def name_of(function: Callable[..., Any], signature: Signature, options: object) -> str:
    """Return the file name of a kernel."""
    digest = hashlib.sha256(f"{_versions()} {options} {signature}".encode())
    _add(digest, function, set())
    return f"{function.__name__.strip('_')}-{digest.hexdigest()[:16]}"


@cache
def _versions() -> str:
    """Return the compiler, which includes the file that calls numba, and the processor."""
    numba = find_spec("numba")
    assert numba is not None and numba.origin is not None
    # numba's version, read from its file: importlib.metadata takes as long as llvmlite to import.
    compiler = Path(numba.origin).with_name("_version.py").read_bytes()
    compiler += Path(__file__).with_name("kernel_numba.py").read_bytes()
    features = llvm.get_host_cpu_features().flatten()
    return (
        f"{llvm.llvm_version_info} {np.__version__} "
        f"{sys.implementation.cache_tag} {llvm.get_host_cpu_name()} {features} "
        f"{hashlib.sha256(compiler).hexdigest()}"
    )


def _add(digest: Any, value: Any, visited: set[Callable[..., Any]]) -> None:
    """Add a value that compiled code refers to. A function is added once, with everything it refers
    to."""
    if isinstance(value, Compilable):
        digest.update(repr(sorted(value.options.items())).encode())
        value = value.function
    digest.update(f"\0{type(value).__name__} ".encode())
    if isinstance(value, FunctionType):
        if value not in visited:
            visited.add(value)
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            _add(digest, (value.__defaults__, *cells), visited)
            _add_code(digest, value.__code__, value.__globals__, visited)
    elif isinstance(value, tuple):
        for item in value:
            _add(digest, item, visited)
        digest.update(b"\0end")
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape} ".encode() + value.tobytes())
    elif isinstance(value, int | float | str | bytes | None | np.generic | ScalarType):
        digest.update(repr(value).encode())
    elif isinstance(value, BuiltinFunctionType | type) and not issubclass(type(value), EnumMeta):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    elif isinstance(value, ModuleType) and value.__name__.partition(".")[0] != "numtok":
        digest.update(f"{value.__name__} {getattr(value, '__version__', '')}".encode())
    else:
        raise TypeError(
            f"a kernel cannot refer to {value!r}, which its cache key cannot cover. Refer to a "
            "number, an array, a tuple or a function"
        )


def _add_code(
    digest: Any, code: CodeType, names: Mapping[str, Any], visited: set[Callable[..., Any]]
) -> None:
    """Add bytecode, its constants, and the globals that it uses."""
    digest.update(code.co_code + repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add_code(digest, constant, names, visited)
        else:
            _add(digest, constant, visited)
    for name in code.co_names:
        if name in names:
            _add(digest, names[name], visited)


def _candidates() -> list[Path]:
    """Return the folders to try, best first; the last one is private to this user."""
    places = []
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        places.append(Path(chosen))
    with suppress(RuntimeError):  # no home directory is known for this user
        cache = os.environ.get("XDG_CACHE_HOME")
        places.append((Path(cache) if cache else Path.home() / ".cache") / "numtok")
    with suppress(FileNotFoundError):  # no temporary directory is writable
        places.append(Path(tempfile.gettempdir()) / f"numtok-{os.getuid()}")
    return places


def _private(folder: Path) -> Path | None:
    """Return the real path of ``folder``, which is created if needed; None unless only this user
    can write.

    Kernels are code. In a folder that another user can write to or replace, that user could run
    code as this user, so such a folder is never used. Permissions are checked without
    creating test files, which a killed process would leave behind.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.lstat().st_uid not in (0, os.getuid()):  # a link that its owner could change
            return None
        real = folder.resolve(strict=True)
        status = real.stat()
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        for parent in real.parents:
            if parent.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
                return None
        return real if os.access(real, os.W_OK | os.X_OK) else None
    except (OSError, RuntimeError):  # RuntimeError: circular links, before Python 3.13
        return None


@cache
def _note(reason: str) -> None:
    """Print once that kernels cannot be cached. Spawned workers print nothing, because their parent
    does."""
    import multiprocessing  # takes as long as loading all kernels of a command

    if multiprocessing.parent_process() is None:
        print(
            "numtok: note: compiled kernels cannot be cached, so every start compiles them again: "
            f"{reason}. Set NUMBA_CACHE_DIR to a private, writable folder",
            file=sys.stderr,
        )


@cache
def folder() -> Path | None:
    """Return the folder that keeps compiled kernels, or None if every candidate is unusable."""
    places = _candidates()
    for candidate in places:
        if (real := _private(candidate)) and (kernels := _private(real / "kernels")):
            return kernels
    _note(f"no folder among {', '.join(map(str, places))} is writable and private")
    return None


def read(name: str) -> bytes | None:
    """Return the object code in a file, or None if the file is absent or damaged."""
    if (kept := folder()) is None:
        return None
    try:
        data = (kept / name).read_bytes()
    except OSError:
        return None
    code = data[_DIGEST:]
    return code if hashlib.sha256(code).digest() == data[:_DIGEST] else None


def write(name: str, code: bytes) -> None:
    """Keep the object code of a kernel. A full disk costs a note, not the run."""
    if (kept := folder()) is None:
        return
    try:
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)  # removed since it was chosen
        with tempfile.NamedTemporaryFile(dir=kept, prefix=".", delete=False) as file:
            try:
                file.write(hashlib.sha256(code).digest() + code)
                file.close()
                os.replace(file.name, kept / name)
            except OSError:
                os.unlink(file.name)
                raise
    except OSError:
        _note(f"the folder {kept} is no longer readable and writable")
