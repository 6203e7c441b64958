"""Read a user's table from a CSV or Parquet file."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from numtok import files
from numtok.data.reading.first_bytes import check_utf8
from numtok.data.reading.sources import CSV
from numtok.data.records.notation import decimal_mark
from numtok.errors import DataError, UsageError, file_not_found

FORMATS = (*CSV, ".parquet")
#: Separators of fields, in the order in which the header is searched: names may have commas.
SEPARATORS = ("\t", ",", ";")
#: Arrow's message for a row of another length. It counts the header as the first row.
_LENGTH = re.compile("Row #([0-9]+): Expected ([0-9]+) columns, got ([0-9]+)")
_BREAK = re.compile(rb"\r\n|\n|\r")
_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?[^\S\t]*([^\r\n]*)")
_MARKS = re.compile(rb'"|\n|\r(?!\n)')  # quotes, line feeds, and carriage returns before others
_MOST = (1 << 31) - 2  # bytes: Arrow infers types from one block, whose size is an int32
_CORRECT = "Correct it: cells with separators, quotes or line breaks must be in quotes"
SKIP_ROWS = ", or skip such rows: --on-error skip"
_COLUMNS = 20_000  # maximum: each takes 30 kB here and in later stages, even with few rows


def check_format(path: str, formats: tuple[str, ...]) -> None:
    """Raise UsageError if a file name has none of the given endings."""
    if not path.endswith(formats):
        raise UsageError(f"{path}: unknown format; the name must end in {', '.join(formats)}")


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
        separators = "tabs" if self.separator == "\t" else repr(self.separator)
        return f"fields are separated by {separators}, numbers have a decimal {mark}"


def csv_form(data: bytes, decimal: str | None = None) -> CsvForm:
    """Detect the field separator and the decimal mark of a CSV file.

    The separator is the first of tab, comma and ``;`` that the header contains. If it is not a
    comma, the columns that Arrow cannot read as numbers determine the decimal mark
    (:func:`~numtok.data.records.notation.decimal_mark`).

    decimal
        Decimal mark of the training data, if it was a CSV file with another separator than commas.
        Ambiguous files have the same mark, and a single column may have decimal commas.
    """
    header = _first_line(data)
    default = "," if decimal is None else ";"
    separator = next((each for each in SEPARATORS if each.encode() in header), default)
    if separator == ",":
        return CsvForm()
    if _undecodable_line(data) is not None:  # whose short rows could not be skipped
        data = data.decode(errors="replace").encode()
    table = read_csv(data, _options(), CsvForm(separator), skip=True)
    strings = [column for column in table.columns if pa.types.is_string(column.type)]
    return CsvForm(separator, decimal_mark(strings, decimal))


def parsed(
    path: str,
    data: bytes,
    words: Sequence[str] = (),
    *,
    decimal: str | None = None,
    skip: bool | None = None,
) -> pa.Table:
    """Parse the bytes of a CSV or Parquet file. Raises DataError if they are invalid.

    Fields of structs become columns with dotted names, as those of JSON objects do. The CSV columns
    ``words`` are read as strings. Empty fields and words such as NA, NaN and null are missing
    values, even in string columns (Arrow's rule).

    decimal
        The same as for :func:`csv_form`.
    skip
        True to skip CSV rows with too few or too many cells. None if the user cannot choose.
    """
    with _naming(path, data, skip):
        if path.endswith(".parquet"):
            file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
            check_width(path, file.metadata.num_columns)
            return _flat(file.read())
        _check_csv(path, data)
        strings = dict.fromkeys(words, pa.string())
        form = csv_form(data, decimal)
        table = read_csv(data, _options(column_types=strings), form, skip=bool(skip))
        _ = table.column_names  # raises if a name is not UTF-8
        return table


@dataclass(frozen=True, eq=False, kw_only=True)
class CsvStrings:
    """The rows of a CSV file as strings.

    table [n rows]
        Columns of strings, in which missing values are null.
    skipped
        Rows with too few or too many cells, which are not in the table.
    """

    table: pa.Table
    data: bytes
    form: CsvForm
    skipped: Sequence[pyarrow.csv.InvalidRow]

    def line(self, row: int) -> int:
        """Return the line at which a row of the table begins, counted from 1."""
        return self._kept_lines[row]

    def problems(self) -> Iterator[tuple[int, str]]:
        """Yield the line of each skipped row, and what is wrong with it."""
        for row in self.skipped:
            problem = _wrong_length(row.actual_columns, row.expected_columns)
            yield self._lines[row.number - 1], problem

    @cached_property
    def _lines(self) -> list[int]:
        return _row_lines(self.data, self.form)

    @cached_property
    def _kept_lines(self) -> list[int]:
        skipped = {row.number for row in self.skipped}
        return [line for number, line in enumerate(self._lines, 1) if number not in skipped][1:]


def csv_strings(path: str, data: bytes, *, skip: bool | None) -> CsvStrings:
    """Parse the bytes of a CSV file as columns of strings.

    Raises DataError if they are invalid, or if two columns have the same name.

    skip
        The same as for :func:`parsed`.
    """
    with _naming(path, data, skip):
        _check_csv(path, data)
        form = csv_form(data)
        names = _header(data, form)
        options = _options(column_types=dict.fromkeys(names, pa.string()))
        skipped: list[pyarrow.csv.InvalidRow] = []
        table = read_csv(data, options, form, skip=bool(skip), skipped=skipped)
        names = table.column_names
        check_names(path, names)
        if not all(map(pa.types.is_string, table.schema.types)):  # of an unusual header
            strings = dict.fromkeys(names, pa.string())
            table = read_csv(data, _options(column_types=strings), form, skip=bool(skip))
        return CsvStrings(table=table, data=data, form=form, skipped=skipped)


def parquet_names(path: str) -> list[str]:
    """Return the names of a Parquet file's columns, as in :func:`parsed`. Raises DataError if it
    is invalid."""
    with _naming(path):
        return list(_flat(pq.read_schema(path).empty_table()).column_names)


def _flat(table: pa.Table) -> pa.Table:
    """Replace each struct by its fields, with dotted names such as ``specs.ram``."""
    while any(map(pa.types.is_struct, table.schema.types)):
        table = table.flatten()
    return table


def _header(data: bytes, form: CsvForm) -> list[str]:
    """Return the names in the first line, if it is a whole header."""
    with suppress(csv.Error):
        text = _first_line(data).decode(errors="replace")
        return next(csv.reader([text], delimiter=form.separator), [])
    return []


def _check_csv(path: str, data: bytes) -> None:
    if not data.strip():
        raise DataError(f"{path} is empty. A table needs a header and rows")
    check_utf8(data, path)
    check_width(path, _width(data))


@contextmanager
def _naming(path: str, data: bytes = b"", skip: bool | None = None) -> Iterator[None]:
    """Turn errors of a parser in the block into a DataError that names the file. ``data`` is the
    content of a CSV, and ``skip`` is False if the user can choose to skip rows."""
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
        if (line := _broken_line(data)) is not None:
            raise DataError(
                f"{path}:{line}: a cell without quotes has a carriage return (\\r), which ends "
                "the row. Put the cell in quotes, or replace the character"
            ) from error
        if length := _LENGTH.search(why):
            number, expected, actual = map(int, length.groups())
            line = _row_lines(data, csv_form(data))[number - 1]
            problem = _wrong_length(actual, expected)
            if skip and _undecodable_line(data) is not None:
                why = "Rows of a file that is not UTF-8 cannot be skipped. Save it as UTF-8"
                raise DataError(f"{path}:{line}: {problem}. {why}") from error
            more = SKIP_ROWS if skip is False else ""
            raise DataError(f"{path}:{line}: {problem}. {_CORRECT}{more}") from error
        if (line := _undecodable_line(data)) is not None:
            raise DataError(
                f"{path}:{line}: not UTF-8. Save the file as UTF-8, for example: iconv -f "
                "WINDOWS-1252 -t UTF-8"
            ) from error
        raise DataError(
            f"{path}: cannot be read as CSV (a header, and fields separated by commas, semicolons "
            f"or tabs): {why}. Correct the row; cells with separators, quotes or line breaks must "
            "be in quotes"
        ) from error


def _wrong_length(actual: int, expected: int) -> str:
    cells = f"{actual} cell" + "s" * (actual != 1)
    return f"the row has {cells}, but the header has {expected}"


def _broken_line(data: bytes) -> int | None:
    """Return the first line of a CSV, after the header, with a carriage return in a cell without
    quotes, or None."""
    rows, quoted = 0, False
    for mark in _MARKS.finditer(data):
        if mark[0] == b'"':
            quoted = not quoted
        elif not quoted and mark[0] == b"\n":
            rows += 1
        elif not quoted and rows:  # without line feeds, carriage returns end rows
            return len(_BREAK.findall(data, 0, mark.start())) + 1
    return None


def _row_lines(data: bytes, form: CsvForm) -> list[int]:
    """Return the line at which each row of a CSV begins, first that of the header. Blank lines have
    no row."""
    quoted = rb'(?:\A|(?<=[%s\r\n]))"[^"]*(?:""[^"]*)*"' % form.separator.encode()
    marked = re.sub(quoted, lambda cell: _BREAK.sub(b"\0", cell[0]), data)
    lines, line = [], 1
    for row in _BREAK.split(marked):
        lines += [line] if row else []
        line += 1 + row.count(b"\0")
    return lines


def _width(data: bytes) -> int:
    """Return an upper bound on the number of columns, from the first line of a CSV."""
    return max(_first_line(data).count(each.encode()) for each in SEPARATORS) + 1


def _first_line(data: bytes) -> bytes:
    """Return the first line that is not blank, without a byte order mark and its end."""
    match = _HEADER.match(data)
    return b"" if match is None else match[1]


def check_width(path: str, columns: int) -> None:
    """Raise DataError if a file has too many columns."""
    if columns > _COLUMNS:
        raise DataError(
            f"{path} must have at most {_COLUMNS:,} columns (got {columns:,}). Keep only the "
            "target and the features that matter"
        )


def _options(**more: Any) -> pyarrow.csv.ConvertOptions:
    return pyarrow.csv.ConvertOptions(strings_can_be_null=True, **more)


def read_csv(
    data: bytes,
    options: pyarrow.csv.ConvertOptions,
    form: CsvForm,
    *,
    skip: bool = False,
    skipped: list[pyarrow.csv.InvalidRow] | None = None,
) -> pa.Table:
    """Parse a CSV file with Arrow. Raises Arrow's exceptions if it is invalid.

    skip
        True to skip rows with too few or too many cells, unless the file is not UTF-8 or a cell
        is broken by a carriage return: the first part of such a row may look complete.
    skipped
        List to which the skipped rows are added.
    """

    def invalid(row: pyarrow.csv.InvalidRow) -> str:
        if not rows and _broken_line(data) is not None:
            return "error"
        rows.append(row)
        return "skip"

    rows = [] if skipped is None else skipped
    options.decimal_point = form.decimal
    # Arrow prints a traceback if it cannot decode the row that it passes to the handler.
    is_skipping = skip and _undecodable_line(data) is None
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        # One block, because types are inferred from the first. Threads would not speed that up, and
        # sometimes aborted the process at exit.
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1),
        pyarrow.csv.ParseOptions(
            delimiter=form.separator,
            newlines_in_values=True,
            invalid_row_handler=invalid if is_skipping else None,
        ),
        options,
    )


def _undecodable_line(data: bytes) -> int | None:
    """Return the first line that is not UTF-8, or None."""
    try:
        _ = data.isascii() or data.decode()
    except UnicodeDecodeError as error:
        return len(_BREAK.findall(data, 0, error.start)) + 1
    return None


def check_names(path: str, names: Sequence[str]) -> None:
    """Raise DataError if two columns have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            shown = f"the column {name!r}" if name else "a column without a name"
            raise DataError(f"{path} has {shown} {count} times. Give each column a unique name")
