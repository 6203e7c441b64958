"""What the schemes of Charton (2022) share: a sign, a mantissa of few digits, an exponent.

A number is rounded to ``digits`` significant digits and written as
``sign mantissa E exponent`` with an integer mantissa, so -60.2 is -602E-1. The
schemes differ only in how these three are grouped into tokens.
"""

from abc import abstractmethod
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes._radix import compose, nearest_spans
from numtok.encoding.schemes._slots import SlotScheme, parts_of
from numtok.encoding.schemes.base import Bounds
from numtok.errors import UsageError
from numtok.numerals.column import Numerals, Rounded
from numtok.registry import Interval, name_of


class DecimalScheme(SlotScheme):
    """Sign, mantissa and exponent; leaves say how, and have the exponents in the last slot."""

    exponents: Interval

    def __post_init__(self) -> None:
        """Refuse exponents whose numbers float64 cannot hold."""
        digits, exponents = self.mantissa_digits, self.exponents
        if exponents.first + digits - 1 < -307 or exponents.last + digits > 308:
            raise UsageError(
                f"{name_of(self)}: exponents={exponents} reaches beyond float64; with {digits} "
                f"digits {-306 - digits}..{308 - digits} is the widest range"
            )

    @property
    def mantissa_digits(self) -> int:
        """Significant digits that are kept."""
        return 3

    @abstractmethod
    def write(self, number: Rounded) -> tuple[NDArray[Any], ...]:
        """The local ids at each position, integers or bools [n] each; exponents count from
        ``exponents.first``."""

    @abstractmethod
    def read(self, tokens: NDArray[np.int64]) -> Rounded:
        """The inverse of :meth:`write` for int64[n, slots] within :meth:`slots`."""

    @property
    def repeat(self) -> int:
        return 1

    @property
    def bounds(self) -> Bounds:
        smallest = Decimal(10) ** (self.mantissa_digits - 1 + self.exponents.first)
        largest = (Decimal(10) ** self.mantissa_digits - 1).scaleb(self.exponents.last)
        return Bounds(float(smallest), float(largest))

    @property
    def error(self) -> float:
        return 0.5 * 10.0 ** (1 - self.mantissa_digits)

    @property
    def covered(self) -> tuple[Bounds, Bounds]:
        digits, exponents = self.mantissa_digits, [self.exponents.first, self.exponents.last]
        ends = np.array([10 ** (digits - 1), 10**digits - 1]), np.array(exponents)
        (least, _), (_, most) = (part.tolist() for part in nearest_spans(*ends, 10, digits))
        return Bounds(-most, -least), Bounds(least, most)

    def write_numbers(self, numerals: Numerals) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        rounded = numerals.rounded(self.mantissa_digits)
        outcomes, number = parts_of(
            numerals, rounded, self.exponents, 10 ** (self.mantissa_digits - 1)
        )
        exponent = number.exponent.astype(np.int64) - self.exponents.first
        tokens = np.empty((len(numerals), len(self.slots())), np.uint32)
        for position, ids in enumerate(self.write(number._replace(exponent=exponent))):
            tokens[:, position] = ids
        return outcomes, tokens

    def read_numbers(self, table: NDArray[np.int64]) -> NDArray[np.float64]:
        negative, mantissa, exponent = self.read(table)
        return compose(negative, mantissa, exponent + self.exponents.first)

    def spans(self, table: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        negative, mantissa, exponent = self.read(table)
        exponent = exponent + self.exponents.first
        low, high = nearest_spans(mantissa, exponent, 10, self.mantissa_digits)
        return np.where(negative, -high, low), np.where(negative, -low, high)


def exponent_tokens(exponents: Interval) -> tuple[str, ...]:
    """``E-8`` ... ``E+7``, as Table 1 of the xVal paper writes them."""
    return tuple(f"E{exponent:+d}" for exponent in range(exponents.first, exponents.last + 1))
