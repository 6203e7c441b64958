"""Exact values and digits of literals, in plain Python without compiled kernels."""

from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    InvalidOperation,
)
from typing import NamedTuple

import numpy as np

from numtok.arrays import Bools, Floats, Int32s, Ints, UInt64s
from numtok.errors import UsageError

# Written exponents are clipped to this. No text has enough digits before the exponent to compensate
# for a larger one.
EXPONENT_LIMIT = 10**9
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
DIGITS_OF_FLOAT32 = 7  # significant digits that a float32 keeps
MOST_DIGITS = 15  # float64 distinguishes all numbers of this many decimal digits


class Significands(NamedTuple):
    """Sign, digits and exponents of n literals. Each number is about ``(-1)^negative * digits *
    10^exponents``."""

    digits: UInt64s  # [n] up to 19 leading significant digits
    exponents: Int32s  # [n] 0 for a zero
    negative: Bools  # [n]
    more: Bools  # [n] whether nonzero digits follow after the 19


def plain_literal(literal: str) -> str:
    """Return a literal in the form that ``float()`` and ``decimal.Decimal()`` accept.

    >>> plain_literal("−1,234.5%")
    '-1234.5e-2'
    """
    if not literal.endswith("%"):
        return literal.replace(",", "").replace("\u2212", "-")
    digits, power = _digits_and_power(literal)
    return f"{digits}e{power}"


def _digits_and_power(literal: str) -> tuple[str, int]:
    """Return the part before the exponent, and the power of ten from exponent and percent sign."""
    percent = literal.endswith("%")
    plain = literal.removesuffix("%").replace(",", "").replace("\u2212", "-").lower()
    digits, _, exponent = plain.partition("e")
    power = Decimal(exponent or 0)  # int() refuses more than 4300 digits
    if abs(power) > EXPONENT_LIMIT:
        power = Decimal(EXPONENT_LIMIT).copy_sign(power)
    return digits, int(power) - 2 * percent


def value_of(literal: str) -> float:
    """Return the float64 nearest to a literal. Raises ValueError if it is not a number."""
    return float(plain_literal(literal))


def exact_value(literal: str) -> Decimal:
    """Return the exact value of a literal, with its digits as written. Raises ValueError if it is
    not a number.

    >>> exact_value("1,234.50"), exact_value("5%"), exact_value("1e99999999999999999999")
    (Decimal('1234.50'), Decimal('0.05'), Decimal('1E+1000000000'))
    """
    digits, power = _digits_and_power(literal)
    try:
        return Decimal(digits).scaleb(power, _EXACT)
    except InvalidOperation:
        raise ValueError(f"{literal!r} is not a number") from None


def resolution(literal: str) -> float:
    """Return the place value of the last written digit. Raises ValueError if the literal is not a
    decimal number.

    >>> resolution("-1,234.50"), resolution("12%"), resolution("3e4")
    (0.01, 0.01, 10000.0)
    """
    written, power = _digits_and_power(literal)
    if not written.lstrip("+-").replace(".", "", 1).isdecimal():
        raise ValueError(f"{literal!r} is not a decimal number")
    return float(f"1e{power - len(written.partition('.')[2])}")


def round_literal(literal: str, digits: int) -> tuple[bool, int, int]:
    """Return the sign (True for minus), mantissa and exponent of a literal, rounded to ``digits``
    digits.

    This gives the same results as :meth:`Numerals.rounded`, but with Python's decimal arithmetic
    instead of kernels. It is used in evaluation, and as a reference in tests.

    >>> round_literal("9.996", 3)
    (False, 100, -1)
    """
    written, power = _digits_and_power(literal)
    exact = Decimal(written)
    if not exact:
        return exact.is_signed(), 0, 0
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-(10**9), Emax=10**9)
    sign, kept, exponent = context.plus(exact).as_tuple()
    assert isinstance(exponent, int)  # a finite decimal
    missing = digits - len(kept)
    return bool(sign), int("".join(map(str, kept))) * 10**missing, exponent - missing + power


def check_digits(name: str, whole: int, decimals: int) -> None:
    """Raise UsageError unless the total number of digits, ``whole`` before the decimal point plus
    ``decimals`` after it, is from 1 to 15. float64 distinguishes all numbers with at most 15
    digits."""
    if not 1 <= whole + decimals <= MOST_DIGITS:
        raise UsageError(
            f"{name}: whole and decimals must add up to 1 to {MOST_DIGITS} digits, which float64 "
            f"keeps (got whole={whole},decimals={decimals})"
        )


def units_of(values: Floats, decimals: int) -> Ints:
    """Return the magnitudes of finite numbers as multiples of ``10**-decimals``, rounded to
    integers, int64[n].

    The result is exact for numbers written with up to 15 digits. Larger results are capped at
    10^15.

    >>> units_of(np.array([17.5, -0.1, 1e300]), 1).tolist()
    [175, 1, 1000000000000000]
    """
    most = 10.0**MOST_DIGITS
    sizes = np.minimum(np.abs(values), most / 10.0**decimals) * 10.0**decimals
    return np.rint(sizes).astype(np.int64)
