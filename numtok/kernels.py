"""numba, set up once: where compiled kernels are kept.

Compiling takes seconds, loading a compiled kernel milliseconds, so the result
is cached in a folder of the user's (``$NUMBA_CACHE_DIR``, else
``$XDG_CACHE_HOME/numtok`` or ``~/.cache/numtok``), else in a private folder
under the temporary directory, else nowhere, with one note on stderr. numba
alone looks beside the source file first, raises where nothing is writable, and
raises again when a file of its cache is damaged or the disk is full.

Each kernel has a subfolder named by a digest of everything compiled into it:
its bytecode, that of the functions it calls, and the values of the globals they
read. numba itself notices only that the kernel's own file changed.
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
_intrinsic: Any = intrinsic  # numba's own type drops the wrong argument
_NUMBA_CACHE: Any = numba.core.caching.FunctionCache

if _NUMBA_CONFIG.DISABLE_JIT:
    raise UsageError("numtok needs numba's compiler (NUMBA_DISABLE_JIT=1). Unset NUMBA_DISABLE_JIT")


def _key(function: Callable[..., Any]) -> str:
    """A digest of everything that is compiled into a kernel."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {_OPTIONS}".encode())
    _add(digest, function, set())
    return digest.hexdigest()[:16]


def _add(digest: Any, value: Any, seen: set[Callable[..., Any]]) -> None:
    """Add a value that compiled code refers to; a function with all that it refers to, once."""
    if isinstance(value, Dispatcher):
        digest.update(repr(sorted(value.targetoptions.items())).encode())
        value = value.py_func
    elif isinstance(value, _Intrinsic):
        value = value._defn
    digest.update(f"\0{type(value).__name__} ".encode())
    if isinstance(value, FunctionType):
        if value not in seen:
            seen.add(value)
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            _add(digest, (value.__defaults__, *cells), seen)
            _add_code(digest, value.__code__, value.__globals__, seen)
    elif isinstance(value, tuple):
        for item in value:
            _add(digest, item, seen)
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
            f"a kernel cannot refer to {value!r}, which its cache key cannot cover; refer to a "
            "number, an array, a tuple or a function"
        )


def _add_code(
    digest: Any, code: CodeType, names: Mapping[str, Any], seen: set[Callable[..., Any]]
) -> None:
    """Add bytecode, its constants, and the globals among the names that it uses."""
    digest.update(code.co_code + repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add_code(digest, constant, names, seen)
        else:
            _add(digest, constant, seen)
    for name in code.co_names:
        if name in names:
            _add(digest, names[name], seen)


def _candidates() -> list[Path]:
    """Folders to try, best first; the last is private to this user."""
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
    """The real path of ``folder``, made if need be; None unless only this user can write there.

    numba's index is a pickle, so a folder that another user may write to, or put another folder
    in the place of, is a way to run code as this one: such a folder is never used. Files are not
    made to try it out, as a kill between making and removing them would leave them behind.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.lstat().st_uid not in (0, os.getuid()):  # a link that its owner can change
            return None
        real = folder.resolve(strict=True)
        status = real.stat()
        if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        for parent in real.parents:
            if parent.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
                return None
        return real if os.access(real, os.W_OK | os.X_OK) else None
    except (OSError, RuntimeError):  # RuntimeError: links in a circle, before Python 3.13
        return None


def _note(reason: str) -> None:
    """Say once that there is no cache; spawned workers leave it to their parent."""
    if multiprocessing.parent_process() is None:
        print(
            "numtok: note: compiled kernels cannot be kept, so each start compiles them again; "
            f"{reason}; set NUMBA_CACHE_DIR to one that is",
            file=sys.stderr,
        )


def _choose() -> Path | None:
    places = _candidates()
    for place in places:
        if (real := _private(place)) and (folder := _private(real / "kernels")):
            return folder
    _note(f"no folder among {', '.join(map(str, places))} is writable and private")
    return None


_folder = _choose()


def reads(dtype: Any) -> Any:
    """The type of a contiguous array that a kernel only reads (Arrow's buffers are read-only)."""
    return types.Array(dtype, 1, "C", readonly=True)


def writes(dtype: Any, axes: int = 1) -> Any:
    """The type of a contiguous array that a kernel writes."""
    return types.Array(dtype, axes, "C")


def struct(kind: type[tuple[Any, ...]], **fields: Any) -> Any:
    """Return the type of a NamedTuple of arrays, from the type of each field."""
    # In the order of the fields: a kernel takes them by position.
    ordered = kind(**fields)
    return types.BaseTuple.from_types(ordered, kind)  # type: ignore[no-untyped-call]


def read_only(arrays: S) -> S:
    """A NamedTuple of arrays as a kernel takes it that only reads them."""
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
    """Load from ``folder``, or compile and save there; None if that fails.

    A damaged file, as a power cut leaves it, is forgotten and written anew.
    """
    before = _NUMBA_CONFIG.CACHE_DIR
    # Set for each kernel: numba reads its environment again when it changes, and the kernels of
    # other packages in this process are not ours to place.
    _NUMBA_CONFIG.CACHE_DIR = str(folder / _key(function))
    try:
        try:
            return _compile(function, signature, cache=True)
        except Exception:  # reading a damaged pickle can raise nearly anything
            _NUMBA_CACHE(function).flush()
            return _compile(function, signature, cache=True)
    except Exception:  # a full disk, a folder that went away, or a fault of the function itself
        return None
    finally:
        _NUMBA_CONFIG.CACHE_DIR = before


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function for one signature when its module is imported, cached.

    Kernels trust their callers: no bounds are checked, so shapes are checked
    before the call. They release the GIL.
    """

    def compile_now(function: Callable[..., Any]) -> Callable[..., Any]:
        global _folder
        if _folder is not None and (ready := _compile_cached(function, signature, _folder)):
            return ready
        compiled = _compile(function, signature, cache=False)  # raises the function's own faults
        if _folder is not None:
            _note(f"the folder {_folder} is no longer readable and writable")
            _folder = None
        return compiled

    return compile_now


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only kernels call; compiled into each of them."""
    # Left to itself LLVM does not inline most of them, which halves the speed of the scanner.
    compiled: Callable[..., Any] = numba.njit(forceinline=True, **_OPTIONS)(function)
    return compiled


@inlined
def byte_at(data, i):  # type: ignore[no-untyped-def]
    """``data[i]`` for ``i`` >= 0. numba reads ``data[-1]`` as Python does, and that test for a
    negative index, at each byte, halves the speed of a loop over bytes; an unsigned one has none.
    """
    return data[np.uint64(i)]


HASH_START = np.uint64(0xCBF29CE484222325)
_HASH_PRIME = np.uint64(0x100000001B3)


@inlined
def hashed(data, begin, end, code):  # type: ignore[no-untyped-def]
    """FNV-1a of ``data[begin:end]``, going on from ``code``: :data:`HASH_START` at first."""
    for i in range(begin, end):
        code = (code ^ np.uint64(byte_at(data, i))) * _HASH_PRIME
    return code


@_intrinsic
def word_at(typing_context, data, i):  # type: ignore[no-untyped-def]
    """The eight bytes from ``data[i]`` on, wherever they lie, as one word: the first byte is the
    lowest (the machines that numtok runs on are little-endian)."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.int64), generate


@_intrinsic
def leading_zeros(typing_context, a):  # type: ignore[no-untyped-def]
    """The zero bits of a word above its highest one; 64 for 0."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@_intrinsic
def trailing_zeros(typing_context, a):  # type: ignore[no-untyped-def]
    """The zero bits of a word below its lowest one; 64 for 0."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@_intrinsic
def copy_bytes(typing_context, out, o, data, i, count):  # type: ignore[no-untyped-def]
    """``out[o:o + count] = data[i:i + count]`` of bytes that do not overlap, by ``memcpy``."""

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
    """Not 0 if one of a word's bytes is the one that ``repeated`` (from :func:`repeat`) is made of.

    A byte with its high bit set beside a match can be taken for one as well: no match is missed.
    """
    zeros = word ^ repeated
    return (zeros - _ONES) & ~zeros & _HIGH_BITS


def repeat(character: str) -> np.uint64:
    """A word made of one ASCII character eight times."""
    return np.uint64(ord(character) * int(_ONES))
