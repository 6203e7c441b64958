"""Formats numbers for people: as short as their uncertainty allows."""

import math
from typing import Protocol, runtime_checkable

from numtok.analysis.profiling.short_values import compact


@runtime_checkable
class Measured(Protocol):
    """A value with an interval: a metric of a report, or statistics over seeds."""

    @property
    def value(self) -> float | None:
        """The measured value; None if it is not defined."""

    @property
    def low(self) -> float | None:
        """The lower end of its interval; None if that is unknown."""

    @property
    def high(self) -> float | None:
        """The upper end of its interval; None if that is unknown."""


class Told(str):
    """A number as a person reads it; ``key`` is the number, by which tables of pages are sorted."""

    key: float | None

    def __new__(cls, text: str, key: float | None) -> "Told":
        told = super().__new__(cls, text)
        told.key = key
        return told


def number(value: float | None) -> Told:
    """Format a number with four digits; just below 1, with enough digits to differ from 1.

    >>> from math import inf
    >>> [number(value) for value in (0.99998, 1 - 3e-12, 0.6071, 12345.6, 0.00001234, -inf)]
    ['0.99998', '1 - 3e-12', '0.6071', '1.235e4', '1.234e-5', '-inf']
    """
    return Told("-" if value is None else _number(value), value)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return f"{value}"
    size = abs(value)
    if 0.9 < size < 1:
        if value > 1 - 1e-12:  # no more than rounding
            return "1"
        if value > 1 - 1e-8:
            return f"1 - {1 - value:.0e}".replace("e-0", "e-")
        digits = 1 + math.ceil(-math.log10(1 - size))
        return f"{value:.{max(4, digits)}f}".rstrip("0")
    if size and not 1e-3 <= size < 1e4:
        return compact(f"{value:.3e}")
    return _signed(f"{value:.4g}")


def figure(found: Measured | None) -> Told:
    """Format a value and its interval, to the digits that the interval leaves certain.

    The value has at least two digits, as seeds are few.

    >>> figure(Figure(0.99912, 0.99893, 0.99931, 500)), figure(Figure(-0.404, -4.1, 1.2, 2))
    ('0.9991 [0.9989, 0.9993]', '-0.40 [-4, 1]')
    """
    if found is None or found.value is None:
        return Told("-", None)
    return interval(found.value, found.low, found.high)


def interval(value: float, low: float | None, high: float | None, *, apart: bool = False) -> Told:
    """Format a value and an interval; the value alone if the interval is unknown or has no width.

    With ``apart`` an end looks like 0 only if it is.

    >>> interval(0.073, 0.004, 0.84), interval(0.073, 0.004, 0.84, apart=True)
    ('0.073 [0.0, 0.8]', '0.073 [0.004, 0.840]')
    >>> interval(0.315, -24.0, 0.4)
    '0.32 [-24, 0.40]'
    """
    if low is None or high is None:
        return number(value)
    largest = max(abs(value), abs(low), abs(high))
    if high - low <= 1e-12 * largest:  # no more than rounding
        return number(value)
    digits = -math.floor(math.log10((high - low) / 3))
    if apart and (least := min(abs(low), abs(high))):
        digits = max(digits, -math.floor(math.log10(least)))
    if not 1e-3 <= largest < 1e5:
        exponent = math.floor(math.log10(largest))
        places = min(15, max(1, digits + exponent))
        value_, low_, high_ = (compact(f"{one:.{places}e}") for one in (value, low, high))
    else:
        if abs(value) >= 10.0**-digits:  # two digits of the value, if one place more gives them
            digits = max(digits, min(digits + 1, 1 - math.floor(math.log10(abs(value)))))
        places = min(15, max(0, digits))
        value_, low_, high_ = (_signed(f"{one:.{places}f}") for one in (value, low, high))
        if abs(value) > 1e-12 * largest:  # two digits of the value, however wide the interval
            own = max(places, 1 - math.floor(math.log10(abs(value))))
            value_ = _two_digits(value, own)
            # An end that rounds past the value has the digits of the value.
            low_ = _two_digits(low, own) if float(low_) > float(value_) else low_
            high_ = _two_digits(high, own) if float(high_) < float(value_) else high_
    return Told(f"{value_} [{low_}, {high_}]", value)


def _two_digits(value: float, places: int) -> str:
    """Format a value to this many decimals, or below 1e-3 to two digits in scientific notation."""
    return number(float(f"{value:.1e}")) if abs(value) < 1e-3 else _signed(f"{value:.{places}f}")


def amount(value: float) -> Told:
    """``amount(1_280_000) -> "1.28M"``"""
    for size, unit in ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")):
        if value < 999.5 * size:
            return Told(f"{value / size:.3g}{unit}", value)
    return number(value)


def duration(seconds: float | None) -> Told:
    """``duration(5400) -> "1.5 h"``"""
    if seconds is None:
        return Told("-", None)
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return Told(f"{seconds / size:.3g} {unit}", seconds)
    return Told(f"{seconds:.3g} s", seconds)


def share(value: float | None) -> Told:
    """``share(0.0123) -> "1.23%"``"""
    return Told("-" if value is None else f"{100 * value:.3g}%", value)


def _signed(text: str) -> str:
    """``"-0.00" -> "0.00"``"""
    return text if float(text) else text.removeprefix("-")


def ends(found: Measured) -> dict[str, float | None]:
    """Return a value and its interval as fields of CSV."""
    return {"figure": found.value, "low": found.low, "high": found.high}
