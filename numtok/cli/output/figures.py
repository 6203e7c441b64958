"""How figures are written: as short as their uncertainty allows, and tables of them that fit."""

import math
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from numtok.analysis.profiling.short_values import compact
from numtok.cli.output.printing import GAP, Format, one_line, print_table, table_width

if TYPE_CHECKING:
    from numtok.evaluation.comparison.experiments import ExperimentCosts
    from numtok.evaluation.comparison.seeds import SeedStatistics
    from numtok.reports import Figure

_LABEL = 30  # characters of a label after which rich may fold it


def number(value: float | None) -> str:
    """Four digits, and below 1 as many as tell it from 1.

    >>> from math import inf
    >>> [number(value) for value in (0.99998, 1 - 3e-12, 0.6071, 12345.6, 0.00001234, -inf)]
    ['0.99998', '1 - 3e-12', '0.6071', '1.235e4', '1.234e-5', '-inf']
    """
    if value is None:
        return "-"
    if math.isinf(value):
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


def figure(found: "Figure | SeedStatistics | None") -> str:
    """A value with its interval, to the digits that the interval leaves certain; the value has
    two at least, as seeds are few.

    >>> figure(Figure(0.99912, 0.99893, 0.99931, 500)), figure(Figure(-0.404, -4.1, 1.2, 2))
    ('0.9991 [0.9989, 0.9993]', '-0.40 [-4, 1]')
    """
    if found is None or found.value is None:
        return "-"
    return interval(found.value, found.low, found.high)


def interval(value: float, low: float | None, high: float | None, *, apart: bool = False) -> str:
    """As :func:`figure`; the value alone where the interval is unknown or has no width. With
    ``apart`` no end that is not 0 looks like it.

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
    return f"{value_} [{low_}, {high_}]"


def _two_digits(value: float, places: int) -> str:
    """A value to this many decimals, or in scientific notation to two digits below 1e-3."""
    return number(float(f"{value:.1e}")) if abs(value) < 1e-3 else _signed(f"{value:.{places}f}")


def amount(value: float) -> str:
    """A large count: ``amount(1_280_000) -> "1.28M"``."""
    for size, unit in ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")):
        if value < 999.5 * size:
            return f"{value / size:.3g}{unit}"
    return number(value)


def duration(seconds: float | None) -> str:
    """``duration(5400) -> "1.5 h"``"""
    if seconds is None:
        return "-"
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def shown_costs(costs: "ExperimentCosts") -> dict[str, str]:
    """What models cost, the mean over seeds, by headings of columns."""
    return {
        "samples": amount(costs.samples),
        "tokens": amount(costs.tokens),
        "train": duration(costs.train_seconds),
        "eval": duration(costs.eval_seconds),
        "FLOPs": number(costs.flops),
        "params": amount(costs.parameters),
        "tok/num": number(costs.tokens_per_number),
    }


def share(value: float | None) -> str:
    """``share(0.0123) -> "1.23%"``"""
    return "-" if value is None else f"{100 * value:.3g}%"


def _signed(text: str) -> str:
    """``"-0.00" -> "0.00"``"""
    return text if float(text) else text.removeprefix("-")


def print_figures(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    format: Format,
    to: TextIO | None = None,
) -> None:
    """A table whose first column is a label; for people as several tables, where it is too wide.

    Only for the formats for people: those for programs have figures in full.
    """
    to = to or sys.stdout
    if format is Format.MD:
        print(f"{one_line(title)}\n", file=to)
        print_table(title, columns, rows, Format.MD, to)
    else:
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        for index, chosen in enumerate(_chunks(widths, table_width(to))):
            part = [[row[column] for column in (0, *chosen)] for row in rows]
            head = [columns[column] for column in (0, *chosen)]
            *above, last = [""] if index else textwrap.wrap(title, width(to))
            for line in above:
                print(one_line(line), file=to)
            print_table(last, head, part, to=to)
    print(file=to)


def _chunks(widths: Sequence[int], limit: int) -> list[list[int]]:
    """The columns after the first, in as many parts as it takes to fit them beside the first."""
    label = min(widths[0], _LABEL)
    parts: list[list[int]] = [[]]
    used = label
    for column in range(1, len(widths)):
        if parts[-1] and used + GAP + widths[column] > limit:
            parts.append([])
            used = label
        parts[-1].append(column)
        used += GAP + widths[column]
    return parts


def print_lines(lines: Sequence[str], to: TextIO | None = None) -> None:
    """Sentences, one a line, folded to the width of the terminal; a blank line after them."""
    to = to or sys.stdout
    for line in lines:
        folded = textwrap.fill(
            one_line(line), width(to), subsequent_indent="  ", break_on_hyphens=False
        )
        print(folded, file=to)
    if lines:
        print(file=to)


def width(to: TextIO) -> int:
    """Characters in a line of the terminal, or 80."""
    from rich.console import Console

    return Console(file=to).width
