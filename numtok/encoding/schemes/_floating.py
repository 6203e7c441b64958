"""Base classes for schemes that write the sign, mantissa and exponent of a number in any base.

A unit is one step of the mantissa, so its size depends on the exponent. The units of a number are
counted from the smallest magnitude that the scheme represents.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats, Ints, UInt8s
from numtok.encoding.grid import GridScheme, Units
from numtok.encoding.schemes._radix import compose, nearest_spans, rounded, scaled
from numtok.encoding.schemes.base import EXTRAS, Bounds, LargestError, outcomes_of
from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from numtok.registry import name_of
from numtok.setting_values import Interval


class FloatingScheme(GridScheme):
    """Base class for schemes that write numbers as ``mantissa * base^exponent``. The mantissa has
    ``mantissa_digits`` digits and does not begin with 0. Subclasses define ``write``, ``read`` and
    the fields or properties below."""

    extras: ClassVar[tuple[str, ...]] = EXTRAS

    @property
    def base(self) -> int:
        """Base of mantissa and exponent."""
        return 10

    @property
    def mantissa_digits(self) -> int:
        """Number of significant digits that are kept."""
        return 3

    @property
    def point(self) -> str:
        """Rounding: ``nearest`` rounds half to even. ``edge`` and ``centre`` truncate; they decode
        to the lower end and to the middle of the interval, respectively."""
        return "nearest"

    @property
    def mantissa_exponents(self) -> Interval:
        """Range of the exponent if the mantissa is an integer."""
        raise NotImplementedError

    @cached_property
    def least(self) -> int:
        """Smallest mantissa."""
        return int(self.base ** (self.mantissa_digits - 1))

    @cached_property
    def steps(self) -> int:
        """Number of distinct mantissas."""
        return self.least * (self.base - 1)

    @property
    def most(self) -> int:
        return self.steps * len(self.mantissa_exponents) - 1

    def units_of(self, numerals: Numerals) -> tuple[UInt8s, Units]:
        limits = self.mantissa_exponents
        nearest = self.point == "nearest"
        negative, mantissa, exponent = rounded(numerals, self.base, self.mantissa_digits, nearest)
        over, under, zero = exponent > limits.last, exponent < limits.first, mantissa == 0
        steps = np.clip(exponent, limits.first, limits.last).astype(np.int64) - limits.first
        counts = steps * self.steps + np.where(zero, 0, mantissa - self.least)
        return outcomes_of(numerals, over, under, zero), Units(counts, negative)

    def values_of(self, units: Units) -> Floats:
        limits, half = self.mantissa_exponents, int(self.point == "centre")
        mantissa, exponent = self.floating(units.counts)
        mantissa, inside = (
            mantissa * (1 + half) + half,
            np.clip(exponent, limits.first, limits.last),
        )
        values = compose(units.negative, mantissa, inside, self.base, 1 + half)
        values[exponent > limits.last] = np.inf
        values[exponent < limits.first] = np.nan
        return values

    def floating(self, counts: Ints) -> tuple[Ints, Ints]:
        """Return the mantissas and exponents of numbers given in units, int64[n] each."""
        exponent, mantissa = np.divmod(counts, self.steps)
        return mantissa + self.least, exponent + self.mantissa_exponents.first

    def ends(self, counts: Ints) -> tuple[Floats, Floats]:
        limits = self.mantissa_exponents
        mantissa, exponent = self.floating(counts)
        exponent = np.clip(exponent, limits.first, limits.last)
        if self.point == "nearest":
            return nearest_spans(mantissa, exponent, self.base, self.mantissa_digits)
        positive = np.zeros(len(counts), np.bool_)
        low, high = (
            compose(positive, digits, exponent, self.base) for digits in (mantissa, mantissa + 1)
        )
        return low, high

    @property
    def bounds(self) -> Bounds:
        first, last = self.mantissa_exponents.first, self.mantissa_exponents.last
        most = scaled(self.base**self.mantissa_digits - 1, self.base, last)
        if self.point != "nearest":  # everything up to the next power is truncated
            beyond = scaled(1, self.base, last + self.mantissa_digits)
            most = float(np.nextafter(beyond, 0))
        return Bounds(scaled(self.least, self.base, first), most)

    @property
    def error(self) -> LargestError:
        least = float(self.least)
        return LargestError(1 / (least + 1) if self.point == "edge" else 0.5 / least)

    @cached_property
    def covered(self) -> tuple[Bounds, Bounds]:
        low, high = self.ends(np.array([0, self.most]))
        return Bounds(-float(high[1]), -float(low[0])), Bounds(float(low[0]), float(high[1]))


class DecimalScheme(FloatingScheme):
    """Base class for the schemes from Charton (2022). A number is a sign, an integer mantissa and
    an exponent: -60.2 is -602E-1. The schemes differ only in how these three parts are grouped into
    tokens."""

    exponents: Interval

    def __post_init__(self) -> None:
        """Reject exponents whose numbers exceed float64."""
        digits, exponents = self.mantissa_digits, self.exponents
        if exponents.first + digits - 1 < -307 or exponents.last + digits > 308:
            raise UsageError(
                f"{name_of(self)}: exponents must lie within {-306 - digits}..{308 - digits} for "
                f"{digits} digits in float64 (got {exponents})"
            )

    @property
    def mantissa_exponents(self) -> Interval:
        return self.exponents

    def signed(self, units: Units) -> tuple[Ints, Ints]:
        """Return the indices of the signed mantissas (negative ones follow positive ones) and of
        the exponents of numbers given in units, int64[n] each."""
        exponent, mantissa = np.divmod(units.counts, self.steps)
        return units.negative * self.steps + mantissa, exponent

    def from_signed(self, signed: Ints, exponent: Ints) -> Units:
        """Return the numbers with these signed mantissas and exponents, int64[n] each, in units.
        This is the inverse of :meth:`signed`."""
        return Units(exponent * self.steps + signed % self.steps, signed >= self.steps)


def exponent_tokens(exponents: Interval) -> tuple[str, ...]:
    """Return the exponent tokens ``E-8`` ... ``E+7``, as in Table 1 of the xVal paper."""
    return tuple(f"E{exponent:+d}" for exponent in range(exponents.first, exponents.last + 1))


def mantissa_tokens() -> tuple[str, ...]:
    """Return the mantissa tokens ``100`` ... ``999``."""
    return tuple(map(str, range(100, 1000)))
