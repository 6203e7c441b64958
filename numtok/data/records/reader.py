"""Records of a CSV, JSON Lines or Parquet file, as columns of strings."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from numtok.data.reading.json_lines import check_characters, json_lines
from numtok.data.reading.sources import CSV
from numtok.data.reading.streams import is_stdin
from numtok.data.records.columns import ColumnKind, column_of
from numtok.data.records.notation import WITH_COMMA, WITH_POINT, Notation, plain_numbers
from numtok.data.tables.file import (
    SKIP_ROWS,
    check_names,
    check_width,
    csv_strings,
    parsed,
    read_file,
)
from numtok.errors import DataError, UsageError, unknown

#: Endings of files with records.
JSON_LINES = tuple(rows + end for rows in (".jsonl", ".ndjson") for end in ("", ".gz", ".zst"))
FORMATS = (*CSV, ".parquet", *JSON_LINES)
_FIRST = 100  # records that are read to find a field


REASONS = 3  # reasons of skipped rows in a note


@dataclass(frozen=True)
class SkippedRows:
    """Rows of a file that cannot be used.

    reasons
        Location of each of the first rows, and what is wrong with it.
    """

    count: int = 0
    reasons: Sequence[str] = ()

    def notes(self, other: "SkippedRows", used: int) -> list[str]:
        """Return a note on these and ``other`` skipped rows, if there are any. ``used`` rows of the
        file are not skipped."""
        count = self.count + other.count
        reasons = "; ".join([*self.reasons, *other.reasons][:REASONS])
        return [f"Skipped {count:,} of {used + count:,} rows: {reasons}"] if count else []


NOTHING_SKIPPED = SkippedRows()


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """``n`` records as columns of strings.

    path
        File that the records were read from.
    table [n rows]
        Columns of strings; null if missing. Numbers are written as in the file.
    decimal
        Decimal mark of the file.
    may_have_commas
        True if the decimal mark may be a comma: in CSV files that are not separated by commas.
    notes
        Notes on how the file was read.
    line
        Function that returns the line of a record, counted from 1; None if records are numbered
        instead.
    skipped
        Rows of the file that are not records, because they cannot be parsed.
    whole
        All records of the file, if these are only some of them. They determine the columns' kinds.
    """

    path: str
    table: pa.Table
    decimal: str = "."
    may_have_commas: bool = False
    notes: tuple[str, ...] = ()
    line: Callable[[int], int] | None = None
    skipped: SkippedRows = NOTHING_SKIPPED
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

    def numbers(self, name: str, notation: Notation) -> "pa.Array[Any]":
        """Return the numbers of a column [n] in the default notation; other strings become null.

        Each value is read by itself: in ``notation``, or else in a notation of the file. A notation
        with decimal commas is ignored for files without them, in which 1.234 is not 1234. Raises
        UsageError if the file has no such column.
        """
        own = WITH_COMMA if self.decimal == "," else WITH_POINT
        applies = notation.decimal == "." or self.may_have_commas
        return plain_numbers(self.column(name), (notation, *own) if applies else own)

    @cached_property
    def columns(self) -> dict[str, ColumnKind]:
        """Kind of each column in the whole file, keyed by name."""
        if self.whole is not None:
            return self.whole.columns
        return {name: column_of(name, self.column(name), self.decimal) for name in self.names}

    def where(self, row: int) -> str:
        """Return the location of a record for messages: ``a.csv:3`` or ``a.parquet: row 3``."""
        if self.line is not None:
            return f"{self.path}:{self.line(row)}"
        return f"{self.path}: row {row + 1}"

    def take(self, keep: "pa.Array[Any]") -> "Records":
        """Return the records selected by a mask, bool[n]."""
        rows = np.flatnonzero(keep.to_numpy(False)).tolist()
        line = self.line and partial(_line_at, self.line, rows)
        return replace(self, table=self.table.filter(keep), line=line, whole=self.whole or self)


def _line_at(line: Callable[[int], int], rows: Sequence[int], row: int) -> int:
    return line(rows[row])


def read_records(path: str, *, skip: bool | None = None) -> Records:
    """Read the records of a file.

    skip
        True to skip rows that cannot be parsed; otherwise they are errors. None if the user cannot
        choose.

    Fields of nested JSON objects and of structs have dotted names (``specs.ram``), and arrays are
    strings.
    Null, empty CSV cells and words such as NA are missing values (Arrow's rule). Raises UsageError
    if the file is not found or its name has another ending, and DataError if it cannot be read.
    """
    if is_stdin(path):
        raise UsageError("records cannot be read from standard input. Pass a file")
    if path.endswith(JSON_LINES):
        return _of_json(path, skip)
    if path.endswith(CSV):
        return _of_csv(path, read_file(Path(path)), skip)
    if path.endswith(".parquet"):
        return records_of(parsed(path, read_file(Path(path))), path)
    raise UsageError(f"{path}: unknown format; the name must end in {', '.join(FORMATS)}")


def has_fields(path: str, names: Sequence[str]) -> bool:
    """Return whether a file may contain records with the given fields.

    Only the first records of JSON Lines are read: a field of one of them, which may be nested, must
    be among ``names``. Lines that cannot be parsed are ignored. Raises the same errors as
    :func:`read_records`.
    """
    if not path.endswith(JSON_LINES):
        return path.endswith(FORMATS)
    lines = islice(_flat_lines(path, lambda reason: None), _FIRST)
    return any(set(names) & set(flat) for _, flat in lines)


def _of_csv(path: str, data: bytes, skip: bool | None) -> Records:
    rows = csv_strings(path, data, skip=skip)
    problems = islice(rows.problems(), REASONS)
    reasons = [f"{path}:{line}: {problem}" for line, problem in problems]
    skipped = SkippedRows(len(rows.skipped), reasons)
    _check_rows(len(rows.table), skipped)
    return Records(
        path=path,
        table=rows.table,
        decimal=rows.form.decimal,
        may_have_commas=rows.form.separator != ",",
        notes=() if rows.form.note is None else (rows.form.note,),
        line=rows.line,
        skipped=skipped,
    )


def _check_rows(rows: int, skipped: SkippedRows) -> None:
    """Raise DataError if all rows of a file are skipped."""
    if not rows and skipped.count:
        raise DataError(f"{skipped.reasons[0]}, and no other row can be parsed. Correct the file")


def records_of(table: pa.Table, path: str) -> Records:
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
        values = [
            None
            if value is None
            else json.dumps(_shortest(value, column.type), ensure_ascii=False, default=str)
            for value in column.to_pylist()
        ]
        return pa.chunked_array([pa.array(values, pa.string())])
    if pa.types.is_floating(column.type):  # repr, since Arrow writes 1.0 as 1
        numbers = column.to_numpy()
        if numbers.dtype != np.float64:  # as strings, since 0.13 of float32 has more digits here
            numbers = numbers.astype(str).astype(np.float64)
        values = [None if value != value else repr(value) for value in numbers.tolist()]
        return pa.chunked_array([pa.array(values, pa.string())])
    if pa.types.is_duration(column.type):  # Arrow writes a number of the column's own unit
        raise DataError(
            f"{path}: column {name!r} must be strings, numbers or dates (it is {column.type}). "
            "Convert it to a number of seconds, or remove it"
        )
    try:
        return column.cast(pa.string())
    except pa.ArrowException as error:
        raise DataError(
            f"{path}: column {name!r} cannot be written as text ({error}). Remove it"
        ) from error


def _shortest(value: Any, kind: Any) -> Any:
    """Return a nested value of the type ``kind`` in which narrow floats have as few digits as they
    need: 0.13, not 0.12999999523162842."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _shortest(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return [[_shortest(key, kind.key_type), _shortest(of, kind.item_type)] for key, of in value]
    if pa.types.is_nested(kind):
        return [_shortest(item, kind.value_type) for item in value]
    if pa.types.is_float32(kind):
        return float(str(np.float32(value)))
    return float(str(np.float16(value))) if pa.types.is_float16(kind) else value


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


def _flat_lines(
    path: str, refused: Callable[[str], None] | None
) -> Iterator[tuple[int, dict[str, str | None]]]:
    """Yield the line number and the flat record of each line. Lines that cannot be parsed are
    passed to ``refused``, or raise DataError if it is None."""
    for where, _, flat in json_lines(path, _Decoder(), refused=refused):
        yield int(where.rpartition(":")[2]), flat


def _of_json(path: str, skip: bool | None) -> Records:
    lines: list[int] = []
    columns: dict[str, list[str | None]] = {}
    reasons: list[str] = []

    def refused(reason: str) -> None:
        if not skip:
            raise DataError(reason if skip is None else f"{reason}{SKIP_ROWS}")
        reasons.append(reason)

    for line, flat in _flat_lines(path, refused):
        for name in flat:
            if name not in columns:
                columns[name] = [None] * len(lines)
                check_width(path, len(columns))
        for name, values in columns.items():
            values.append(flat.get(name))
        lines.append(line)
    skipped = SkippedRows(len(reasons), reasons[:REASONS])
    _check_rows(len(lines), skipped)
    if not lines:
        raise DataError(f"{path} is empty. Pass a file with at least one record")
    arrays = [pa.array(values, pa.string()) for values in columns.values()]
    table = pa.table(arrays, names=list(columns))
    return Records(path=path, table=table, line=lines.__getitem__, skipped=skipped)
