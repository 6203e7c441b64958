"""Decimal numbers sampled by digits and decades, shared by the tasks of BitTokens' benchmark.

A number is ``mantissa * 10^place``, stored in two columns of integers. Sampling only uses
elementwise IEEE arithmetic and tables, so the results are the same on every machine.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints

LEAST, MOST = 1e-14, 1e15  # bounds of all magnitudes, the second excluded
DECADES = range(-14, 15)
MOST_DIGITS = 17
_LONGEST = 18  # digits of a mantissa
_FIRST_POWER = -64
_POWERS = np.array([float(f"1e{k}") for k in range(_FIRST_POWER, 65)])
_AT_ONCE = 9  # digits sampled from one uniform number
ANSWER_DIGITS = 15
_ANSWERS = Context(prec=ANSWER_DIGITS, rounding=ROUND_HALF_EVEN)
EXACT = Context(prec=1000)


class Decimals(NamedTuple):
    """Numbers ``mantissa * 10^place``, stored as two columns of the same shape."""

    mantissas: Ints
    places: Ints

    @property
    def values(self) -> Floats:
        """The numbers rounded to float64, of the same shape as each column."""
        return self.mantissas * power(self.places)

    @property
    def shortest(self) -> "Decimals":
        """The same numbers with trailing zeros removed from the mantissas; the place of 0 is 0.

        >>> Decimals(np.array([1200, 0]), np.array([-1, 3])).shortest
        Decimals(mantissas=array([12,  0]), places=array([1, 0]))
        """
        mantissas, places = self.mantissas, self.places
        for _ in range(_LONGEST):
            even = (mantissas % 10 == 0) & (mantissas != 0)
            mantissas, places = np.where(even, mantissas // 10, mantissas), places + even
        return Decimals(mantissas, np.where(mantissas == 0, 0, places))


def power(exponents: Ints) -> Floats:
    """Return powers of ten (float64 of any shape) for exponents from -64 to 64."""
    return _POWERS[exponents - _FIRST_POWER]


def whole(share: Floats, low: Ints | int, high: Ints | int) -> Ints:
    """Convert uniform numbers in [0, 1) to uniform integers (int64[n]) from ``low`` to ``high``.

    >>> whole(np.array([0.0, 0.5, 0.99]), 2, 5).tolist()
    [2, 4, 5]
    """
    integers: Ints = low + np.floor(share * (high - np.asarray(low) + 1)).astype(np.int64)
    return integers


def mantissas(first: Floats, second: Floats, digits: Ints) -> Ints:
    """Sample uniform integers (int64[n]) with ``digits`` [n] digits (1 to 18) each.

    ``first`` and ``second`` are uniform numbers [n] in [0, 1).

    >>> mantissas(np.array([0.0, 0.5]), np.array([0.5, 0.25]), np.array([1, 12])).tolist()
    [1, 550000000250]
    """
    leading = np.minimum(digits, _AT_ONCE)
    rest = 10 ** (digits - leading)
    low = 10 ** (leading - 1)
    return whole(first, low, 10 * low - 1) * rest + whole(second, 0, rest - 1)


def rounded(values: Floats, digits: Ints) -> Decimals:
    """Round nonzero numbers of any shape to ``digits`` digits (1 to 17) each.

    The magnitudes must be between 1e-40 and 1e40.

    >>> rounded(np.array([-12.345, 0.00067]), np.array([3, 1]))
    Decimals(mantissas=array([-123,    7]), places=array([-1, -4]))
    """
    sizes = np.abs(values)
    decades = np.searchsorted(_POWERS, sizes, "right") - 1 + _FIRST_POWER
    places = decades - digits + 1
    units = np.rint(sizes * power(-places)).astype(np.int64)
    return Decimals(np.where(values < 0, -units, units), places)


def is_inside(values: Floats) -> NDArray[np.bool_]:
    """Return a mask (bool[n]) of the numbers whose magnitude is in the benchmark's range."""
    return (np.abs(values) >= LEAST) & (np.abs(values) < MOST)


def exact(mantissa: int, place: int) -> Decimal:
    """Return ``mantissa * 10^place`` exactly."""
    return Decimal(mantissa).scaleb(place, EXACT)


def plain(number: Decimal) -> str:
    """Format a number without exponent and without trailing zeros.

    >>> plain(Decimal("12.50")), plain(Decimal("1E+3")), plain(Decimal("-0.0"))
    ('12.5', '1000', '0')
    """
    short = number.normalize(EXACT)
    return f"{short:f}" if short else "0"


def answered(number: Decimal) -> str:
    """Round a number to 15 digits, with ties to even, and format it like :func:`plain`.

    >>> answered(Decimal("0.12345678901234565"))
    '0.123456789012346'
    """
    return plain(_ANSWERS.plus(number))


def quotient(numerator: Decimal, denominator: Decimal) -> str:
    """Format a quotient like :func:`answered`. It is only rounded once.

    >>> quotient(Decimal(2), Decimal(3))
    '0.666666666666667'
    """
    return plain(_ANSWERS.divide(numerator, denominator))


def nonzero_digits(number: Decimal) -> int:
    """Return the number of nonzero digits of a number.

    >>> nonzero_digits(Decimal("-10.203"))
    3
    """
    return sum(map(bool, number.as_tuple().digits))
