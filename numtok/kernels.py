"""Compiled functions: how kernels are declared, loaded and called.

A kernel is compiled when it is first called on a machine, which takes seconds, and loaded from a
file in other processes, which takes a millisecond and needs no numba. :mod:`numtok.kernel_files`
keeps the files, and :mod:`numtok.kernel_numba` compiles.
"""

import ctypes
import functools
import pkgutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np

from numtok import kernel_files
from numtok.kernel_files import Compilable
from numtok.kernel_types import Signature

S = TypeVar("S", bound=tuple[Any, ...])
_ENTRY = "numtok_kernel"  # name of the function in object code
# Without numba's counts of references, which made the scanner a third slower, no array can be made
# inside a kernel: working memory is an argument.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_Entry = Callable[["ctypes.Array[ctypes.c_int64]"], None]
_loading = threading.RLock()


class Kernel:
    """A function that is compiled for its signatures.

    Arguments are checked against the signature, but kernels do not check array bounds, so callers
    must check shapes. Kernels release the GIL.
    """

    def __init__(self, function: Callable[..., Any], signatures: Sequence[Signature]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.signatures = function, signatures
        self._entries: dict[int, _Entry] = {}
        self._engines: list[Any] = []  # they own the code

    def __call__(self, *values: Any) -> Any:
        index, words = self._words(values)
        entry = self._entries.get(index) or self._load(index)
        passed = (ctypes.c_int64 * max(len(words), 2))(*words)
        entry(passed)
        return self.signatures[index].results(passed[:2])

    @property
    def address(self) -> str:
        """Module and name, as for :func:`load`."""
        return f"{self.function.__module__}.{self.function.__name__}"

    def is_compiled(self) -> bool:
        """Return whether the kernel's files exist and are undamaged."""
        names = (kernel_files.name_of(self.function, each, _OPTIONS) for each in self.signatures)
        return all(kernel_files.read(name) is not None for name in names)

    def load(self) -> None:
        """Load the kernel for all signatures, and compile it if it has not been."""
        for index in range(len(self.signatures)):
            self._load(index)

    def _words(self, values: tuple[Any, ...]) -> tuple[int, list[int]]:
        """Return the signature that the values have, and their words."""
        if len(self.signatures) == 1:
            return 0, self.signatures[0].words(values)
        *others, last = range(len(self.signatures))
        for index in others:
            try:
                return index, self.signatures[index].words(values)
            except TypeError:
                continue
        return last, self.signatures[last].words(values)

    def _load(self, index: int) -> _Entry:
        with _loading:
            if index not in self._entries:
                signature = self.signatures[index]
                name = kernel_files.name_of(self.function, signature, _OPTIONS)
                if (code := kernel_files.read(name)) is None:
                    from numtok.kernel_numba import compile_kernel

                    code = compile_kernel(self.function, signature, _OPTIONS, _ENTRY)
                    kernel_files.write(name, code)
                engine = _engine(code)
                self._engines.append(engine)
                entry = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64))
                self._entries[index] = entry(engine.get_function_address(_ENTRY))
            return self._entries[index]


def _engine(code: bytes) -> Any:
    """Return an engine that has loaded object code."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


class Helper(Compilable):
    """A function that kernels call. Called from Python, it is compiled as well."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.options = function, options

    def __call__(self, *values: Any) -> Any:
        return self._compiled(*values)

    @cached_property
    def _compiled(self) -> Any:
        from numtok.kernel_numba import compilable

        return compilable(self.function, self.options)

    @property
    def _numba_type_(self) -> Any:
        """The type by which numba knows this object: it reads this attribute of any global."""
        from numtok.kernel_numba import type_of_compilable

        return type_of_compilable(self._compiled)


class Intrinsic(Compilable):
    """A function that generates LLVM code in the kernels that call it. It is defined as for
    ``numba.extending.intrinsic``."""

    options: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *values: Any) -> Any:
        raise TypeError(f"{self.function.__name__} can only be called by kernels")

    @cached_property
    def _numba_type_(self) -> Any:
        """The type by which numba knows this object."""
        from numtok.kernel_numba import type_of_intrinsic

        return type_of_intrinsic(self.function)


def kernel(signature: Signature | Sequence[Signature]) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that declares a compiled function, for one signature or several."""
    several = [signature] if isinstance(signature, Signature) else signature
    return lambda function: Kernel(function, several)


def every_kernel() -> Iterator[Kernel]:
    """Import all modules of the package that declare kernels, and yield their kernels."""
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        if b"\n@kernel(" in path.read_bytes():
            name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            yield from (
                value
                for value in vars(pkgutil.resolve_name(name)).values()
                if isinstance(value, Kernel) and value.function.__module__ == name
            )


def load(address: str) -> None:
    """Load the kernel at an address such as ``numtok.numerals.scan._scan``."""
    declared = pkgutil.resolve_name(address)
    assert isinstance(declared, Kernel)
    declared.load()


def inlined(function: Callable[..., Any]) -> Helper:
    """Declare a function that is inlined into each kernel that calls it."""
    # By default LLVM does not inline most of them, which halves the speed of the scanner.
    return Helper(function, _OPTIONS | {"forceinline": True})


def helper(function: Callable[..., Any]) -> Helper:
    """Declare a function that kernels call. It is inlined only where LLVM expects a gain, which
    keeps large kernels quick to compile."""
    return Helper(function, _OPTIONS)


def read_only(arrays: S) -> S:
    """Return a NamedTuple of read-only views of the given arrays."""
    views = [array.view() for array in arrays]
    for view in views:
        view.flags.writeable = False
    return type(arrays)(*views)


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


@Intrinsic
def word_at(typing_context, data, i):  # type: ignore[no-untyped-def]
    """Return the eight bytes starting at ``data[i]`` as a 64-bit word, regardless of alignment.

    The first byte is the lowest one, because numtok runs on little-endian machines.
    """
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.int64), generate


@Intrinsic
def leading_zeros(typing_context, a):  # type: ignore[no-untyped-def]
    """Return the number of zero bits above the highest set bit of a 64-bit word; 64 if the word is
    0."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@Intrinsic
def trailing_zeros(typing_context, a):  # type: ignore[no-untyped-def]
    """Return the number of zero bits below the lowest set bit of a 64-bit word; 64 if the word is
    0."""
    from llvmlite import ir
    from numba import types

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@Intrinsic
def copy_bytes(typing_context, out, o, data, i, count):  # type: ignore[no-untyped-def]
    """Copy ``data[i:i + count]`` to ``out[o:o + count]`` with ``memcpy``. The two regions must not
    overlap."""
    from numba import types
    from numba.core import cgutils

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
