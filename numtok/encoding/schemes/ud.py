"""ud: sign, signed exponent and mantissa, digit by digit. ``-60.2`` -> ``- + 0 1 6 0 2 0``."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.arrays import Bools, Ints
from numtok.encoding.grid import Columns, Places, Units
from numtok.encoding.schemes._floating import FloatingScheme
from numtok.encoding.schemes._radix import (
    DIGITS,
    SIGNS,
    check_digits,
    check_setting,
    check_shared_settings,
    digits_of,
    exponents_of,
    number_of,
    scaled,
)
from numtok.encoding.schemes.base import Bounds, SchemeDefaults
from numtok.setting_values import Interval


@dataclass(frozen=True)
class UD(FloatingScheme):
    """Unnormalized decoder from "Decoding-based Regression", Section 3.2: floating-point numbers,
    digit by digit.

    A number is ``sign * m.mmm * base^e``, written as its sign, the sign and digits of ``e``, and
    the digits of the mantissa, which never begin with 0. Every number has exactly one
    representation: zero has its own token, and the sign of an exponent of 0 is ``+``. Exponents are
    limited to the range of float64, so every prefix of tokens represents an interval of numbers.

    base
        Base of exponent and mantissa, 2 to 36 (4, 8 or 10 in the paper).
    exponent
        Number of exponent digits (1, 2 or 4 in the paper).
    mantissa
        Number of mantissa digits (2, 4 or 8 in the paper).
    point
        ``nearest`` rounds half to even; ``edge`` truncates, as in the paper; ``centre`` truncates
        and decodes to the middle of the interval.
    repeat
        Number of copies of all tokens (Section 4.5); decoding takes the majority.
    """

    revision: ClassVar[int] = 1
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(digits=False)  # exponents have digits, too
    source: ClassVar[str] = "Decoding-based Regression, 3.2"
    contiguous: ClassVar[bool] = True
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-60.2", "- + 0 1 6 0 2 0", "-60.2"),
        ("1.23456789e-22", "+ - 2 2 1 2 3 5", "1.235e-22"),
        ("9.99951e9", "+ + 1 0 1 0 0 0", "10000000000.0"),
        ("1000", "+ + 0 3 1 0 0 0", "1000.0"),
        ("-0.5", "- - 0 1 5 0 0 0", "-0.5"),
        ("0", " ".join(["ZERO"] * 8), "0.0"),
        ("1e100", " ".join(["+OVERFLOW"] * 8), "overflow"),
        ("-1e-100", " ".join(["-UNDERFLOW"] * 8), "underflow"),
    )
    digest: ClassVar[str] = "befb79c23c704f5e"

    base: int = 10
    exponent: int = 2
    mantissa: int = 4
    point: str = "nearest"
    repeat: int = 1

    def __post_init__(self) -> None:
        check_shared_settings("ud", self.base, self.point, self.repeat)
        check_setting("ud", "exponent", self.exponent, Interval(1, 10))
        check_digits("ud", "mantissa", self.mantissa, self.base)

    @cached_property
    def exponents(self) -> Interval:
        """Exponents with at most ``exponent`` digits that float64 can represent."""
        representable, most = exponents_of(self.base), self.base**self.exponent - 1
        return Interval(max(representable.first, -most), min(representable.last, most))

    @property
    def mantissa_digits(self) -> int:
        return self.mantissa

    @property
    def mantissa_exponents(self) -> Interval:
        shift = self.mantissa - 1  # of the last digit, from the first one
        return Interval(self.exponents.first - shift, self.exponents.last - shift)

    @property
    def places(self) -> Places:
        digits = DIGITS[: self.base]
        mantissa = [digits[1:], *[digits] * (self.mantissa - 1)]  # the first is not 0
        return SIGNS, SIGNS, *[digits] * self.exponent, *mantissa

    def write(self, units: Units) -> Columns:
        exponent, mantissa = np.divmod(units.counts, self.steps)
        exponent += self.exponents.first
        return (
            units.negative,
            exponent < 0,
            *digits_of(np.abs(exponent), self.base, self.exponent),
            *digits_of(mantissa, self.base, self.mantissa),
        )

    def read(self, indices: Ints) -> Units:
        size, exponents = number_of(indices[:, 2 : 2 + self.exponent], self.base), self.exponents
        exponent = np.where(indices[:, 1] == 1, -size, size)
        # Exponents out of range occur only if copies differ.
        steps = np.clip(exponent, exponents.first - 1, exponents.last + 1) - exponents.first
        mantissa = number_of(indices[:, 2 + self.exponent :], self.base)
        return Units(steps * self.steps + mantissa, indices[:, 0] == 1)

    def are_written(self, indices: Ints) -> Bools:
        size, exponents = number_of(indices[:, 2 : 2 + self.exponent], self.base), self.exponents
        lowered = indices[:, 1] == 1
        most = np.where(lowered, -exponents.first, exponents.last)
        written: Bools = (size >= lowered) & (size <= most)
        return written

    def follow(self, prefix: tuple[int, ...]) -> Ints | slice:
        position = len(prefix)
        if not 2 <= position < 2 + self.exponent:
            return slice(None)
        wide = self.base ** (1 + self.exponent - position)
        least = (self._whole(prefix[2:]) * self.base + np.arange(self.base)) * wide
        first, last = self._sizes(prefix[1] == 1)
        return np.flatnonzero((least + wide > first) & (least <= last))

    def remembered(self, prefix: tuple[int, ...]) -> tuple[int, ...]:
        # After the exponent, any digit may follow; the sign decides the order of values.
        return prefix[:1] if len(prefix) >= 2 + self.exponent else prefix

    def span(self, prefix: tuple[int, ...]) -> Bounds:
        exponents, kept = self.exponents, prefix[2 + self.exponent :]
        first, last = self._exponents_from(prefix[1 : 2 + self.exponent])
        wide = self.base ** (self.mantissa - len(kept))
        least = self._whole(kept) * wide + (self.least if kept else 0)
        if first > exponents.last:  # only if copies differ
            low, high = self._end(self.least * self.base, exponents.last), np.inf
        elif last < exponents.first:
            low, high = 0.0, self._end(self.least, exponents.first)
        else:
            low, high = self._end(max(least, self.least), first), self._end(least + wide, last)
        return Bounds(-high, -low) if prefix[0] == 1 else Bounds(low, high)

    def _exponents_from(self, prefix: tuple[int, ...]) -> tuple[int, int]:
        """Return the smallest and the largest exponent that begin with a given sign and digits."""
        if not prefix:
            return self.exponents.first, self.exponents.last
        wide = self.base ** (1 + self.exponent - len(prefix))
        first = self._whole(prefix[1:]) * wide
        last = first + wide - 1
        if wide > 1:
            least, most = self._sizes(prefix[0] == 1)
            first, last = max(first, least), min(last, most)
        return (-last, -first) if prefix[0] == 1 else (first, last)

    def _sizes(self, lowered: bool) -> tuple[int, int]:
        """Return the smallest and the largest magnitude of the exponents with one sign. 0 is never
        negative."""
        return (1, -self.exponents.first) if lowered else (0, self.exponents.last)

    def _end(self, mantissa: int, exponent: int) -> float:
        """Return the magnitude at which the numbers of a mantissa begin, with carry if needed."""
        if mantissa == self.least * self.base:
            mantissa, exponent = self.least, exponent + 1
        unit = exponent - self.mantissa + 1
        if self.point != "nearest":
            return scaled(mantissa, self.base, unit)
        if mantissa == self.least:  # below a power of the base the steps are finer
            return scaled(2 * mantissa * self.base - 1, self.base, unit - 1, 2)
        return scaled(2 * mantissa - 1, self.base, unit, 2)

    def _whole(self, digits: tuple[int, ...]) -> int:
        number = 0
        for digit in digits:
            number = number * self.base + digit
        return number
