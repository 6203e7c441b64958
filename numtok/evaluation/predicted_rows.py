"""Rows of ``numtok predict``: reading of rows of text, and the output for a file of records, whose
rows are unchanged and have their predictions.

CSV and Parquet files give CSV with additional columns, with the separator and the decimal mark of
the CSV file. JSON Lines give JSON Lines with an additional field.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from numtok.data.reading.json_lines import json_lines, row_decoder
from numtok.data.reading.sources import CSV
from numtok.data.records.reader import JSON_LINES, has_fields
from numtok.data.tables.file import CsvForm, csv_form, parsed, read_file
from numtok.errors import DataError, UsageError
from numtok.reports import QUANTILES, quantile_column

Row = TypeVar("Row", bound="GivenRow")
PREDICTED = "predicted"
COLUMNS = (PREDICTED, *map(quantile_column, QUANTILES))

#: Predictions of one row: for each target, values keyed by column (:data:`COLUMNS`).
RowNumbers = Mapping[str, Mapping[str, float | None]]


class GivenRow(msgspec.Struct):
    """Fields of a JSON line that are used for predictions."""

    text: str
    predicted: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def given_rows(path: str, kind: type[Row], text_field: str) -> Iterator[tuple[str, bytes, Row]]:
    """Yield the location, the line and the fields of each row of a JSONL file. Raises DataError if
    a line is invalid or has a field with a reserved name."""
    for where, line, row in json_lines(path, row_decoder(kind, text_field)):
        if row.predicted is not msgspec.UNSET:
            raise DataError(
                f"{where}: 'predicted' is reserved for predictions, but the row has such a field. "
                "Rename it"
            )
        yield where, line, row


def with_predictions(
    path: str,
    targets: Sequence[str],
    columns: Sequence[str],
    predictions: Iterator[RowNumbers],
    *,
    decimal: str | None = None,
) -> Iterator[bytes]:
    """Yield the lines of the output: the rows of a file, with their predictions.

    ``columns`` are the columns that each target adds: :data:`COLUMNS`, and ends of intervals.
    ``decimal`` is the decimal mark of the training data, for ambiguous CSV files.
    With several targets, the names of added columns end in ``_TARGET``. Nothing is written before
    the first prediction, so that errors come first. Raises UsageError if the file has a column
    with a reserved name.
    """
    if path.endswith(JSON_LINES):
        return _json_rows(path, predictions)
    return _csv_rows(path, targets, columns, predictions, decimal)


def _json_rows(path: str, predictions: Iterator[RowNumbers]) -> Iterator[bytes]:
    if has_fields(path, [PREDICTED]):
        raise UsageError(
            f"{path} has a field {PREDICTED!r}, a name reserved for predictions. Rename it"
        )
    lines = json_lines(path, msgspec.json.Decoder(msgspec.Raw))
    for (_, line, _), numbers in zip(lines, predictions, strict=True):
        inner = line.rstrip()[:-1].rstrip()
        comma = b"" if inner.endswith(b"{") else b","
        values = {
            target: {name: value for name, value in columns.items() if _is_finite(value)}
            for target, columns in numbers.items()
        }
        yield inner + comma + b'"predicted":' + msgspec.json.encode(values) + b"}\n"


def _csv_rows(
    path: str,
    targets: Sequence[str],
    columns: Sequence[str],
    predictions: Iterator[RowNumbers],
    decimal: str | None,
) -> Iterator[bytes]:
    data = read_file(Path(path))
    form = csv_form(data, decimal) if path.endswith(CSV) else CsvForm()
    rows = _csv_records(path, data, form)
    header = next(rows)
    endings = [f"_{target}" for target in targets] if len(targets) > 1 else [""]
    added = [name + ending for ending in endings for name in columns]
    for name in added:
        if name in header:
            raise UsageError(
                f"{path} has a column {name!r}, a name reserved for predictions. Rename it"
            )
    begun = list(islice(predictions, 1))
    yield _csv_line([*header, *added], form)
    for row, numbers in zip(rows, chain(begun, predictions), strict=True):
        values = [number.get(name) for number in numbers.values() for name in columns]
        yield _csv_line([*row, *(_literal(value, form) for value in values)], form)


def _literal(value: float | None, form: CsvForm) -> str:
    return repr(value).replace(".", form.decimal) if _is_finite(value) else ""


def _is_finite(value: float | None) -> bool:
    return value is not None and bool(np.isfinite(value))


def _csv_records(path: str, data: bytes, form: CsvForm) -> Iterator[list[str]]:
    """Yield the header and the rows of a CSV or Parquet file as CSV fields, as they were read."""
    table = parsed(path, data)
    if path.endswith(CSV):
        csv.field_size_limit(max(csv.field_size_limit(), len(data) + 1))
        text = data.decode("utf-8-sig", "surrogateescape")
        lines = io.StringIO(text, newline="")
        yield from filter(None, csv.reader(lines, delimiter=form.separator))
        return
    columns = [_written(path, name, table[name]) for name in table.column_names]
    yield list(table.column_names)
    for row in zip(*columns, strict=True):
        yield ["" if value is None else str(value) for value in row]


def _written(path: str, name: str, column: "pa.ChunkedArray[Any]") -> list[Any]:
    with suppress(pa.ArrowException):  # such as lists
        column = column.cast(pa.string())
    try:
        return list(column.to_pylist())
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise DataError(
            f"{path}: column {name!r} cannot be written as text ({error}). Remove it"
        ) from error


def _csv_line(record: list[str], form: CsvForm) -> bytes:
    """Return a record as a line of CSV, in bytes.

    >>> _csv_line(["7", "a, b", "1.5"], CsvForm())
    b'7,"a, b",1.5\\n'
    """
    line = io.StringIO()
    # Lines end in \r\n: otherwise \r would not be quoted.
    csv.writer(line, delimiter=form.separator).writerow(record)
    return line.getvalue().removesuffix("\r\n").encode("utf-8", "surrogateescape") + b"\n"
