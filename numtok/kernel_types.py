"""Types of the arguments and results of compiled kernels, declared without importing numba.

A compiled kernel takes one array of 64-bit words. A scalar is one word; an array is the address of
its Python object; a NamedTuple is the words of its fields. ``add`` of a type checks a value and
appends its words, because kernels themselves check nothing.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class KernelType(Protocol):
    """Type of one argument of a kernel."""

    def add(self, value: Any, words: list[int]) -> None:
        """Append the words of a value. Raises TypeError if it has another type."""


@dataclass(frozen=True)
class ScalarType:
    """A number, or a boolean. Calling it declares a kernel that returns one:
    ``int64(reads(uint8), boolean)``."""

    name: str

    def __call__(self, *arguments: KernelType) -> "Signature":
        return Signature(self.name, 1, arguments)

    def add(self, value: Any, words: list[int]) -> None:
        """Append the bits of a number as one word."""
        if self.name == "float64":
            words.append(int(np.float64(value).view(np.int64)))
        else:
            words.append(bool(value) if self.name == "boolean" else operator.index(value))


@dataclass(frozen=True)
class PairType:
    """Two numbers of one type, which a kernel can return."""

    of: ScalarType

    def __call__(self, *arguments: KernelType) -> "Signature":
        return Signature(self.of.name, 2, arguments)


@dataclass(frozen=True)
class ArrayType:
    """A contiguous array. A kernel that only reads it accepts read-only arrays."""

    dtype: np.dtype[Any]
    axes: int
    readonly: bool

    def add(self, value: Any, words: list[int]) -> None:
        """Append the address of an array object. The kernel reads the address and the shape of its
        data there, because asking NumPy for them takes longer than most calls."""
        if not isinstance(value, np.ndarray):
            raise TypeError(f"a kernel needs an array (got {type(value).__name__})")
        flags = value.flags
        if (
            value.dtype != self.dtype
            or value.ndim != self.axes
            or not flags.c_contiguous
            or not (self.readonly or flags.writeable)
        ):
            raise TypeError(
                f"a kernel needs a contiguous array of {self.dtype} with {self.axes} axes"
                f"{'' if self.readonly else ' that is writeable'} "
                f"(got {value.dtype}, {value.shape}, strides {value.strides})"
            )
        words.append(id(value))


@dataclass(frozen=True)
class StructType:
    """A NamedTuple."""

    kind: type[tuple[Any, ...]]
    fields: tuple[KernelType, ...]

    def add(self, value: Any, words: list[int]) -> None:
        """Append the words of each field."""
        for field, item in zip(self.fields, value, strict=True):
            field.add(item, words)


@dataclass(frozen=True)
class Signature:
    """Types of a kernel: ``count`` results of the scalar type ``result``, and its arguments."""

    result: str
    count: int
    arguments: tuple[KernelType, ...]

    def words(self, values: tuple[Any, ...]) -> list[int]:
        """Return the words of all arguments. Raises TypeError if a value has another type."""
        words: list[int] = []
        for each, value in zip(self.arguments, values, strict=True):
            each.add(value, words)
        return words

    def results(self, words: list[int]) -> Any:
        """Return what a kernel returned, given the words that it wrote."""
        values = [_FROM_WORD[self.result](word) for word in words[: self.count]]
        return values[0] if self.count == 1 else tuple(values) or None


_FROM_WORD: dict[str, Callable[[int], Any]] = {
    "boolean": bool,
    "int32": int,
    "int64": int,
    "uint64": lambda word: word % (1 << 64),
    "float64": lambda word: float(np.int64(word).view(np.float64)),
}

boolean = ScalarType("boolean")
int32, int64 = ScalarType("int32"), ScalarType("int64")
uint8, uint16 = ScalarType("uint8"), ScalarType("uint16")
uint32, uint64 = ScalarType("uint32"), ScalarType("uint64")
float64 = ScalarType("float64")


def void(*arguments: KernelType) -> Signature:
    """Declare a kernel that returns nothing."""
    return Signature("void", 0, arguments)


def pair(of: ScalarType) -> PairType:
    """Return the type of two numbers, as the result of a kernel: ``pair(int64)(reads(uint8))``."""
    return PairType(of)


def reads(item: ScalarType | np.dtype[Any]) -> ArrayType:
    """Return the type of a contiguous array that a kernel only reads, such as a read-only Arrow
    buffer."""
    return ArrayType(_dtype(item), 1, readonly=True)


def writes(item: ScalarType | np.dtype[Any], axes: int = 1) -> ArrayType:
    """Return the type of a contiguous array with ``axes`` axes to which a kernel writes."""
    return ArrayType(_dtype(item), axes, readonly=False)


def struct(kind: type[tuple[Any, ...]], **fields: KernelType) -> StructType:
    """Return the type of the NamedTuple ``kind``, given the type of each of its fields."""
    # In the order of the fields, because kernels take them by position.
    return StructType(kind, tuple(kind(**fields)))


def _dtype(item: ScalarType | np.dtype[Any]) -> np.dtype[Any]:
    if isinstance(item, ScalarType):
        return np.dtype("bool" if item.name == "boolean" else item.name)
    return item
