"""A user's own file with a table in it, CSV or Parquet, as it is."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from numtok import files
from numtok.data.reading.first_bytes import check_utf8
from numtok.errors import DataError, UsageError

FORMATS = (".csv", ".parquet")
_ROW = re.compile("Row #([0-9]+)")  # in Arrow's messages, where the header is the first
_MOST = (1 << 31) - 2  # bytes: Arrow infers types from one block, whose size is an int32


def check_format(path: str) -> None:
    """Raise UsageError for a file that is named neither CSV nor Parquet."""
    if not path.endswith(FORMATS):
        raise UsageError(
            f"{path}: cannot tell what kind of table this is; allowed are {' and '.join(FORMATS)}"
        )


def read_file(path: Path) -> bytes:
    """Its bytes; UsageError where there is none, DataError where it is too large."""
    if not path.is_file():
        what = "this is no regular file" if path.exists() else "there is no such file"
        what = "this is a folder; name a file in it" if path.is_dir() else what
        raise UsageError(f"{path}: {what}; check the path")
    if (size := path.stat().st_size) > _MOST:
        raise DataError(f"{path} has {size:,} bytes; a table may have {_MOST:,}")
    return files.read_bytes(path, _MOST)


class CsvForm(NamedTuple):
    """The separator of a CSV's fields and the decimal mark of its numbers."""

    separator: str = ","
    decimal: str = "."

    @property
    def note(self) -> str | None:
        """How the file is read, unless that is the usual way."""
        if self.separator == ",":
            return None
        mark = "comma" if self.decimal == "," else "point"
        return f"fields are separated by {self.separator!r}, numbers have a decimal {mark}"


def csv_form(data: bytes) -> CsvForm:
    """Return the form of a CSV: ``;`` separates fields if its header has no comma, and numbers then
    have a decimal comma if that makes a column numeric which otherwise is text."""
    header = data[: data.find(b"\n") + 1 or len(data)]
    if b"," in header or b";" not in header:
        return CsvForm()
    comma, point = (CsvForm(";", decimal) for decimal in ",.")
    kinds = [read_csv(data, _options(), form).schema.types for form in (comma, point)]
    is_comma = any(a != b and pa.types.is_floating(a) for a, b in zip(*kinds, strict=True))
    return comma if is_comma else point


def parsed(path: str, data: bytes, words: Sequence[str] = ()) -> "pa.Table":
    """The file as it is; DataError for what is no table.

    Columns of a CSV named among ``words`` are read as strings, whatever is in them. Arrow takes
    empty fields and words such as NA, NaN and null for missing, in text too.
    """
    try:
        if path.endswith(".parquet"):
            source = pa.BufferReader(data)
            return pq.ParquetFile(source, page_checksum_verification=True).read()
        if not data.strip():
            raise DataError(f"{path} is empty; a table needs a header and rows")
        check_utf8(data, path)
        strings = dict.fromkeys(words, pa.string())
        table = read_csv(data, _options(column_types=strings), csv_form(data))
        _ = table.column_names  # are decoded only here
        return table
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: the name of a column is not UTF-8; save the file as UTF-8"
        ) from error
    except (pa.ArrowException, OSError) as error:
        why = _ROW.sub(lambda row: f"row {int(row[1]) - 1}", " ".join(str(error).split()))
        what = (
            "Parquet"
            if path.endswith(".parquet")
            else "CSV (a header, fields between commas or semicolons)"
        )
        raise DataError(f"{path}: cannot be read as {what}: {why}; write it again") from error


def _options(**more: Any) -> "pyarrow.csv.ConvertOptions":
    return pyarrow.csv.ConvertOptions(strings_can_be_null=True, **more)


def read_csv(data: bytes, options: "pyarrow.csv.ConvertOptions", form: CsvForm) -> "pa.Table":
    """CSV as Arrow reads it; raises as Arrow does."""
    options.decimal_point = form.decimal
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        # Types are inferred from one block. Threads, of which there would be little to do in one,
        # were still there now and then when the process ended, and aborted it.
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1),
        pyarrow.csv.ParseOptions(delimiter=form.separator, newlines_in_values=True),
        options,
    )


def check_names(path: str, names: Sequence[str]) -> None:
    """Raise DataError for two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1:
            shown = f"the column {name!r}" if name else "a column without a name"
            raise DataError(f"{path} has {shown} {count} times; give each column a name of its own")
