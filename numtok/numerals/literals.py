"""Literals as written: value and digits, exactly, in plain Python; no kernel."""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import NamedTuple

import numpy as np

from numtok.arrays import Bools, Floats, Int32s, Ints, UInt64s
from numtok.errors import UsageError

# Written exponents are taken as at most this. More zeros than that fit into no text, so
# no digits before the exponent can make up for it.
_EXPONENT_LIMIT = 10**9
DIGITS_OF_FLOAT32 = 7  # significant digits that a float32 keeps
MOST_DIGITS = 15  # float64 distinguishes all numbers of this many decimal digits


class Significands(NamedTuple):
    """The digits of literals: a number is about ``(-1)^negative * digits * 10^exponents``."""

    digits: UInt64s  # [n] the first 19 significant digits, fewer if there are fewer
    exponents: Int32s  # [n] 0 for a zero
    negative: Bools  # [n]
    more: Bools  # [n] digits that are not zero follow after the 19


def plain_literal(literal: str) -> str:
    """A numeral as ``float()`` and ``decimal.Decimal()`` read it.

    >>> plain_literal("−1,234.5%")
    '-1234.5e-2'
    """
    if not literal.endswith("%"):
        return literal.replace(",", "").replace("\u2212", "-")
    digits, power = _digits_and_power(literal)
    return f"{digits}e{power}"


def _digits_and_power(literal: str) -> tuple[str, int]:
    """What stands before the exponent, and the power of ten that exponent and percent make."""
    percent = literal.endswith("%")
    plain = literal.removesuffix("%").replace(",", "").replace("\u2212", "-").lower()
    digits, _, exponent = plain.partition("e")
    power = Decimal(exponent or 0)  # int() refuses more than 4300 digits
    if abs(power) > _EXPONENT_LIMIT:
        power = Decimal(_EXPONENT_LIMIT).copy_sign(power)
    return digits, int(power) - 2 * percent


def value_of(literal: str) -> float:
    """The float64 nearest to one literal; ValueError if it is no number."""
    return float(plain_literal(literal))


def resolution(literal: str) -> float:
    """What a unit of the last written digit is worth; ValueError if it is no decimal number.

    >>> resolution("-1,234.50"), resolution("12%"), resolution("3e4")
    (0.01, 0.01, 10000.0)
    """
    written, power = _digits_and_power(literal)
    if not written.lstrip("+-").replace(".", "", 1).isdecimal():
        raise ValueError(f"{literal!r} is no decimal number")
    return float(f"1e{power - len(written.partition('.')[2])}")


def round_literal(literal: str, digits: int) -> tuple[bool, int, int]:
    """One literal rounded by Python's decimal arithmetic: what :meth:`Numerals.rounded` does,
    where no kernel is at hand (evaluation), and its oracle.

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
    """Raise UsageError where numbers of ``whole`` digits before the point and ``decimals`` behind
    it are more than float64 holds."""
    if not 1 <= whole + decimals <= MOST_DIGITS:
        raise UsageError(
            f"{name}: whole={whole},decimals={decimals} is not possible; together they are 1 to "
            f"{MOST_DIGITS} digits, which float64 keeps"
        )


def units_of(values: Floats, decimals: int) -> Ints:
    """int64[n]: sizes of finite numbers in units of the last of so many decimals, the nearest.

    Exact for what was written with up to 15 digits; at most 10^15.

    >>> units_of(np.array([17.5, -0.1, 1e300]), 1).tolist()
    [175, 1, 1000000000000000]
    """
    most = 10.0**MOST_DIGITS
    sizes = np.minimum(np.abs(values), most / 10.0**decimals) * 10.0**decimals
    return np.rint(sizes).astype(np.int64)
