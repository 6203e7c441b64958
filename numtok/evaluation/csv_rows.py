"""Rows of a CSV or Parquet file, passed through unchanged to the CSV output of ``numtok predict``."""

import csv
import io
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from numtok.data.tables.file import csv_form
from numtok.errors import DataError


def csv_records(path: str, data: bytes, table: "pa.Table") -> Iterator[list[str]]:
    """Yield the header and the rows of a CSV or Parquet file as CSV fields, as they were read."""
    if path.endswith(".csv"):
        csv.field_size_limit(max(csv.field_size_limit(), len(data) + 1))
        text = data.decode("utf-8-sig", "surrogateescape")
        lines = io.StringIO(text, newline="")
        yield from filter(None, csv.reader(lines, delimiter=csv_form(data).separator))
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


def outgoing_record(record: list[str]) -> bytes:
    """Return a record as a line of CSV, in bytes.

    >>> outgoing_record(["7", "a, b", "1.5"])
    b'7,"a, b",1.5\\n'
    """
    line = io.StringIO()
    csv.writer(line).writerow(record)  # lines end in \r\n: otherwise \r would not be quoted
    return line.getvalue().removesuffix("\r\n").encode("utf-8", "surrogateescape") + b"\n"
