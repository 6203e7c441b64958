"""Data frames of other libraries (pandas, polars, datasets, ...) as Arrow tables and as files."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from numtok.errors import DataError
from numtok.files import Sink


def is_frame(value: Any) -> bool:
    """Return whether a value is a data frame: columns with names, in Arrow's exchange format, or a
    data set of the library ``datasets``."""
    return _is_dataset(value) or (
        hasattr(value, "__arrow_c_stream__")
        and (hasattr(value, "columns") or hasattr(value, "schema"))
    )


def _is_dataset(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("with_format", "column_names", "shape"))


def frame_table(frame: Any, name: str) -> pa.Table:
    """Return a data frame as an Arrow table, without a pandas index.

    Raises DataError, in which the frame is called ``name``, if a column has values of mixed types,
    if two columns have the same name, or if values or categories have no text, such as intervals.
    """
    try:
        table = frame.with_format("arrow")[:] if _is_dataset(frame) else pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:  # TypeError: sparse columns
        raise DataError(f"{name} cannot be read: {'; '.join(map(str, error.args))}") from None
    if hasattr(frame, "shape"):
        table = table.select(range(frame.shape[1]))  # pandas adds its index after the columns
    for index, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):  # such as periods, stored as counts
            raise DataError(
                f"{name}: column {field.name!r} must be strings, numbers or dates (got type "
                f"{field.type}). Convert the column to strings"
            )
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else pa.null()
        if pa.types.is_nested(getattr(kind, "storage_type", kind)):
            raise DataError(
                f"{name}: the categories of column {field.name!r} must be strings or numbers (got "
                f"type {kind}). Convert the column to strings"
            )
        if pa.types.is_string_view(field.type):  # of polars; Arrow cannot take rows of such columns
            table = table.set_column(index, field.name, table.column(index).cast(pa.string()))
        if pa.types.is_string_view(kind):  # the same; Arrow cannot decode such dictionaries
            chunks = [
                pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pa.string()))
                for chunk in table.column(index).chunks
            ]
            kind = pa.dictionary(field.type.index_type, pa.string())
            table = table.set_column(index, field.name, pa.chunked_array(chunks, kind))
    return table.replace_schema_metadata(None)


def write_frame(frame: Any, path: Path, name: str = "frame") -> None:
    """Write a data frame as a Parquet file.

    Raises DataError, in which the frame is called ``name``, if Parquet cannot store a column, and
    the same errors as :func:`frame_table`.
    """
    table = frame_table(frame, name)
    try:
        with Sink(path) as sink:
            pq.write_table(table, sink)
    except pa.ArrowException as error:
        raise DataError(f"{name} cannot be written as Parquet: {error}") from None
