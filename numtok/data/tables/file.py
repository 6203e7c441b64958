"""Read a user's table from a CSV or Parquet file."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from numtok import files
from numtok.data.reading.first_bytes import check_utf8
from numtok.errors import DataError, UsageError, file_not_found

FORMATS = (".csv", ".parquet")
_ROW = re.compile("Row #([0-9]+)")  # in Arrow's messages, which count the header as the first
_HEADER = re.compile(rb"\s*([^\r\n]*)")
_MARKS = re.compile(rb'"|\n|\r(?!\n)')  # quotes, line feeds, and carriage returns before others
_MOST = (1 << 31) - 2  # bytes: Arrow infers types from one block, whose size is an int32
_COLUMNS = 20_000  # maximum: each takes 30 kB here and in later stages, even with few rows


def check_format(path: str, formats: tuple[str, ...] = FORMATS) -> None:
    """Raise UsageError if a file name has none of the given endings."""
    if not path.endswith(formats):
        raise UsageError(f"{path}: unknown format; the name must end in {' or '.join(formats)}")


def read_file(path: Path) -> bytes:
    """Read the bytes of a table file.

    Raises UsageError if the file is missing, and DataError if it is larger than 2 GiB.
    """
    if not path.exists():
        raise file_not_found(path)
    if not path.is_file():
        what = "this is a folder" if path.is_dir() else "not a regular file"
        raise UsageError(f"{path}: {what}. Name a file")
    if (size := path.stat().st_size) > _MOST:
        raise DataError(f"{path} must have at most {_MOST:,} bytes (got {size:,})")
    return files.read_bytes(path, _MOST)


class CsvForm(NamedTuple):
    """Field separator and decimal mark of a CSV file."""

    separator: str = ","
    decimal: str = "."

    @property
    def note(self) -> str | None:
        """Note for the user about separator and decimal mark; None for comma-separated files."""
        if self.separator == ",":
            return None
        mark = "comma" if self.decimal == "," else "point"
        return f"fields are separated by {self.separator!r}, numbers have a decimal {mark}"


def csv_form(data: bytes) -> CsvForm:
    """Detect the field separator and the decimal mark of a CSV file.

    The separator is ``;`` if the header contains it and no comma. If so, the decimal mark is a
    comma if this makes a column numeric that is not numeric with a decimal point.
    """
    header = data[: data.find(b"\n") + 1 or len(data)]
    if b"," in header or b";" not in header:
        return CsvForm()
    comma, point = (CsvForm(";", decimal) for decimal in ",.")
    kinds = [read_csv(data, _options(), form).schema.types for form in (comma, point)]
    is_comma = any(a != b and pa.types.is_floating(a) for a, b in zip(*kinds, strict=True))
    return comma if is_comma else point


def parsed(path: str, data: bytes, words: Sequence[str] = ()) -> "pa.Table":
    """Parse the bytes of a CSV or Parquet file. Raises DataError if they are invalid.

    The CSV columns ``words`` are read as strings. Empty fields and words such as NA, NaN and null
    are missing values, even in string columns (Arrow's rule).
    """
    with _naming(path, data):
        if path.endswith(".parquet"):
            file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
            check_width(path, file.metadata.num_columns)
            return file.read()
        _check_csv(path, data)
        strings = dict.fromkeys(words, pa.string())
        table = read_csv(data, _options(column_types=strings), csv_form(data))
        _ = table.column_names  # raises if a name is not UTF-8
        return table


def csv_strings(path: str, data: bytes) -> "tuple[pa.Table, CsvForm]":
    """Parse the bytes of a CSV file as columns of strings, in which missing values are null.

    Raises DataError if they are invalid, or if two columns have the same name.
    """
    with _naming(path, data):
        _check_csv(path, data)
        form = csv_form(data)
        names = _header(data, form)
        table = read_csv(data, _options(column_types=dict.fromkeys(names, pa.string())), form)
        names = table.column_names
        check_names(path, names)
        if not all(map(pa.types.is_string, table.schema.types)):  # of an unusual header
            strings = dict.fromkeys(names, pa.string())
            table = read_csv(data, _options(column_types=strings), form)
        return table, form


def parquet_names(path: str) -> list[str]:
    """Return the names of a Parquet file's columns. Raises DataError if it is invalid."""
    with _naming(path):
        return list(pq.read_schema(path).names)


def _header(data: bytes, form: CsvForm) -> list[str]:
    """Return the names in the first line, if it is a whole header."""
    match = _HEADER.match(data)
    line = b"" if match is None else match[1]
    with suppress(csv.Error):
        text = line.decode("utf-8-sig", errors="replace")
        return next(csv.reader([text], delimiter=form.separator), [])
    return []


def _check_csv(path: str, data: bytes) -> None:
    if not data.strip():
        raise DataError(f"{path} is empty. A table needs a header and rows")
    check_utf8(data, path)
    check_width(path, _width(data))


@contextmanager
def _naming(path: str, data: bytes = b"") -> Iterator[None]:
    """Turn errors of a parser in the block into a DataError that names the file. ``data`` is the
    content of a CSV."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: the name of a column is not UTF-8. Save the file as UTF-8"
        ) from error
    except (pa.ArrowException, OSError) as error:
        why = " ".join(str(error).split()).rstrip(".")
        if path.endswith(".parquet"):
            raise DataError(
                f"{path}: cannot be read as Parquet: {why}. Restore the file"
            ) from error
        if (row := _broken_row(data)) is not None:
            raise DataError(
                f"{path}: row {row}: a cell without quotes has a carriage return (\\r), which ends "
                "the row. Put the cell in quotes, or replace the character"
            ) from error
        why = _ROW.sub(lambda row: f"row {int(row[1]) - 1}", why)
        raise DataError(
            f"{path}: cannot be read as CSV (a header, and fields separated by commas or "
            f"semicolons): {why}. Correct the row; cells with separators, quotes or line breaks "
            "must be in quotes"
        ) from error


def _broken_row(data: bytes) -> int | None:
    """Return the first row of a CSV with a carriage return in a cell without quotes, or None.
    Rows are counted from 1, after the header."""
    row, quoted = 0, False
    for mark in _MARKS.finditer(data):
        if mark[0] == b'"':
            quoted = not quoted
        elif not quoted and mark[0] == b"\n":
            row += 1
        elif not quoted and row:  # without line feeds, carriage returns end rows
            return row
    return None


def _width(data: bytes) -> int:
    """Return an upper bound on the number of columns, from the first line of a CSV."""
    header = _HEADER.match(data)
    return 0 if header is None else max(map(header[1].count, (b",", b";"))) + 1


def check_width(path: str, columns: int) -> None:
    """Raise DataError if a file has too many columns."""
    if columns > _COLUMNS:
        raise DataError(
            f"{path} must have at most {_COLUMNS:,} columns (got {columns:,}). Keep only the "
            "target and the features that matter"
        )


def _options(**more: Any) -> "pyarrow.csv.ConvertOptions":
    return pyarrow.csv.ConvertOptions(strings_can_be_null=True, **more)


def read_csv(data: bytes, options: "pyarrow.csv.ConvertOptions", form: CsvForm) -> "pa.Table":
    """Parse a CSV file with Arrow. Raises Arrow's exceptions if it is invalid."""
    options.decimal_point = form.decimal
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        # One block, because types are inferred from the first. Threads would not speed that up, and
        # sometimes aborted the process at exit.
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1),
        pyarrow.csv.ParseOptions(delimiter=form.separator, newlines_in_values=True),
        options,
    )


def check_names(path: str, names: Sequence[str]) -> None:
    """Raise DataError if two columns have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            shown = f"the column {name!r}" if name else "a column without a name"
            raise DataError(f"{path} has {shown} {count} times. Give each column a unique name")
