"""Reads the store's Parquet files, after checking their columns and claimed sizes.

The files are not trusted: callers state which columns they need, and the schema of a file is
checked before its rows are read. Page checksums are verified.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from numtok import files
from numtok.errors import StoreError
from numtok.stored_json import VERIFY

# Maximum size of a file's columns: absolute, and as a multiple of its size. Constant numbers
# compress to almost nothing, but each row group takes a few kilobytes.
_ALWAYS, _TIMES = 256 << 20, 1 << 13
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_OFFSET = 8  # maximum bytes of the offset of a text or a list


def damaged(path: Path, why: str) -> StoreError:
    """Return the StoreError for a file that was changed or damaged; ``why`` is the reason."""
    return StoreError(f"{path} cannot be read: {' '.join(why.split()).rstrip('.')}. {VERIFY}")


@contextmanager
def opened(path: Path) -> Iterator["pq.ParquetFile"]:
    """Open a Parquet file for the duration of the block.

    Raises StoreError if the file cannot be read, even if the error occurs within the block.
    """
    try:
        with (
            files.name_of_open(path) as name,
            pq.ParquetFile(name, page_checksum_verification=True) as file,
        ):
            _check_size(path, file)
            yield file
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(path, str(error)) from error


def read_columns(path: Path, check: Callable[["pa.Schema"], None]) -> pa.Table:
    """Read all rows of a Parquet file after calling ``check`` on its schema.

    Raises StoreError if the file is damaged or contains text that is not UTF-8.
    """
    with opened(path) as file:
        check(file.schema_arrow)
        table: pa.Table = file.read()
        for column in table.columns:
            column.validate(full=True)
    return table


def check_schema(
    path: Path,
    actual: pa.Schema,
    wanted: pa.Schema,
    more: Callable[[str], pa.DataType | None] = lambda name: None,
) -> None:
    """Raise StoreError unless a file has exactly the ``wanted`` columns, without duplicates and
    with the right types.

    more
        Function that returns the type of an optional extra column, or None if the name is not
        allowed.
    """
    kinds = dict(zip(wanted.names, wanted.types, strict=True))
    for name in actual.names:
        if (kind := kinds.get(name) or more(name)) is None:
            raise damaged(path, f"unexpected column {name!r}")
        if len(indices := actual.get_all_field_indices(name)) > 1:
            raise damaged(path, f"it has the column {name!r} {len(indices)} times")
        if (actual_kind := actual.field(name).type) != kind:
            raise damaged(path, f"its column {name!r} is {actual_kind}, not {kind}")
    for name in kinds:
        if name not in actual.names:
            raise damaged(path, f"it lacks the column {name!r}")


def check_nulls(path: Path, table: pa.Table, allowed: Callable[[str], bool]) -> None:
    """Raise StoreError if a value is missing within a list, or in a column for which ``allowed``
    returns false."""
    for name in table.column_names:
        column = table.column(name)
        inside = 0
        if pa.types.is_list(column.type):
            inside = sum(chunk.flatten().null_count for chunk in column.chunks)
        if inside or (column.null_count and not allowed(name)):
            raise damaged(path, f"a value of its column {name!r} is missing")


def _check_size(path: Path, file: pq.ParquetFile) -> None:
    """Check claimed sizes before memory is allocated: a small file may claim billions of values."""
    facts, claimed = file.metadata, 0
    widths = [
        _WIDTHS.get(file.schema.column(k).physical_type, _OFFSET) for k in range(facts.num_columns)
    ]
    for index in range(facts.num_row_groups):
        group = facts.row_group(index)
        columns = [group.column(k) for k in range(group.num_columns)]
        counts = [group.num_rows, *(column.num_values for column in columns)]
        sizes = [column.total_uncompressed_size for column in columns]
        if min([*counts, *sizes]) < 0:
            raise damaged(path, "it claims a negative number of rows")
        claimed += group.num_rows * _OFFSET * len(columns) + sum(sizes)
        claimed += sum(width * count for width, count in zip(widths, counts[1:], strict=True))
    if claimed > max(_ALWAYS, _TIMES * path.stat().st_size):
        raise damaged(path, f"it claims {claimed:,} bytes, impossible for a file of its size")
