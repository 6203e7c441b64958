"""Types of setting values, and how specs, messages and stored JSON represent them."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from typing import Any

from numtok.errors import UsageError


@dataclass(frozen=True)
class Interval:
    """Inclusive range of integers, written ``-8..7``."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise UsageError(f"interval {self}: the first number must not exceed the last")

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    @classmethod
    def parse(cls, text: str) -> "Interval":
        """Parse an interval such as ``-8..7``. Raises ValueError for text of any other form."""
        match = re.fullmatch(r"([+-]?\d+)\.\.([+-]?\d+)", text)
        if match is None:
            raise ValueError(text)
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class Range:
    """Inclusive range of numbers, written ``0..0.1``; ``2`` is short for ``2..2``."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise UsageError(f"range {self}: the first number must not exceed the last")

    def __str__(self) -> str:
        ends = [repr(end).removesuffix(".0") for end in (self.low, self.high)]
        return ends[0] if self.low == self.high else "..".join(ends)

    @classmethod
    def parse(cls, text: str) -> "Range":
        """Parse a range such as ``0..0.1`` or a single number. Raises ValueError for text of any
        other form."""
        low, dots, high = text.partition("..")
        return cls(float(low), float(high if dots else low))


_YES_NO = {"yes": True, "true": True, "True": True, "no": False, "false": False, "False": False}

#: For each type of setting, the function that parses a string, and what the string must be.
READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (int, "an integer"),
    float: (float, "a number"),
    bool: (_YES_NO.__getitem__, "yes or no"),
    str: (str, "a string"),
    Path: (Path, "a path"),
    Interval: (Interval.parse, "a range like -8..7"),
    Range: (Range.parse, "a number, or a range like 0.5..2"),
}
#: Types that a setting of a registered part may have. None means not learned yet, or not set.
SPEC_TYPES = (int, float, bool, str, str | None, int | None, float | None, Interval, Range)


class Bare(str):
    """Implied value of a spec key that is written without a value: ``yes`` for ``key`` and ``no``
    for ``no-key``."""


def shown_value(value: Any) -> str:
    """Return a value as displayed in messages: strings in quotes, large floats with an exponent.

    >>> shown_value(3e9), shown_value(0.25), shown_value("a b")
    ('3e9', '0.25', "'a b'")
    """
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, float) and abs(value) >= 1e6 and math.isfinite(value):
        mantissa, _, exponent = f"{value:e}".partition("e")
        short = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
        return short if float(short) == value else repr(value)
    return str(value)


def with_value(wrong: str, shown: str) -> str:
    """Return a message with the rejected value inserted after the rule, before any advice.

    >>> with_value("must be even. Leave it out", "3")
    'must be even (got 3). Leave it out'
    """
    rule, stop, remedy = wrong.partition(". ")
    return f"{rule} (got {shown}){stop}{remedy}"


def as_python(value: Any) -> Any:
    """Return a NumPy number, as in a grid of values, as a Python number; other values unchanged.

    >>> as_python(np.int64(3))
    3
    """
    return value.item() if isinstance(value, Number) and hasattr(value, "item") else value


def as_stored(value: Any) -> Any:
    """Convert the value of a setting for storage as JSON. Intervals and ranges become strings."""
    return str(value) if isinstance(value, Interval | Range) else value


def as_spec(value: Any) -> str:
    """Convert the value of a setting to text for a spec. A bool becomes ``yes`` or ``no``."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
