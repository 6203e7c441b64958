"""ud: sign, signed exponent, mantissa, digit by digit. ``-60.2`` -> ``- + 0 1 6 0 2 0``."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes._radix import (
    compose,
    digits_of,
    exponents_of,
    nearest_spans,
    number_of,
    rounded,
    scaled,
)
from numtok.encoding.schemes._slots import (
    DIGITS,
    SIGNS,
    SlotScheme,
    check_digits,
    check_setting,
    check_shared_settings,
    parts_of,
)
from numtok.encoding.schemes.base import Bounds
from numtok.numerals.column import Numerals
from numtok.registry import Interval

_FIRST_DIGIT = len(SIGNS)  # its id


@dataclass(frozen=True)
class UD(SlotScheme):
    """Section 3.2 of "Decoding-based Regression": the tokens of the unnormalised decoder.

    A number is ``sign * m.mmm * base^e``, written as its sign, the sign and the digits of ``e``,
    and the digits of the mantissa, the first of them not 0. Every number is written in one way:
    zero has a token of its own, and an exponent of 0 is ``+``. Exponents end where float64 does,
    so a prefix of tokens always stands for numbers, an interval of them.

    base
        Of exponent and mantissa, 2 to 36; in the paper 4, 8 or 10.
    exponent
        Its digits; in the paper 1, 2 or 4.
    mantissa
        Its digits; in the paper 2, 4 or 8.
    point
        ``nearest`` rounds half to even and reads the mantissa as it is; ``edge`` cuts the digits
        off, as the paper does; ``centre`` cuts them off and reads the middle of what has these
        digits.
    repeat
        How many times all tokens are written (Section 4.5); the majority is read.
    """

    revision: ClassVar[int] = 1
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
        """The exponents that there are: those with so many digits that float64 can hold."""
        known, most = exponents_of(self.base), self.base**self.exponent - 1
        return Interval(max(known.first, -most), min(known.last, most))

    @property
    def bounds(self) -> Bounds:
        first, last = self.exponents.first, self.exponents.last
        most = scaled(self.base**self.mantissa - 1, self.base, last - self.mantissa + 1)
        if self.point != "nearest":  # everything up to the next power is cut off
            most = float(np.nextafter(scaled(1, self.base, last + 1), 0))
        return Bounds(scaled(1, self.base, first), most)

    @property
    def error(self) -> float:
        least = float(self.base ** (self.mantissa - 1))
        return 1 / (least + 1) if self.point == "edge" else 0.5 / least

    @property
    def covered(self) -> tuple[Bounds, Bounds]:
        return self.span((1,)), self.span((0,))

    def slots(self) -> tuple[range, ...]:
        sign, stop = range(_FIRST_DIGIT), _FIRST_DIGIT + self.base
        digit, leading = range(_FIRST_DIGIT, stop), range(_FIRST_DIGIT + 1, stop)
        return (sign, sign, *[digit] * self.exponent, leading, *[digit] * (self.mantissa - 1))

    def counted_vocabulary(self) -> tuple[str, ...]:
        return SIGNS + tuple(DIGITS[: self.base])

    def write_numbers(self, numerals: Numerals) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        number = rounded(numerals, self.base, self.mantissa, self.point == "nearest")
        shift, known = self.mantissa - 1, self.exponents  # of the last digit, of the first one
        units = Interval(known.first - shift, known.last - shift)
        outcomes, number = parts_of(numerals, number, units, self.base**shift)
        exponent = number.exponent.astype(np.int64) + shift
        columns = [
            number.negative,
            exponent < 0,
            *self._digits(np.abs(exponent), self.exponent),
            *self._digits(number.mantissa, self.mantissa),
        ]
        return outcomes, np.column_stack(columns).astype(np.uint32)

    def are_written(self, table: NDArray[np.int64]) -> NDArray[np.bool_]:
        size, known = self._number(table[:, 2 : 2 + self.exponent]), self.exponents
        lowered = table[:, 1] == 1
        most = np.where(lowered, -known.first, known.last)
        written: NDArray[np.bool_] = (size >= lowered) & (size <= most)
        return written

    def read_numbers(self, table: NDArray[np.int64]) -> NDArray[np.float64]:
        size = self._number(table[:, 2 : 2 + self.exponent])
        exponent, known = np.where(table[:, 1] == 1, -size, size), self.exponents
        negative, mantissa = table[:, 0] == 1, self._number(table[:, 2 + self.exponent :])
        half = self.point == "centre"
        values = compose(
            negative,
            2 * mantissa + 1 if half else mantissa,
            np.clip(exponent, known.first, known.last) - self.mantissa + 1,
            self.base,
            2 if half else 1,
        )
        values[exponent > known.last] = np.inf  # only where copies differ
        values[exponent < known.first] = np.nan
        return values

    def follow(self, prefix: tuple[int, ...]) -> NDArray[np.int64] | range:
        place = len(prefix)
        if not 2 <= place < 2 + self.exponent:
            return self.slots()[place]
        digits = np.arange(self.base)
        wide = self.base ** (1 + self.exponent - place)
        least = (self._whole(prefix[2:]) * self.base + digits) * wide  # zeros behind it
        first, last = self._sizes(prefix[1] == 1)
        return np.flatnonzero((least + wide > first) & (least <= last)) + _FIRST_DIGIT

    def remembered(self, prefix: tuple[int, ...]) -> tuple[int, ...]:
        # Behind the exponent any digit may follow; the sign says which are the smaller numbers.
        return prefix[:1] if len(prefix) >= 2 + self.exponent else prefix

    def span(self, tokens: tuple[int, ...]) -> Bounds:
        known, lead = self.exponents, self.base ** (self.mantissa - 1)
        first, last = self._exponents_from(tokens[1 : 2 + self.exponent])
        kept = tokens[2 + self.exponent :]
        wide = self.base ** (self.mantissa - len(kept))
        least = self._whole(kept) * wide
        if first > known.last:  # only where copies differ
            low, high = self._end(lead * self.base, known.last), np.inf
        elif last < known.first:
            low, high = 0.0, self._end(lead, known.first)
        else:
            low, high = self._end(max(least, lead), first), self._end(least + wide, last)
        return Bounds(-high, -low) if tokens[0] == 1 else Bounds(low, high)

    def spans(self, table: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        size, known = self._number(table[:, 2 : 2 + self.exponent]), self.exponents
        exponent = np.clip(np.where(table[:, 1] == 1, -size, size), known.first, known.last)
        mantissa, unit = self._number(table[:, 2 + self.exponent :]), exponent - self.mantissa + 1
        if self.point == "nearest":
            low, high = nearest_spans(mantissa, unit, self.base, self.mantissa)
        else:
            positive = np.zeros(len(table), np.bool_)
            low, high = (compose(positive, m, unit, self.base) for m in (mantissa, mantissa + 1))
        negative = table[:, 0] == 1
        return np.where(negative, -high, low), np.where(negative, -low, high)

    def _exponents_from(self, tokens: tuple[int, ...]) -> tuple[int, int]:
        """The first and the last exponent that begin with a sign and some digits."""
        if not tokens:
            return self.exponents.first, self.exponents.last
        wide = self.base ** (1 + self.exponent - len(tokens))
        first = self._whole(tokens[1:]) * wide
        last = first + wide - 1
        if wide > 1:
            least, most = self._sizes(tokens[0] == 1)
            first, last = max(first, least), min(last, most)
        return (-last, -first) if tokens[0] == 1 else (first, last)

    def _sizes(self, lowered: bool) -> tuple[int, int]:
        """The smallest and the largest exponent of a sign, without it; 0 is never negative."""
        return (1, -self.exponents.first) if lowered else (0, self.exponents.last)

    def _end(self, mantissa: int, exponent: int) -> float:
        """The magnitude at which the numbers of a mantissa begin; one too large is carried."""
        least = self.base ** (self.mantissa - 1)
        if mantissa == least * self.base:
            mantissa, exponent = least, exponent + 1
        unit = exponent - self.mantissa + 1
        if self.point != "nearest":
            return scaled(mantissa, self.base, unit)
        if mantissa == least:  # below a power of the base the steps are finer
            return scaled(2 * mantissa * self.base - 1, self.base, unit - 1, 2)
        return scaled(2 * mantissa - 1, self.base, unit, 2)

    def _digits(self, numbers: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
        """The ids of the digits of each number [n], the first ones first."""
        return [digit + _FIRST_DIGIT for digit in digits_of(numbers, self.base, count)]

    def _number(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """The inverse of :meth:`_digits`."""
        return number_of(table - _FIRST_DIGIT, self.base)

    def _whole(self, tokens: tuple[int, ...]) -> int:
        number = 0
        for token in tokens:
            number = number * self.base + token - _FIRST_DIGIT
        return number
