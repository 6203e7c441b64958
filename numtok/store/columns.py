"""Parquet files of the store, read back: of the columns that were written, and no larger than what
their bytes can hold.

Nothing that such a file says is believed: who reads one says which columns it needs, and compares
them before anything is made of them. Page checksums are verified.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from numtok import files
from numtok.errors import StoreError

# A file may be of columns of so many bytes, or of so many times its own: numbers that are all alike
# pack to next to nothing, but each row group needs some kilobytes to say so.
_ALWAYS, _TIMES = 256 << 20, 1 << 13
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_OFFSET = 8  # bytes, at most, for where a text or a list begins


def damaged(path: Path, why: str) -> StoreError:
    """The error for a file that is not what was written."""
    return StoreError(
        f"{path} cannot be read: {' '.join(why.split())}; `numtok verify` says which files are "
        "damaged"
    )


@contextmanager
def opened(path: Path) -> Iterator["pq.ParquetFile"]:
    """A Parquet file. Raises StoreError for one that cannot be read, in the block as well."""
    try:
        with (
            files.name_of_open(path) as name,
            pq.ParquetFile(name, page_checksum_verification=True) as file,
        ):
            _check_size(path, file)
            yield file
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise damaged(path, str(error)) from error


def read_columns(path: Path, check: Callable[["pa.Schema"], None]) -> "pa.Table":
    """All rows of a file with the columns that ``check`` lets pass, texts being UTF-8.

    Raises StoreError.
    """
    with opened(path) as file:
        check(file.schema_arrow)
        table: pa.Table = file.read()
        for column in table.columns:
            column.validate(full=True)
    return table


def check_schema(
    path: Path,
    there: "pa.Schema",
    wanted: "pa.Schema",
    more: "Callable[[str], pa.DataType | None]" = lambda name: None,
) -> None:
    """StoreError unless a file has each of the columns that are wanted, once and of its type.

    more
        The type of a column of another name, None where there can be none of that name.
    """
    kinds = dict(zip(wanted.names, wanted.types, strict=True))
    for name in there.names:
        if (kind := kinds.get(name) or more(name)) is None:
            raise damaged(path, f"there is no column {name!r} in such a file")
        if len(indices := there.get_all_field_indices(name)) > 1:
            raise damaged(path, f"it has the column {name!r} {len(indices)} times")
        if (found := there.field(name).type) != kind:
            raise damaged(path, f"its column {name!r} is of type {found}, not {kind}")
    for name in kinds:
        if name not in there.names:
            raise damaged(path, f"it lacks the column {name!r}")


def check_nulls(path: Path, table: "pa.Table", allowed: Callable[[str], bool]) -> None:
    """StoreError for a missing value in a column of a table where none is allowed."""
    for name in table.column_names:
        column = table.column(name)
        inside = 0
        if pa.types.is_list(column.type):
            inside = sum(chunk.flatten().null_count for chunk in column.chunks)
        if inside or (column.null_count and not allowed(name)):
            raise damaged(path, f"a value of its column {name!r} is missing")


def _check_size(path: Path, file: "pq.ParquetFile") -> None:
    """Before memory is taken: a few bytes may say that they are of billions of values."""
    facts, claimed = file.metadata, 0
    widths = [
        _WIDTHS.get(file.schema.column(k).physical_type, _OFFSET) for k in range(facts.num_columns)
    ]
    for index in range(facts.num_row_groups):
        group = facts.row_group(index)
        columns = [group.column(k) for k in range(group.num_columns)]
        counts = [group.num_rows, *(one.num_values for one in columns)]
        sizes = [one.total_uncompressed_size for one in columns]
        if min([*counts, *sizes]) < 0:
            raise damaged(path, "it says that it has less than no rows")
        claimed += group.num_rows * _OFFSET * len(columns) + sum(sizes)
        claimed += sum(width * count for width, count in zip(widths, counts[1:], strict=True))
    if claimed > max(_ALWAYS, _TIMES * path.stat().st_size):
        raise damaged(path, f"it says that it is of {claimed:,} bytes, which it cannot hold")
