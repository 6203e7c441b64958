"""Records of a CSV, JSON Lines or Parquet file, as columns of strings."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from numtok.data.reading.json_lines import check_characters, json_lines
from numtok.data.reading.streams import is_stdin
from numtok.data.records.columns import ColumnKind, column_of
from numtok.data.tables.file import (
    check_names,
    check_width,
    csv_strings,
    parsed,
    read_file,
)
from numtok.errors import DataError, UsageError, unknown

#: Endings of files with records.
JSON_LINES = tuple(rows + end for rows in (".jsonl", ".ndjson") for end in ("", ".gz", ".zst"))
FORMATS = (".csv", ".parquet", *JSON_LINES)


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """``n`` records as columns of strings.

    path
        File that the records were read from.
    table [n rows]
        Columns of strings; null if missing. Numbers are written as in the file.
    decimal
        Decimal mark of the file.
    notes
        Notes on how the file was read.
    lines
        Line of each record, counted from 1; None if records are numbered instead.
    whole
        All records of the file, if these are only some of them. They determine the columns' kinds.
    """

    path: str
    table: "pa.Table"
    decimal: str = "."
    notes: tuple[str, ...] = ()
    lines: Sequence[int] | None = None
    whole: "Records | None" = None

    def __len__(self) -> int:
        return len(self.table)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.table.column_names)

    def column(self, name: str) -> "pa.Array[Any]":
        """Return the strings of a column [n]. Raises UsageError if the file has no such column."""
        if name not in self.names:
            raise UsageError(f"{self.path}: {unknown('column', name, filter(None, self.names))}")
        values = self.table[name].combine_chunks()
        return values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)

    def plain(self, name: str) -> "pa.Array[Any]":
        """Return the strings of a column [n], with its numbers in the default notation.

        Raises UsageError if the file has no such column.
        """
        values = self.column(name)
        notation = self.columns[name].notation
        return values if notation is None else notation.plain(values)

    @cached_property
    def columns(self) -> dict[str, ColumnKind]:
        """Kind of each column in the whole file, keyed by name."""
        if self.whole is not None:
            return self.whole.columns
        return {name: column_of(name, self.column(name), self.decimal) for name in self.names}

    def where(self, row: int) -> str:
        """Return the location of a record for messages: ``a.jsonl:3`` or ``a.csv: row 3``."""
        if self.lines is not None:
            return f"{self.path}:{self.lines[row]}"
        return f"{self.path}: row {row + 1}"

    def take(self, keep: "pa.Array[Any]") -> "Records":
        """Return the records selected by a mask, bool[n]."""
        lines = self.lines
        if lines is not None:
            lines = [line for line, kept in zip(lines, keep.to_pylist(), strict=True) if kept]
        return replace(self, table=self.table.filter(keep), lines=lines, whole=self.whole or self)


def read_records(path: str) -> Records:
    """Read the records of a file.

    Fields of nested JSON objects have dotted names (``specs.ram``), and JSON arrays are strings.
    Null, empty CSV cells and words such as NA are missing values (Arrow's rule). Raises UsageError
    if the file is not found or its name has another ending, and DataError if it cannot be read.
    """
    if is_stdin(path):
        raise UsageError("records cannot be read from standard input. Pass a file")
    if path.endswith(JSON_LINES):
        return _of_json(path)
    if path.endswith(".csv"):
        return _of_csv(path, read_file(Path(path)))
    if path.endswith(".parquet"):
        return records_of(parsed(path, read_file(Path(path))), path)
    raise UsageError(f"{path}: unknown format; the name must end in {', '.join(FORMATS)}")


def has_fields(path: str, names: Sequence[str]) -> bool:
    """Return whether a file may contain records with the given fields.

    Only the first record of JSON Lines is read: one of its fields, which may be nested, must be
    among ``names``. Raises the same errors as :func:`read_records`.
    """
    if not path.endswith(JSON_LINES):
        return path.endswith(FORMATS)
    return any(set(names) & set(flat) for _, flat in _flat_lines(path, most=1))


def _of_csv(path: str, data: bytes) -> Records:
    table, form = csv_strings(path, data)
    notes = () if form.note is None else (form.note,)
    return Records(path=path, table=table, decimal=form.decimal, notes=notes)


def records_of(table: "pa.Table", path: str) -> Records:
    """Return the rows of a table [n rows] as records. ``path`` is its name in messages.

    Raises DataError if a column has no name or cannot be written as text.
    """
    check_names(path, table.column_names)
    columns = [_strings(path, name, table[name]) for name in table.column_names]
    return Records(path=path, table=pa.table(columns, names=table.column_names))


def _strings(path: str, name: str, column: "pa.ChunkedArray[Any]") -> "pa.ChunkedArray[Any]":
    """Return the values of a Parquet column as strings; NaN is missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):
        values = [None if value is None else json.dumps(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(values, pa.string())])
    if pa.types.is_floating(column.type):  # repr, since Arrow writes 1.0 as 1
        values = [
            None if value is None or value != value else repr(value)
            for value in column.cast(pa.float64()).to_pylist()
        ]
        return pa.chunked_array([pa.array(values, pa.string())])
    try:
        return column.cast(pa.string())
    except pa.ArrowException as error:
        raise DataError(
            f"{path}: column {name!r} cannot be written as text ({error}). Remove it"
        ) from error


# --- JSON Lines -----------------------------------------------------------------------------------


class _Decoder:
    """Decodes a line as a flat record, in which every value is a string or None."""

    def decode(self, line: bytes) -> dict[str, str | None]:
        try:
            written = line.decode()
            row = json.loads(
                written, parse_int=_Literal, parse_float=_Literal, parse_constant=_refuse
            )
            check_characters(written, row)
        except (ValueError, RecursionError) as error:
            raise msgspec.DecodeError(str(error)) from None
        if not isinstance(row, dict):
            raise msgspec.ValidationError("Expected `object`, got another type")
        return dict(_flat(row))


class _Literal(str):
    """Number in JSON, as written."""


def _refuse(name: str) -> Any:
    raise msgspec.ValidationError(f"{name} is not JSON. Write null")


def _flat(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str | None]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif value is None or isinstance(value, str):
            yield prefix + name, value if value is None else str(value)
        elif isinstance(value, bool):
            yield prefix + name, "true" if value else "false"
        else:
            yield prefix + name, _written(value)


def _written(value: Any) -> str:
    """Write a JSON value that may contain numbers as :class:`_Literal`."""
    if isinstance(value, _Literal):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, dict):
        members = (f"{json.dumps(name)}: {_written(item)}" for name, item in value.items())
        return f"{{{', '.join(members)}}}"
    return json.dumps(value, ensure_ascii=False)


def _flat_lines(path: str, most: int | None = None) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield the line number and the flat record of each line, at most ``most``."""
    for count, (where, _, flat) in enumerate(json_lines(path, _Decoder())):
        if count == most:
            return
        yield int(where.rpartition(":")[2]), flat


def _of_json(path: str) -> Records:
    lines: list[int] = []
    columns: dict[str, list[str | None]] = {}
    for line, flat in _flat_lines(path):
        for name in flat:
            if name not in columns:
                columns[name] = [None] * len(lines)
                check_width(path, len(columns))
        for name, values in columns.items():
            values.append(flat.get(name))
        lines.append(line)
    if not lines:
        raise DataError(f"{path} is empty. Pass a file with at least one record")
    arrays = [pa.array(values, pa.string()) for values in columns.values()]
    return Records(path=path, table=pa.table(arrays, names=list(columns)), lines=lines)
