"""Addition of reports to the measurements of published tables."""

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from numtok import files, machine
from numtok.errors import UsageError
from numtok.evaluation.comparison.beside_published import (
    columns_for,
    differing,
    figure_of,
    row_of,
)
from numtok.evaluation.fidelity.measured import COLUMNS, PAPER, MeasuredLine, read_file
from numtok.evaluation.published import published
from numtok.evaluation.report_files import Evaluation

_SIZE = "preset"  # smaller models count as the setting of the paper


def record(table: str, evaluations: Sequence[Evaluation], folder: Path) -> int:
    """Add the cells of a published table that reports measure to ``folder/PAPER.csv``.

    A line of the same cell and report is replaced. Returns the number of lines of these reports.
    Raises UsageError if no report has a row in the table, and DataError if the file is damaged.
    """
    paper = table.partition("/")[0]
    path = folder / f"{paper}.csv"
    fresh = [line for evaluation in evaluations for line in _lines(table, evaluation)]
    if not fresh:
        raise UsageError(f"--record: {table} has no row or column for these reports")
    replaced = set(map(_key, fresh))
    stored = read_file(path) if path.exists() else ()
    lines = [line for line in stored if _key(line) not in replaced] + fresh
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(sorted(map(_cells, lines)))
    folder.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, text.getvalue().encode())
    return len(fresh)


def _lines(table: str, evaluation: Evaluation) -> Iterator[MeasuredLine]:
    content, report = published(table), evaluation.report
    row = row_of(content, report)
    if row not in content.rows:
        return
    settings = [f"{key}={own}" for key, own, _ in differing(content, report, None) if key != _SIZE]
    # Models of tables stop early, each seed after another number of rows.
    examples = round(report.costs.samples) if report.costs.tokens else None
    for column in columns_for(content, [report]):
        figure = figure_of(evaluation, column)
        if figure is not None and figure.value is not None:
            yield MeasuredLine(
                table=table,
                row=row,
                column=column.name,
                setting="; ".join(settings) or PAPER,
                examples=examples or None,
                n=1,
                value=figure.value,
                sd=0.0,
                source=f"{evaluation.ref}; {date.today()}; {machine.cores()} cores",
            )


def _key(line: MeasuredLine) -> tuple[object, ...]:
    report = line.source.partition(";")[0]
    return line.table, line.row, line.column, line.setting, line.examples, report


def _cells(line: MeasuredLine) -> list[str]:
    """Return the cells of a line, which sort by table, row, column, setting and source."""
    values = {name: getattr(line, name) for name in COLUMNS}
    values["table"] = line.table.partition("/")[2]
    if line.n == 1:
        values["sd"] = None
    return [
        "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)
        for value in values.values()
    ]
