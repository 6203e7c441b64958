"""Formatting of numbers, with no more digits than their uncertainty justifies.

All tables, pages and sentences use these functions. JSON and CSV keep full precision.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from numtok.analysis.profiling.short_values import compact

_PLAIN = (1e-3, 1e6)  # numbers in this range have no exponent
_SATURATED = 0.999  # scores above it are shown as their complement
_NOISE = 1e-12  # relative differences below it are no more than rounding
_LEAST_P = 1e-4  # smaller p-values are not printed exactly


@runtime_checkable
class Measured(Protocol):
    """Protocol for values with an interval, such as metrics or statistics over seeds."""

    @property
    def value(self) -> float | None:
        """The measured value, or None if it is undefined."""

    @property
    def low(self) -> float | None:
        """The lower end of the interval, or None if it is unknown."""

    @property
    def high(self) -> float | None:
        """The upper end of the interval, or None if it is unknown."""


class Formatted(str):
    """A formatted number, optionally with an interval and a mark: ``0.031 [0.012, 0.050] *``.

    Attributes
    ----------
    key
        The number itself, or None. Tables on HTML pages are sorted by it.
    value
        The text without the interval: ``0.031 *``.
    ends
        The formatted ends of the interval; empty without an interval.
    """

    key: float | None
    value: str
    ends: tuple[str, str] | tuple[()]

    def __new__(
        cls, text: str, key: float | None, ends: tuple[str, str] | tuple[()] = (), mark: str = ""
    ) -> "Formatted":
        interval = f" [{', '.join(ends)}]" if ends else ""
        formatted = super().__new__(cls, f"{text}{interval}{mark}")
        formatted.key, formatted.value, formatted.ends = key, f"{text}{mark}", ends
        return formatted

    @property
    def between(self) -> str:
        """The interval as shown in a separate column: ``0.012 to 0.050``."""
        return " to ".join(self.ends)

    @property
    def alone(self) -> "Formatted":
        """A copy without the interval."""
        return Formatted(self.value, self.key)

    def marked(self, mark: str) -> "Formatted":
        """Return a copy with ``mark``, such as `` *``, after the number."""
        return Formatted(self.value, self.key, self.ends, mark)


def number(value: float | None) -> Formatted:
    """Format a number with at most four significant digits, or None as ``-``.

    A number that would be rounded to 1 is written as ``1 - difference``.

    >>> from math import inf
    >>> [str(number(value)) for value in (0.99998, 0.6071, 12345.6, 0.00001234, 2.5e6, -inf)]
    ['1 - 2e-5', '0.6071', '12,350', '1.234e-5', '2.5e6', '-inf']
    """
    if value is None:
        return Formatted("-", None)
    if 0.99995 <= value < 1 - _NOISE:
        return Formatted(f"1 - {compact(f'{1 - value:.1e}')}", value)
    return Formatted(_four_digits(value), value)


def _four_digits(value: float) -> str:
    if not math.isfinite(value):
        return f"{value}"
    size = abs(value)
    if size and not _PLAIN[0] <= size < _PLAIN[1]:
        return compact(f"{value:.3e}")
    rounded = float(f"{value:.4g}")
    if abs(rounded) >= _PLAIN[1]:
        return compact(f"{value:.3e}")
    if abs(rounded) >= 1000:
        return f"{rounded:,.0f}"
    return _signed(f"{value:.4g}")


def figure(cell: Measured | float | None) -> Formatted:
    """Format a value with its interval, if it has one. Both are rounded so that half the width of
    the interval keeps two significant digits. None is shown as ``-``.

    >>> from numtok.reports import Figure
    >>> str(figure(Figure(0.9691, 0.9541, 0.9812, 500))), str(figure(Figure(12080, 7239, 18622, 9)))
    ('0.969 [0.954, 0.981]', '12,100 [7,200, 18,600]')
    """
    value = _value(cell)
    return Formatted("-", None) if value is None else interval(value, *_ends(cell))


def interval(
    value: float, low: float | None, high: float | None, *, apart: bool = False, unit: str = ""
) -> Formatted:
    """Format a value with its interval, or the value alone if the interval is unknown or has no
    width.

    Numbers are rounded so that half the width of the interval keeps two significant digits. With
    ``apart``, more digits are kept if an end other than 0 would be rounded to 0. ``unit`` is
    appended to the value and to the upper end.

    >>> str(interval(0.073, 0.004, 0.84)), str(interval(0.073, 0.0004, 0.84, apart=True))
    ('0.07 [0.00, 0.84]', '0.0730 [0.0004, 0.8400]')
    >>> str(interval(97.3, 95.18, 98.4, unit="%"))
    '97.3% [95.2, 98.4%]'
    >>> str(interval(4000.0, -5e5, 6e5))
    '4,000 [-500,000, 600,000]'
    """
    if low is None or high is None:
        return Formatted(f"{_four_digits(value)}{unit}", value)
    ends_and_value = (value, low, high)
    largest = max(map(abs, ends_and_value))
    if not all(map(math.isfinite, ends_and_value)) or high - low <= _NOISE * largest:
        return Formatted(f"{_four_digits(value)}{unit}", value)
    decimals = 1 - _exponent((high - low) / 2)
    if apart and (least := min(abs(low), abs(high))):
        decimals = max(decimals, -_exponent(least))
    if not _PLAIN[0] <= largest < _PLAIN[1]:
        digits = min(15, max(0, decimals + _exponent(largest)))
        texts = [compact(f"{number:.{digits}e}") for number in ends_and_value]
    else:
        texts = [_rounded(number, min(15, decimals)) for number in ends_and_value]
        if value and not _parsed(texts[0]) and abs(value) > _NOISE * largest:
            # A value that rounds to 0 in a wide interval keeps two digits of its own.
            own = min(15, 1 - _exponent(value))
            small = abs(value) < _PLAIN[0]
            texts[0] = compact(f"{value:.1e}") if small else _rounded(value, own)
            for index, end in ((1, low), (2, high)):  # an end must not round past the value
                if (_parsed(texts[index]) > _parsed(texts[0])) == (index == 1):
                    texts[index] = _rounded(end, own)
    return Formatted(f"{texts[0]}{unit}", value, (texts[1], f"{texts[2]}{unit}"))


def _parsed(text: str) -> float:
    return float(text.replace(",", ""))


def difference(measured: Measured | None, metric: str, *, apart: bool) -> Formatted:
    """Format a difference in a metric with its interval. Differences in fractions are in percentage
    points. ``apart`` is that of :func:`interval`."""
    if measured is None or measured.value is None:
        return Formatted("-", None)
    scale, unit = unit_of_difference(metric)
    low, high = (None if end is None else scale * end for end in (measured.low, measured.high))
    shown = interval(scale * measured.value, low, high, apart=apart, unit=unit)
    shown.key = measured.value
    return shown


def unit_of_difference(metric: str) -> tuple[int, str]:
    """Return the factor and the unit with which differences in a metric are shown: percentage
    points for fractions."""
    return (100, " pp") if metric_kind(metric) == "fraction" else (1, "")


def p_value(p: float | None) -> float | str | None:
    """Round a p-value to two significant digits; very small values are ``< 0.0001``.

    >>> p_value(0.0384), p_value(3e-9)
    (0.038, '< 0.0001')
    """
    if p is None:
        return None
    return f"< {_LEAST_P:.4f}" if p < _LEAST_P else two_digits(p)


def two_digits(value: float) -> float:
    """Round a number to two significant digits."""
    return float(f"{value:.2g}")


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def _rounded(value: float, decimals: int) -> str:
    """Round to this many decimals, or to tens and hundreds if negative."""
    return _signed(f"{round(value, decimals):,.{max(0, decimals)}f}")


#: Values of a column, with or without intervals.
Cells = Sequence[Measured | float | None]


def metric_cells(
    metric: str, values: Cells, others: Cells = (), *, score_is_plain: bool = False
) -> tuple[str, list[Formatted], list[Formatted]]:
    """Format one metric for several models, and for ``others`` such as baselines, in the same way.

    Fractions are shown as percentages. Values in ``others`` that have no interval are rounded
    like the model with the narrowest interval. A score that saturates at 1 is shown as
    ``1 - score`` in all cells if a model is above 0.999, unless ``score_is_plain``. Returns the
    column heading, the cells of ``values`` and the cells of ``others``.

    >>> metric_cells("r2", [0.99991, 0.969], [1.0])
    ('1 - r2', ['9e-5', '0.031'], ['0'])
    >>> metric_cells("relative-error-over", [0.025])
    ('relative-error-over', ['2.5%'], [])
    """
    kind = metric_kind(metric)
    complement = kind == "score" and not score_is_plain and _saturates(values)
    show = _complement if complement else percentage if kind == "fraction" else figure
    widths = [
        high - low for low, high in map(_ends, values) if low is not None and high is not None
    ]
    half = min(filter(None, widths), default=0.0) / 2
    with_widths = [
        _Range(value, value - half, value + half) if isinstance(value, float) else value
        for value in others
    ]
    rest = [show(cell).alone for cell in with_widths]
    return f"{'1 - ' * complement}{metric}", [*map(show, values)], rest


class _Range(NamedTuple):
    value: float
    low: float
    high: float


def score_cells(name: str, values: Cells) -> tuple[str, list[Formatted]]:
    """Return the heading and the cells of a score that saturates at 1, such as skill. If one is
    above 0.999, all are shown as ``1 - score``."""
    if _saturates(values):
        return f"1 - {name}", [*map(_complement, values)]
    return name, [*map(figure, values)]


def _saturates(values: Cells) -> bool:
    return any(value is not None and _SATURATED < value < 1 for value in map(_value, values))


@cache
def metric_kind(metric: str) -> Literal["fraction", "score", "plain"]:
    """Return the kind of a metric, which determines its format: a fraction, a score that saturates
    at 1, or a plain number."""
    from numtok.errors import NumtokError
    from numtok.metrics.base import METRICS

    try:
        low, high = METRICS.build(metric).bounds
    except NumtokError:  # of a plugin that is not installed
        return "plain"
    if high != 1:
        return "plain"
    return "fraction" if low == 0 else "score"


def _value(cell: Measured | float | None) -> float | None:
    return cell.value if isinstance(cell, Measured) else cell


def _ends(cell: Measured | float | None) -> tuple[float | None, float | None]:
    return (cell.low, cell.high) if isinstance(cell, Measured) else (None, None)


def percentage(cell: Measured | float | None) -> Formatted:
    """Format a fraction, with or without an interval, as a percentage."""
    value, (low, high) = _value(cell), _ends(cell)
    if value is None:
        return Formatted("-", None)
    scaled = (None if end is None else 100 * end for end in (low, high))
    shown = interval(100 * value, *scaled, unit="%")
    shown.key = value
    return shown


def _complement(cell: Measured | float | None) -> Formatted:
    value, (low, high) = _value(cell), _ends(cell)
    if value is None:
        return Formatted("-", None)
    rest, least, most = (
        None if end is None else 1 - end if abs(1 - end) > _NOISE else 0.0
        for end in (value, high, low)
    )
    assert rest is not None
    if least is not None:
        shown = interval(rest, least, most)
        shown.key = value
        return shown
    # Small values have two digits, because the subtraction loses the rest.
    text = _four_digits(rest) if rest > 1 - _SATURATED else compact(f"{rest:.1e}")
    return Formatted(text if rest else "0", value)


def amount(value: float) -> Formatted:
    """Format a count or a rate: ``amount(3712) -> "3,712"``, ``amount(1_280_000) -> "1.28M"``."""
    if value < 1e6:
        return Formatted(f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}", value)
    for size, unit in ((1e6, "M"), (1e9, "G")):
        if value < 999.5 * size:
            return Formatted(f"{value / size:.3g}{unit}", value)
    return number(value)


def duration(seconds: float | None) -> Formatted:
    """Format a number of seconds in a suitable unit: ``duration(5400) -> "1.5 h"``."""
    if seconds is None:
        return Formatted("-", None)
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return Formatted(f"{seconds / size:.3g} {unit}", seconds)
    return Formatted(f"{seconds:.3g} s", seconds)


def share(value: float | None) -> Formatted:
    """Format a fraction as a percentage: ``share(0.0123) -> "1.23%"``."""
    return Formatted("-" if value is None else f"{100 * value:.3g}%", value)


def age(seconds: float) -> Formatted:
    """Format an age in seconds: ``age(7300) -> "2 h ago"``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return Formatted(f"{int(seconds // size):,} {unit} ago", seconds)
    return Formatted("just now", seconds)


def _signed(text: str) -> str:
    """Remove the sign of a zero: ``"-0.00" -> "0.00"``."""
    return text if _parsed(text) else text.removeprefix("-")


def ends(measured: Measured) -> dict[str, float | None]:
    """Return the CSV cells for a value and its interval."""
    return {"figure": measured.value, "low": measured.low, "high": measured.high}
