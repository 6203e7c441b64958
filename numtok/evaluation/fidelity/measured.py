"""Measurements of the cells of published tables, stored as CSV files.

``docs/results/papers/xval.csv`` holds the measurements of the tables of the paper ``xval``, with
one line per cell and seed, or one line for several seeds::

    table,row,column,setting,examples,n,value,sd,source
    table3,p10,2 operands,paper,294000,3,0.962,0.012,RESULTS@acf5603b

``setting`` is ``paper`` for the objective and recipe of the paper; otherwise it names what differs.
``examples`` counts the training rows, each time that a model sees them.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from numtok.errors import DataError, unknown
from numtok.evaluation.published import names, published

PAPER = "paper"  # the setting that follows the paper
COLUMNS = ("table", "row", "column", "setting", "examples", "n", "value", "sd", "source")


@dataclass(frozen=True, kw_only=True)
class MeasuredLine:
    """One line of a file.

    examples
        Training rows; None where nothing is trained, or where the source does not say.
    n, value, sd
        Number of seeds, their mean and their standard deviation (0 for one seed).
    source
        Origin of the numbers, such as a commit of RESULTS or a sweep.
    """

    table: str
    row: str
    column: str
    setting: str
    examples: int | None
    n: int
    value: float
    sd: float
    source: str


class Place(NamedTuple):
    """Place of a measurement: name of the table, row and column."""

    table: str
    row: str
    column: str


class Pooled(NamedTuple):
    """Mean over ``n`` seeds, and their standard deviation (0 for one seed)."""

    n: int
    mean: float
    sd: float


def read_measurements(folder: Path) -> list[MeasuredLine]:
    """Read all files ``PAPER.csv`` in a folder, with tables named ``PAPER/TABLE``.

    Raises DataError, with file and line, if a value is missing or wrong, or if published tables
    have no such row or column.
    """
    if not (paths := sorted(folder.glob("*.csv"))):
        raise DataError(f"{folder} has no CSV files of measurements. Choose another folder")
    return [line for path in paths for line in read_file(path)]


def read_file(path: Path) -> Iterator[MeasuredLine]:
    """Yield the lines of a file. Raises the errors of :func:`read_measurements`."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise DataError(f"{path}: the header must be {','.join(COLUMNS)}")
        for line in reader:
            where = f"{path}:{reader.line_num}"
            try:
                measured = MeasuredLine(
                    table=f"{path.stem}/{line['table']}",
                    row=line["row"],
                    column=line["column"],
                    setting=line["setting"],
                    examples=int(line["examples"]) if line["examples"] else None,
                    n=int(line["n"]),
                    value=float(line["value"]),
                    sd=float(line["sd"] or 0),
                    source=line["source"],
                )
            except (TypeError, ValueError) as error:
                raise DataError(f"{where}: {error}") from error
            _check(measured, where, has_deviation=bool(line["sd"]))
            yield measured


def _check(line: MeasuredLine, where: str, *, has_deviation: bool) -> None:
    if line.table not in names():
        raise DataError(f"{where}: {unknown('published table', line.table, names())}")
    table = published(line.table)
    if line.row not in table.rows:
        raise DataError(f"{where}: {unknown('row', line.row, table.rows)}")
    columns = [column.name for column in table.columns]
    if line.column not in columns:
        raise DataError(f"{where}: {unknown('column', line.column, columns)}")
    if line.n < 1 or has_deviation != (line.n > 1):
        raise DataError(f"{where}: sd must be given exactly if n is above 1 (n is {line.n})")
    if not (math.isfinite(line.value) and math.isfinite(line.sd) and line.sd >= 0):
        raise DataError(f"{where}: value and sd must be finite, and sd at least 0")
    if not (line.setting and line.source):
        raise DataError(f"{where}: setting and source must not be empty")


def pool(lines: Iterable[MeasuredLine], *, logarithmic: bool = False) -> Pooled:
    """Pool lines of one cell: mean and standard deviation over the union of their seeds.

    >>> lines = [MeasuredLine(table="", row="", column="", setting="", examples=None, n=1,
    ...                      value=value, sd=0, source="") for value in (1.0, 3.0)]
    >>> pool(lines).mean, round(pool(lines).sd, 3)
    (2.0, 1.414)
    """
    parts = []
    for line in lines:
        mean, sd = line.value, line.sd
        if logarithmic:
            mean, sd = math.log10(mean), sd / (mean * math.log(10))
        parts.append((line.n, mean, sd))
    n = sum(part[0] for part in parts)
    mean = sum(count * value for count, value, _ in parts) / n
    squares = sum((count - 1) * sd**2 + count * (value - mean) ** 2 for count, value, sd in parts)
    return Pooled(n, mean, math.sqrt(squares / (n - 1)) if n > 1 else 0.0)


#: Lines of each cell, by setting and budget.
Measured = Mapping[Place, Mapping[str, Mapping[int | None, Sequence[MeasuredLine]]]]


def by_cell(lines: Iterable[MeasuredLine]) -> Measured:
    """Return the lines of each cell, by setting and budget: training rows to two digits, because
    the last batch of an epoch may be smaller."""
    found: dict[Place, dict[str, dict[int | None, list[MeasuredLine]]]] = {}
    for line in lines:
        settings = found.setdefault(Place(line.table, line.row, line.column), {})
        budget = line.examples and int(float(f"{line.examples:.2g}"))
        settings.setdefault(line.setting, {}).setdefault(budget, []).append(line)
    return found
