"""Columns of a file with their types: numbers as float64, dates as timestamps, the rest as strings.

Arrow infers the types of CSV columns. Columns of strings that are numbers in another notation, or
dates in another format, are converted too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from numtok.data.reading.sources import CSV
from numtok.data.records.columns import column_of
from numtok.data.records.dates import dates_of
from numtok.data.records.reader import JSON_LINES, read_records
from numtok.data.tables.columns import plain_strings
from numtok.data.tables.file import csv_form, parsed

#: Parts of a date that become features, with their functions in Arrow.
DATE_PARTS = {
    "year": pc.year,
    "day of year": pc.day_of_year,
    "weekday": pc.day_of_week,
    "days": lambda dates: pc.divide(_microseconds(dates), 86_400e6),
}


@dataclass(frozen=True, eq=False)
class TypedColumns:
    """Columns with their types.

    date_formats
        Format of each column of dates that were strings.
    notes
        Notes on converted columns.
    """

    table: pa.Table
    date_formats: Mapping[str, str]
    notes: list[str]


def typed_columns(path: str, data: bytes, *, skip: bool) -> TypedColumns:
    """Return the columns of a file with their types.

    ``data`` is the content of the file, unless it is JSON Lines. Rows that cannot be parsed are
    skipped if ``skip`` is true. Raises the same errors as
    :func:`~numtok.data.records.reader.read_records`.
    """
    if path.endswith(JSON_LINES):
        table, decimal = read_records(path, skip=skip).table, "."
    else:
        table = parsed(path, data, skip=skip)
        decimal = csv_form(data).decimal if path.endswith(CSV) else "."
    return with_types(table, decimal)


def with_types(table: pa.Table, decimal: str = ".") -> TypedColumns:
    """Convert the columns of strings in a table that are numbers or dates."""
    notes, formats = [], {}
    for index, name in enumerate(table.column_names):
        plain = plain_strings(table.column(index))
        if not pa.types.is_string(plain.type):
            continue
        values = plain.combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks)
        column = column_of(name, values, decimal)
        if column.notation is not None:
            values = column.notation.plain(values).cast(pa.float64())
            if column.notation.description:
                notes.append(f"{name!r} is read as numbers with {column.notation.description}")
        elif column.date_format is not None:
            values = dates_of(values, column.date_format)
            formats[name] = column.date_format
            notes.append(f"{name!r} is read as dates, written as {column.date_format}")
        else:
            continue
        table = table.set_column(index, name, values)
    return TypedColumns(table, formats, notes)


def date_parts(dates: "pa.Array[Any]") -> "dict[str, pa.Array[Any]]":
    """Return the features of a column of dates [n] as float64[n], keyed by the part of the date.

    ``days`` are elapsed days since 1970, with the time of day as a fraction.
    """
    if pa.types.is_timestamp(dates.type) and dates.type.tz is not None:
        dates = dates.cast(pa.timestamp(dates.type.unit))
    return {part: find(dates).cast(pa.float64()) for part, find in DATE_PARTS.items()}


def _microseconds(dates: "pa.Array[Any]") -> "pa.Array[Any]":
    counts = dates.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return counts.cast(pa.float64(), safe=False)  # exact to the year 2255


def is_date(kind: pa.DataType) -> bool:
    """Return whether a type has a date; times of day alone have none."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
