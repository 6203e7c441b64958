"""Read rows from Parquet files. A file part is a run of consecutive row groups."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from numtok.data.reading.arrow import column
from numtok.data.reading.batches import ReadingOptions, RejectedRow, RowBatch
from numtok.data.reading.checksum import Checksum
from numtok.data.reading.file_part import FilePart, PartBytes
from numtok.data.reading.rows import RowColumns, RowOffsets, problem_in
from numtok.data.reading.validation_reasons import validation_reason
from numtok.errors import DataError
from numtok.row import OPTIONAL, Row


def row_groups(whole: FilePart, size: int) -> list[tuple[int, int, int, Checksum]]:
    """Divide a Parquet file into runs of row groups of about ``size`` uncompressed bytes each.

    Returns a tuple for each run: the index of its first row group, the index after its last row
    group, the number of rows before the run, and an empty checksum. Raises DataError if the file
    has no rows.
    """
    with PartBytes(whole, 0, whole.size) as raw, _parquet(raw) as file:
        bounds: list[tuple[int, int, int, Checksum]] = []
        begin, first, row, gathered = 0, 0, 0, 0
        for group in range(file.metadata.num_row_groups):
            facts = file.metadata.row_group(group)
            if group > begin and gathered + facts.total_byte_size > size:
                bounds.append((begin, group, first, Checksum()))
                begin, first, gathered = group, row, 0
            gathered += facts.total_byte_size
            row += facts.num_rows
        if not row:
            raise DataError(f"{whole.shown} has no rows. Pass a file with at least one row")
        bounds.append((begin, file.metadata.num_row_groups, first, Checksum()))
        return bounds


def _parquet(raw: PartBytes) -> pq.ParquetFile:
    with _naming(raw, "not a readable Parquet file"):
        return pq.ParquetFile(pa.PythonFile(raw, "r"), page_checksum_verification=True)


@contextmanager
def _naming(raw: PartBytes, what: str) -> Iterator[None]:
    """Turn errors of Arrow into one line that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raw.check()
        raise DataError(f"{raw.shown}: {what} ({error}). Download or write it again") from None


def read_parquet(part: FilePart, how: ReadingOptions, size: int) -> Iterator[RowBatch]:
    """Yield the rows of a Parquet file part, about ``size`` bytes at a time.

    Raises DataError if the file is not Parquet, lacks a column or changed since it was planned.
    """
    with PartBytes(part, 0, part.stamp.size) as raw, _parquet(raw) as file:
        schema = file.schema_arrow
        _check_columns(part, schema, how.text_field)
        extra = [name for name in OPTIONAL if name in schema.names and name != how.text_field]
        row = 0
        groups = list(range(part.begin, part.end))
        facts = [file.metadata.row_group(group) for group in groups]
        total = sum(group.total_byte_size for group in facts)
        rows = sum(group.num_rows for group in facts)
        at_once = max(1, size // max(1, total // max(1, rows)))
        batches = file.iter_batches(at_once, groups, [how.text_field, *extra])
        while True:
            with _naming(raw, "cannot be read as Parquet"):
                batch = next(batches, None)
            if batch is None:
                return
            raw.check()
            yield _parquet_batch(part, batch, how.text_field, extra, row)
            row += batch.num_rows


def _check_columns(part: FilePart, schema: pa.Schema, text_field: str) -> None:
    """Raise DataError if a column is missing or has the wrong type."""
    if {"tokens", "number_start"} <= set(schema.names):
        raise DataError(
            f"{part.shown} is already encoded (it has the columns tokens and number_start). "
            "Pass the data it was made from"
        )
    if (text_kind := _text_kind(schema, text_field)) is None:
        raise DataError(
            f"{part.shown} has no column {text_field!r} (columns: {', '.join(schema.names)}). "
            "Name the text column with --text-field, or a column to predict with --target"
        )
    allowed = {
        "id": ("a string or integer", "SIN"),
        "label": ("a string or integer", "SIN"),
        "cluster": ("a string or integer", "SIN"),
        "split": ("a string", "SN"),
        "answer_start": ("an integer", "IN"),
        "not_numbers": ("a list of pairs of integers", "MIN"),
        "targets": ("a map or struct of lists of pairs of integers", "MSIN"),
        "floors": ("a map or struct of maps or structs of lists of numbers", "MSIFN"),
        "group": ("a map or struct of strings and numbers", "MSIFBN"),
    }
    kinds = {name: schema.field(name).type for name in allowed if name in schema.names}
    allowed[text_field], kinds[text_field] = ("a string", "S"), text_kind
    for name, kind in kinds.items():
        words, letters = allowed[name]
        if not _letters_of(kind) <= set(letters):
            raise DataError(f"{part.shown}: column {name!r} must be {words} (got {kind})")


def _text_path(names: Sequence[str], text_field: str) -> list[str]:
    """Return the column of the text and the path of fields within it."""
    return [text_field] if text_field in names else text_field.split(".")


def _text_kind(schema: pa.Schema, text_field: str) -> pa.DataType | None:
    """Return the type of the text; None if no column or nested field has that name."""
    kind: pa.DataType = pa.struct(list(schema))
    for name in _text_path(schema.names, text_field):
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return kind


def _letters_of(kind: Any) -> set[str]:
    """Return the kinds in a type: S string, I integer, F float, B bool, N null, M nesting."""
    types = pa.types
    if types.is_dictionary(kind):
        return _letters_of(kind.value_type)
    if types.is_nested(kind):
        inner = (kind.field(k).type for k in range(kind.num_fields))
        return {"M"}.union(*map(_letters_of, inner))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return {"S"}
    plain = {"I": types.is_integer, "F": types.is_floating, "B": types.is_boolean}
    plain["N"] = types.is_null
    return {letter for letter, matches in plain.items() if matches(kind)} or {"?"}


def _parquet_batch(
    part: FilePart, batch: pa.RecordBatch, text_field: str, extra: list[str], row: int
) -> RowBatch:
    rejected: list[RejectedRow] = []
    fields: list[Row] = []
    kept: list[int] = []
    broken = _invalid_utf8(batch)
    fields_of_rows = _extra_fields(batch, extra, broken)
    column_name, *inner = _text_path(batch.schema.names, text_field)
    texts = batch.column(column_name)
    if inner:
        import pyarrow.compute as pc  # slow to import

        texts = pc.struct_field(texts, inner)
    texts = texts.cast(pa.string())
    missing = texts.is_null().to_pylist()
    for index, values in enumerate(fields_of_rows):
        try:
            if index in broken:
                raise msgspec.ValidationError("a string is invalid UTF-8. Write it as UTF-8")
            if missing[index]:
                raise msgspec.ValidationError(f"{text_field!r} must be a string (it is null)")
            record = msgspec.convert(values | {"text": ""}, Row)
            if problem_in(record):  # the message needs the text, which is only read now
                whole = msgspec.structs.replace(record, text=texts[index].as_py())
                raise msgspec.ValidationError(problem_in(whole))
            fields.append(record)
            kept.append(index)
        except msgspec.ValidationError as error:
            content = (
                texts[index].cast(pa.binary()).as_py()
                if index in broken
                else msgspec.json.encode(_row(batch, index))
            )
            reason = validation_reason(str(error))
            rejected.append(RejectedRow(part, row + index, reason, content))
    keep = np.array(kept, np.int64)
    if len(kept) < len(batch):
        texts = texts.take(column(keep))
    return RowBatch(
        part=part,
        numbers=keep + row,
        rows=RowColumns.from_records(
            fields, RowOffsets(part.file, keep + part.first_row + row), texts
        ),
        contents=lambda index: msgspec.json.encode(_row(batch, kept[index])),
        rejected=rejected,
    )


def _invalid_utf8(batch: pa.RecordBatch) -> set[int]:
    """Return the rows with invalid UTF-8, which Parquet writers and readers do not check."""

    def is_valid(rows: pa.RecordBatch) -> bool:
        try:
            rows.validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True

    rows = () if is_valid(batch) else range(len(batch))
    return {index for index in rows if not is_valid(batch.slice(index, 1))}


def _extra_fields(
    batch: pa.RecordBatch, extra: list[str], broken: set[int]
) -> list[dict[str, Any]]:
    """Return the fields of each row except its text; none for broken rows."""
    if not extra:
        return [{} for _ in range(len(batch))]
    chosen = batch.select(extra)
    if broken:
        rows = [{} if k in broken else _row(chosen, k) for k in range(len(batch))]
    else:
        rows = chosen.to_pylist()
    return [
        {
            key: _plain(value, 1 + (key == "floors"))
            for key, value in row.items()
            if value is not None
        }
        for row in rows
    ]


def _row(batch: pa.RecordBatch, index: int) -> dict[str, Any]:
    row: dict[str, Any] = batch.slice(index, 1).to_pylist()[0]
    return row


def _plain(value: Any, deep: int) -> Any:
    """Convert Arrow's maps (lists of pairs) and structs (null for absent names) to dictionaries.

    ``deep`` is the number of nested levels to convert.
    """
    if not deep:
        return value
    if isinstance(value, list) and all(isinstance(item, tuple) for item in value):
        value = dict(value)
    if isinstance(value, dict):
        return {key: _plain(item, deep - 1) for key, item in value.items() if item is not None}
    return value
