"""Fills results into hand-written pages, from the files in docs/results.

A comment on a line of its own becomes a table:

``<!-- claims: xval -->``
    Statements of a paper, with verdicts.
``<!-- table: xval/table3 -->``
    Measured values of a published table at the largest budget that all rows have, with the
    printed ones in brackets. Other settings are in a part that opens on a click.
``<!-- csv: xval-gross-errors -->``
    The file of that name in docs/results/tables, or a table that ``docs/site/results.py`` derives
    from docs/results/*.csv.

Names in double braces become numbers in a sentence:

``{{ fidelity: printed }}``
    Number of printed orderings, of those with several seeds (``seeded``), or per verdict.
``{{ value: fone-sums | 1,600 | fone }}``, ``{{ interval: fone-sums | 1,600 | fone }}``
    A cell of such a table, by row and column, without and with its interval or standard deviation.
``{{ cell: xval/table3 | p1000 | 2 operands }}``
    A measured cell of a published table, in the paper's setting or, with a fourth name, in another.

Pages that are also read as files contain the number, followed by its name in a comment:
``0.96<!-- value: fone-sums | 1,600 | fone -->``. :func:`outdated` compares them.
"""

import re
from collections.abc import Callable
from functools import cache
from textwrap import indent

from docs.site.results import DERIVED
from docs.site.tables import RESULTS, Table, bare, stored
from docs.site.text import table
from numtok.evaluation.fidelity.counts import Fidelity, read_fidelity
from numtok.evaluation.fidelity.measured import (
    PAPER,
    Measured,
    Place,
    by_cell,
    pool,
    read_measurements,
)
from numtok.evaluation.fidelity.verdicts import OrderingVerdict
from numtok.evaluation.published import published

_COMMENT = re.compile(r"^<!-- (claims|table|csv): (\S+) -->$", re.M)
_VALUE = re.compile(r"\{\{ (\w+): (.+?) \}\}")
_WRITTEN = re.compile(r"(.*?)<!-- (\w+): (.+?) -->", re.S)


def filled(page: str) -> str:
    """Return a page with its comments and names in braces replaced by results."""
    page = _COMMENT.sub(lambda match: _TABLES[match[1]](match[2]), page)
    return _VALUE.sub(lambda match: _VALUES[match[1]](*match[2].split(" | ")), page)


def outdated(page: str) -> list[str]:
    """Return the names of written numbers that differ from the data, each with its current value.

    >>> outdated("0.97<!-- value: fone-sums | 1,600 | fone -->")
    ['value: fone-sums | 1,600 | fone is 0.96']
    """
    found = []
    for text, kind, name in _WRITTEN.findall(page):
        value = _VALUES[kind](*name.split(" | "))
        if not text.endswith(value):
            found.append(f"{kind}: {name} is {value}")
    return found


@cache
def fidelity() -> Fidelity:
    """Return all verdicts."""
    return read_fidelity(RESULTS)


@cache
def measured() -> Measured:
    """Return all measurements of published tables, by cell."""
    return by_cell(read_measurements(RESULTS / "papers"))


def claims(paper: str) -> str:
    """Return the statements of a paper as a table."""
    found = [one for one in fidelity().claims if one.claim.paper == paper]
    rows = [
        (one.claim.claim, one.verdict.value)
        for one in found
        if one.verdict is not OrderingVerdict.NOT_RUN
    ]
    text = table(("the paper says", "here"), rows)
    if left := len(found) - len(rows):
        text += f"\n\nNot run: {left} more."
    return f"{text}\n\n[Fidelity](fidelity.md#statements-in-words) has measured values and reasons."


def measured_table(name: str) -> str:
    """Return the measured cells of a published table, one row per row and setting."""
    paper = published(name)
    found = {place: settings for place, settings in measured().items() if place.table == name}
    columns = [
        one.name for one in paper.columns if any(place.column == one.name for place in found)
    ]
    first: list[tuple[str, ...]] = []
    others: list[tuple[str, ...]] = []
    for setting in dict.fromkeys(setting for settings in found.values() for setting in settings):
        for row in paper.rows:
            cells = [_measured_cell(Place(name, row, column), setting) for column in columns]
            if setting == PAPER and any(cells):
                printed = [_printed(name, row, column) for column in columns]
                first.append((f"`{row}`", *map(_with_printed, cells, printed)))
            elif any(cells):
                others.append((f"`{row}`, {setting}", *cells))
    text = table(("", *columns), first)
    if others:
        more = indent(table(("", *columns), others), "    ")
        text += f'\n\n??? note "Other settings"\n\n{more}'
    return text


def _printed(name: str, row: str, column: str) -> str:
    cells = published(name).rows[row]
    return str(cells[column].value) if column in cells else ""


def _with_printed(value: str, printed: str) -> str:
    return f"{value} ({printed})" if value and printed else value


def _measured_cell(place: Place, setting: str) -> str:
    """Return mean and standard deviation of a cell; an empty string if it was not measured."""
    budgets = measured().get(place, {}).get(setting)
    if not budgets:
        return ""
    count, mean, sd = pool(budgets[_budget(place, setting)])
    return _shown(mean, sd if count > 1 else 0)


def _budget(place: Place, setting: str) -> int | None:
    """Return the largest budget that all rows of a column have; without one, the largest of the
    cell.

    Rows that are not trained have no budget.
    """
    own = set(measured()[place][setting])
    shared = own.copy()
    for other, settings in measured().items():
        if (other.table, other.column) == (place.table, place.column):
            shared &= set(settings.get(setting, ())) - {None} or shared
    return max(shared or own, key=lambda examples: examples or 0)


def _shown(mean: float, sd: float) -> str:
    """Return a mean with its standard deviation, if there is one. A mean close to 1 is shown as
    "1 - x".

    >>> _shown(0.9482, 0.0121), _shown(0.99999, 1.2e-6), _shown(1.385, 0)
    ('0.948 ± 0.012', '1 - 1.0e-5 ± 1.2e-6', '1.385')
    """
    value, start = (1 - mean, "1 - ") if 0.999 < mean < 1 else (mean, "")
    if not sd:
        shown = f"{start}{value:.1e}" if start else f"{value:.4g}"
        return shown.replace("e-0", "e-")
    spread = f"{sd:.2g}"
    shown = f"{value:.1e}" if start or "e" in spread else f"{value:.{max(len(spread) - 2, 0)}f}"
    return f"{start}{shown} ± {spread}".replace("e-0", "e-")


@cache
def result_table(name: str) -> Table:
    """Return a derived table, or a file of docs/results/tables."""
    return DERIVED[name]() if name in DERIVED else stored(name)


def _result_table(name: str) -> str:
    return table(*result_table(name))


def _interval(name: str, row: str, column: str) -> str:
    try:
        return result_table(name).cell(row, column)
    except KeyError as error:
        raise KeyError(f"{name}: {error.args[0]}") from error


def _value(name: str, row: str, column: str) -> str:
    return bare(_interval(name, row, column))


def _count(verdict: str) -> str:
    total = fidelity().total
    known = {"printed": total.printed, "seeded": total.seeded, **total.verdicts}
    return str(known[verdict])


def _cell(name: str, row: str, column: str, setting: str = PAPER) -> str:
    if value := _measured_cell(Place(name, row, column), setting):
        return value
    raise KeyError(f"{name} has no measurement of {row}, {column} with {setting}")


_TABLES = {"claims": claims, "table": measured_table, "csv": _result_table}
_VALUES: dict[str, Callable[..., str]] = {
    "fidelity": _count,
    "cell": _cell,
    "value": _value,
    "interval": _interval,
}
