"""Exact conversion between numbers and ``mantissa * base^exponent`` with few digits, in any base.

No logarithm is used. The exponent is found among the powers of the base and the mantissa by one
division; if rounding could change the result, integer arithmetic is used.
"""

from functools import lru_cache

import numpy as np

from numtok.arrays import Bools, Floats, Ints
from numtok.errors import UsageError, unknown
from numtok.numerals.column import Numerals, Rounded
from numtok.setting_values import Interval

SIGNS = ("+", "-")
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # for bases up to 36
POINTS = ("edge", "centre", "nearest")
MOST_CELLS = 2**50  # float64 can still distinguish this many, with room for halves

_LARGEST = int(np.finfo(np.float64).max)
_POWERS_OF_TEN = np.uint64(10) ** np.arange(20, dtype=np.uint64)
_MOST_COPIES = 15
_DOUBT = 2.0**-48  # relative margin; three roundings add up to 2^-51


@lru_cache(1 << 14)
def _power(base: int, exponent: int) -> int:
    return int(base**exponent)


def scaled(numerator: int, base: int, exponent: int, denominator: int = 1) -> float:
    """Return the float64 nearest to ``numerator * base^exponent / denominator``.

    >>> scaled(60200, 10, -3), scaled(3, 10, 0, 2)
    (60.2, 1.5)
    """
    if exponent >= 0:  # the quotient of two integers is correctly rounded
        return numerator * _power(base, exponent) / denominator
    return numerator / (denominator * _power(base, -exponent))


@lru_cache
def exponents_of(base: int) -> Interval:
    """Return all exponents ``e`` for which float64 represents every number from ``base^e`` to
    ``base^(e+1)`` with full precision.

    >>> exponents_of(10), exponents_of(2)
    (Interval(first=-307, last=307), Interval(first=-1022, last=1022))
    """
    high, low = 0, 0
    while base ** (high + 2) <= _LARGEST:
        high += 1
    while base ** (low + 1) <= 2**1022:
        low += 1
    return Interval(-low, high)


@lru_cache
def _powers(base: int) -> Floats:
    """Return the powers of the base as float64, from one below :func:`exponents_of` to one
    above."""
    exponents = exponents_of(base)
    powers = range(exponents.first - 1, exponents.last + 2)
    return np.array([scaled(1, base, exponent) for exponent in powers])


@lru_cache
def _exact_powers(base: int) -> Floats:
    """Return the powers of the base that float64 represents exactly, starting at exponent 0."""
    powers, power = [], 1
    while power <= _LARGEST and int(float(power)) == power:
        powers.append(float(power))
        power *= base
    return np.array(powers)


def rounded(numerals: Numerals, base: int, digits: int, nearest: bool) -> Rounded:
    """Round numbers to ``digits`` digits in a base, with ties to even, or truncate them if
    ``nearest`` is False.

    In base 10, the digits are taken from the literal as written. In other bases they are taken from
    the float64, and truncation is consistent with the values that :func:`compose` returns. Numbers
    outside the range of :func:`exponents_of` get an exponent outside that range; zero, NaN and
    infinities get the mantissa 0.
    """
    if base == 10:
        return numerals.rounded(digits) if nearest else _cut(numerals, digits)
    values, sizes, exponents = numerals.values, np.abs(numerals.values), exponents_of(base)
    powers, lead = _powers(base), base ** (digits - 1)
    above, below = numerals.out_of_float64()
    index_of_power = np.searchsorted(powers, sizes, "right") - 1
    normal = np.isfinite(values) & (index_of_power >= 0)
    index_of_power, sizes = np.where(normal, index_of_power, 1), np.where(normal, sizes, powers[1])
    exponent = index_of_power + exponents.first - 1

    quotient = sizes / powers[index_of_power] * lead
    mantissa = np.rint(quotient) if nearest else np.floor(quotient)
    off = np.abs(quotient - np.floor(quotient) - 0.5)  # distance from the decision boundary
    doubtful = (off if nearest else 0.5 - off) <= quotient * _DOUBT
    mantissa = mantissa.astype(np.int64)
    doubtful |= index_of_power == 0  # subnormal powers have fewer digits
    for index in np.flatnonzero(doubtful & (exponent <= exponents.last)).tolist():
        unit = int(exponent[index]) - digits + 1
        mantissa[index] = (
            _nearest(float(sizes[index]), base, unit)
            if nearest
            else _below(float(sizes[index]), int(mantissa[index]), base, unit)
        )
    carried = mantissa == base**digits
    mantissa[carried] = lead
    exponent = exponent + carried
    exponent[above] = exponents.last + 1
    exponent[~normal & ~above] = exponents.first - 1
    mantissa[(~np.isfinite(values) & ~above) | ((values == 0) & ~below)] = 0
    return Rounded(np.signbit(values), mantissa, (exponent - digits + 1).astype(np.int32))


def _cut(numerals: Numerals, digits: int) -> Rounded:
    """Truncate decimal numbers, as written, to the first few digits."""
    words, exponents, negative, _ = numerals.significands
    excess = np.searchsorted(_POWERS_OF_TEN, words, "right") - digits
    kept = words // _POWERS_OF_TEN[np.maximum(excess, 0)]
    mantissa = kept * _POWERS_OF_TEN[np.maximum(-excess, 0)]
    exponent = np.where(words == 0, 0, exponents + excess).astype(np.int32)
    return Rounded(negative, mantissa.astype(np.int64), exponent)


def _nearest(size: float, base: int, unit: int) -> int:
    """Return ``size / base^unit`` as an integer, rounded half to even."""
    numerator, denominator = size.as_integer_ratio()
    numerator *= _power(base, max(-unit, 0))
    denominator *= _power(base, max(unit, 0))
    mantissa, rest = divmod(numerator, denominator)
    return mantissa + (2 * rest > denominator or (2 * rest == denominator and mantissa % 2 == 1))


def _below(size: float, guess: int, base: int, unit: int) -> int:
    """Return the largest mantissa whose value is at most ``size``."""
    while size < scaled(guess, base, unit):
        guess -= 1
    while size >= scaled(guess + 1, base, unit):
        guess += 1
    return guess


def digits_of(numbers: Ints, base: int, count: int) -> list[Ints]:
    """Return the last ``count`` digits of each number [n], most significant first."""
    return [numbers // base**power % base for power in range(count - 1, -1, -1)]


def number_of(digits: Ints, base: int) -> Ints:
    """Return the numbers with the given digits [n, count], int64[n]. This is the inverse of
    :func:`digits_of`.

    >>> number_of(np.array([[6, 0, 2]]), 10)
    array([602])
    """
    numbers: Ints = digits @ base ** np.arange(digits.shape[1] - 1, -1, -1)
    return numbers


def compose(
    negative: Bools, mantissa: Ints, exponent: Ints, base: int = 10, denominator: int = 1
) -> Floats:
    """Return the float64 nearest to each ``mantissa * base^exponent / denominator`` [n], with a
    denominator of 1 or 2. In base 10, the result is bit-identical to ``float("602E-1")``.

    One division or multiplication of exact operands is correctly rounded; only larger exponents
    need integer arithmetic.
    """
    magnitude, powers = mantissa.astype(np.float64), _exact_powers(base)
    power = powers[np.minimum(np.abs(exponent), len(powers) - 1)]
    with np.errstate(over="ignore"):
        values = np.where(exponent < 0, magnitude / power, magnitude * power) / denominator
    for index in np.flatnonzero((np.abs(exponent) >= len(powers)) | (mantissa >= 2**53)).tolist():
        values[index] = scaled(int(mantissa[index]), base, int(exponent[index]), denominator)
    return np.where(negative, -values, values)


def nearest_spans(mantissa: Ints, exponent: Ints, base: int, digits: int) -> tuple[Floats, Floats]:
    """Return the interval of magnitudes that round to ``mantissa * base^exponent`` with the given
    number of digits: low and high ends, float64[n] each. Steps are finer below a power of the base.

    >>> nearest_spans(np.array([100, 602]), np.array([0, -1]), 10, 3)
    (array([99.95, 60.15]), array([100.5 ,  60.25]))
    """
    positive = np.zeros(len(mantissa), np.bool_)
    finer = mantissa == base ** (digits - 1)
    twice = np.where(finer, 2 * mantissa * base - 1, 2 * mantissa - 1)
    low = compose(positive, twice, exponent - finer, base, 2)
    return low, compose(positive, 2 * mantissa + 1, exponent, base, 2)


def check_setting(name: str, key: str, value: int, allowed: Interval) -> None:
    """Raise UsageError if a value is outside the allowed interval."""
    if value not in allowed:
        raise UsageError(
            f"{name}: {key} must be from {allowed.first} to {allowed.last} (got {value})"
        )


def check_shared_settings(
    name: str, base: int, point: str, repeat: int, most: int = len(DIGITS)
) -> None:
    """Raise UsageError if the base, the point or the number of copies is invalid."""
    check_setting(name, "base", base, Interval(2, most))
    check_setting(name, "repeat", repeat, Interval(1, _MOST_COPIES))
    if point not in POINTS:
        raise unknown(f"point of {name!r}", point, POINTS)


def check_digits(name: str, key: str, digits: int, base: int) -> None:
    """Raise UsageError if there are more digits than float64 can distinguish."""
    most = next(count for count in range(50, 0, -1) if base**count <= MOST_CELLS)
    check_setting(name, key, digits, Interval(1, most))
