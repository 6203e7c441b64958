"""Tables of results, from the files in docs/results/tables.

A file has one of two forms:

cells
    One line per cell. The first column names the row, and ``column`` the column. ``value`` has
    ``low`` and ``high``, its 95% interval, or ``sd``, the standard deviation over ``n`` seeds.
    ``command`` and ``source`` state its origin. If a cell has several lines, for example one per
    seed, the table lists their values.
rows
    One line per row, as shown on the page, except for the column ``source``.
"""

import csv
import re
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).parents[1] / "results"


class Table(NamedTuple):
    """Names of columns, and the cells of each row."""

    columns: list[str]
    rows: list[list[str]]

    def cell(self, row: str, column: str) -> str:
        """Return a cell, by the first cell of its row and the name of its column."""
        columns = [index for index, name in enumerate(self.columns) if _plain(name) == column]
        rows = [cells for cells in self.rows if _plain(cells[0]) == row]
        if len(columns) != 1 or len(rows) != 1:
            raise KeyError(f"{len(rows)} rows are named {row}, {len(columns)} columns {column}")
        [found], [index] = rows, columns
        if not found[index]:
            raise KeyError(f"{row}, {column} is empty")
        return found[index]


def stored(name: str) -> Table:
    """Return a file of docs/results/tables."""
    path = RESULTS / f"tables/{name}.csv"
    if not path.exists():
        raise KeyError(f"docs/results/tables has no {name}.csv")
    with path.open(encoding="utf-8", newline="") as file:
        columns, *rows = csv.reader(file, strict=True)
    if columns[1] == "column":
        return _from_cells(columns, rows)
    shown = [index for index, column in enumerate(columns) if column != "source"]
    return Table([columns[index] for index in shown], [[row[i] for i in shown] for row in rows])


def _from_cells(columns: list[str], lines: list[list[str]]) -> Table:
    found: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        cell = dict(zip(columns, line, strict=True))
        spread = spread_of(cell["value"], cell["low"], cell["high"], cell["sd"])
        found.setdefault(line[0], {}).setdefault(cell["column"], []).append(spread)
    names = list(dict.fromkeys(name for row in found.values() for name in row))
    rows = [
        [row, *(", ".join(cells.get(name, [])) for name in names)] for row, cells in found.items()
    ]
    return Table([columns[0], *names], rows)


def spread_of(value: str, low: str, high: str, sd: str) -> str:
    """Return a value with its interval or its standard deviation.

    >>> spread_of("0.97", "0.93", "1.00", ""), spread_of("2.5", "", "", "1.8")
    ('0.97 [0.93, 1.00]', '2.5 ± 1.8')
    """
    if low:
        return f"{value} [{low}, {high}]"
    return f"{value} ± {sd}" if sd else value


def bare(cell: str) -> str:
    """Return the value of a cell without interval or standard deviation.

    >>> bare("0.97 [0.93, 1.00]"), bare("2.5 ± 1.8"), bare("0.97, 0.01")
    ('0.97', '2.5', '0.97, 0.01')
    """
    return re.split(r" (?:±|\[)", cell)[0]


def _plain(name: str) -> str:
    return name.replace("`", "")
