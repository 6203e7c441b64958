"""Compiles functions with numba and caches the compiled kernels.

Compiling a kernel takes seconds, and loading a compiled one takes milliseconds. The cache is in one
of the user's folders (``$NUMBA_CACHE_DIR``, or else ``$XDG_CACHE_HOME/numtok`` or
``~/.cache/numtok``), or in a private folder under the temporary directory. If none of these is
usable, a note is printed to stderr and nothing is cached. By default, numba would first look next
to the source file, and would fail if no folder is writable, if a cached file is damaged, or if the
disk is full.

Each kernel has a subfolder named after a digest of everything compiled into it: its bytecode, the
bytecode of the functions that it calls, and the values of the globals that they read. numba itself
only notices changes to the kernel's own file.
"""

import hashlib
import multiprocessing
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import EnumMeta
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numba.core.caching
import numba.core.config
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.extending import intrinsic

from numtok.errors import UsageError

S = TypeVar("S", bound=tuple[Any, ...])
_OPTIONS: Any = {"nogil": True, "error_model": "numpy"}
_NUMBA_CONFIG: Any = numba.core.config
_intrinsic: Any = intrinsic  # numba's annotation has the wrong arguments
_NUMBA_CACHE: Any = numba.core.caching.FunctionCache

if _NUMBA_CONFIG.DISABLE_JIT:
    raise UsageError("numtok needs numba's compiler (NUMBA_DISABLE_JIT=1). Unset NUMBA_DISABLE_JIT")


def _key(function: Callable[..., Any]) -> str:
    """Return a digest of everything that is compiled into a kernel."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {_OPTIONS}".encode())
    _add(digest, function, set())
    return digest.hexdigest()[:16]


def _add(digest: Any, value: Any, visited: set[Callable[..., Any]]) -> None:
    """Add a value that compiled code refers to. A function is added once, with everything it refers
    to."""
    if isinstance(value, Dispatcher):
        digest.update(repr(sorted(value.targetoptions.items())).encode())
        value = value.py_func
    elif isinstance(value, _Intrinsic):
        value = value._defn
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
    elif isinstance(value, int | float | str | bytes | None | np.generic | types.Type):
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

    numba's index is a pickle. In a folder that another user can write to or replace, that user
    could run code as this user, so such a folder is never used. Permissions are checked without
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


def _note(reason: str) -> None:
    """Print once that kernels cannot be cached. Spawned workers print nothing, because their parent
    does."""
    if multiprocessing.parent_process() is None:
        print(
            "numtok: note: compiled kernels cannot be cached, so every start compiles them again: "
            f"{reason}. Set NUMBA_CACHE_DIR to a private, writable folder",
            file=sys.stderr,
        )


def _choose() -> Path | None:
    places = _candidates()
    for candidate in places:
        if (real := _private(candidate)) and (folder := _private(real / "kernels")):
            return folder
    _note(f"no folder among {', '.join(map(str, places))} is writable and private")
    return None


_folder = _choose()


def reads(dtype: Any) -> Any:
    """Return the numba type of a contiguous array that a kernel only reads, such as a read-only
    Arrow buffer."""
    return types.Array(dtype, 1, "C", readonly=True)


def writes(dtype: Any, axes: int = 1) -> Any:
    """Return the numba type of a contiguous array with ``axes`` axes to which a kernel writes."""
    return types.Array(dtype, axes, "C")


def struct(kind: type[tuple[Any, ...]], **fields: Any) -> Any:
    """Return the numba type of the NamedTuple ``kind``, given the numba type of each of its
    fields."""
    # In the order of the fields, because kernels take them by position.
    ordered = kind(**fields)
    return types.BaseTuple.from_types(ordered, kind)  # type: ignore[no-untyped-call]


def read_only(arrays: S) -> S:
    """Return a NamedTuple of read-only views of the given arrays."""
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return type(arrays)(*views)


def _compile(function: Callable[..., Any], signature: Any, cache: bool) -> Callable[..., Any]:
    compiled: Callable[..., Any] = numba.njit(signature, cache=cache, **_OPTIONS)(function)
    return compiled


def _compile_cached(
    function: Callable[..., Any], signature: Any, folder: Path
) -> Callable[..., Any] | None:
    """Load a kernel from ``folder``, or compile it and save it there; None if that fails.

    A damaged cache file, for example after a power failure, is discarded and rewritten.
    """
    before = _NUMBA_CONFIG.CACHE_DIR
    # Set for each kernel: numba rereads its environment when it changes, and the cache of other
    # packages' kernels in this process must not move.
    _NUMBA_CONFIG.CACHE_DIR = str(folder / _key(function))
    try:
        try:
            return _compile(function, signature, cache=True)
        except Exception:  # unpickling a damaged file can raise nearly anything
            _NUMBA_CACHE(function).flush()
            return _compile(function, signature, cache=True)
    except Exception:  # a full disk, a removed folder, or an error in the function itself
        return None
    finally:
        _NUMBA_CONFIG.CACHE_DIR = before


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a function for one signature when its module is imported.

    The compiled code is cached. Kernels do not check array bounds, so callers must check shapes.
    Kernels release the GIL.
    """

    def compile_now(function: Callable[..., Any]) -> Callable[..., Any]:
        global _folder
        if _folder is not None and (ready := _compile_cached(function, signature, _folder)):
            return ready
        compiled = _compile(function, signature, cache=False)  # raises the function's own errors
        if _folder is not None:
            _note(f"the folder {_folder} is no longer readable and writable")
            _folder = None
        return compiled

    return compile_now


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that is inlined into each kernel that calls it."""
    # By default LLVM does not inline most of them, which halves the speed of the scanner.
    compiled: Callable[..., Any] = numba.njit(forceinline=True, **_OPTIONS)(function)
    return compiled


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that kernels call. It is inlined only where LLVM expects a gain, which
    keeps large kernels quick to compile."""
    compiled: Callable[..., Any] = numba.njit(**_OPTIONS)(function)
    return compiled


@inlined
def byte_at(data, i):  # type: ignore[no-untyped-def]
    """Return ``data[i]`` for ``i`` >= 0.

    numba supports negative indices, as Python does, and testing for them at each byte halves the
    speed of a loop over bytes. An unsigned index avoids that test.
    """
    return data[np.uint64(i)]


HASH_START = np.uint64(0xCBF29CE484222325)
_HASH_PRIME = np.uint64(0x100000001B3)


@inlined
def hashed(data, begin, end, code):  # type: ignore[no-untyped-def]
    """Return the FNV-1a hash of ``data[begin:end]``. ``code`` is the hash to continue from,
    initially :data:`HASH_START`."""
    for i in range(begin, end):
        code = (code ^ np.uint64(byte_at(data, i))) * _HASH_PRIME
    return code


@_intrinsic
def word_at(typing_context, data, i):  # type: ignore[no-untyped-def]
    """Return the eight bytes starting at ``data[i]`` as a 64-bit word, regardless of alignment.

    The first byte is the lowest one, because numtok runs on little-endian machines.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.int64), generate


@_intrinsic
def leading_zeros(typing_context, a):  # type: ignore[no-untyped-def]
    """Return the number of zero bits above the highest set bit of a 64-bit word; 64 if the word is
    0."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@_intrinsic
def trailing_zeros(typing_context, a):  # type: ignore[no-untyped-def]
    """Return the number of zero bits below the lowest set bit of a 64-bit word; 64 if the word is
    0."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@_intrinsic
def copy_bytes(typing_context, out, o, data, i, count):  # type: ignore[no-untyped-def]
    """Copy ``data[i:i + count]`` to ``out[o:o + count]`` with ``memcpy``. The two regions must not
    overlap."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        target, source = (
            builder.gep(
                context.make_array(signature.args[k])(context, builder, arguments[k]).data,
                [arguments[k + 1]],
            )
            for k in (0, 2)
        )
        cgutils.raw_memcpy(builder, target, source, arguments[4], 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(out, types.int64, data, types.int64, types.int64), generate


_ONES, _HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


@inlined
def has_byte(word, repeated):  # type: ignore[no-untyped-def]
    """Return nonzero if a 64-bit word contains a given ASCII byte. ``repeated`` is the word with
    that byte in all eight positions (see :func:`repeat`).

    The high bit of each matching byte is set in the result. Bytes directly above a match may be
    flagged too, if they differ from the searched byte only in the lowest bit; no match is missed.
    """
    zeros = word ^ repeated
    return (zeros - _ONES) & ~zeros & _HIGH_BITS


def repeat(character: str) -> np.uint64:
    """Return a 64-bit word with an ASCII character in each of its eight bytes."""
    return np.uint64(ord(character) * int(_ONES))
