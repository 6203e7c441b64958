"""Convert arbitrary columns to the columns of a table artifact.

``numtok table`` uses this module for a user's files, ``numtok fetch`` for public data sets.
"""

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from numtok.data.reading.split_rule import SPLIT_RULE, TRAIN, is_split
from numtok.data.tables.table import (
    Feature,
    TableFile,
    rows_name,
    write_rows,
    write_table_file,
)
from numtok.errors import DataError
from numtok.files import Sink
from numtok.names import drop_option

#: Names of columns with the split of each row; several columns are folds.
SPLIT_COLUMN = re.compile(r"split(_[0-9]+)?")

# A decimal number alone in its field.
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
# A number in other notations: thousands separators, a typeset minus, a percentage.
_LIKE_NUMBER = (
    r"^\s*[+\-\x{2212}]?"
    r"([0-9]{1,3}([,'\x{a0}\x{202f} ][0-9]{3})+(\.[0-9]*)?|[0-9]+\.?[0-9]*|\.[0-9]+)"
    r"([eE][+-]?[0-9]+)?\s*%?\s*$"
)
_EXACT = 1 << 53  # float64 has every integer up to this one
_MANY = 100  # distinct values of a category
_LARGE = "integers beyond 2^53, which are rounded"
_LARGEST = 1e150  # its square, and so every variance, fits into a float64
_SKIP = "--on-error skip of numtok table and race"
_FEATURES = "numbers, booleans or strings"


@dataclass(frozen=True, eq=False, kw_only=True)
class TableColumns:
    """Columns of a table that will be written as an artifact.

    where
        Prefix of error messages: the file or the data set.
    target [n]
        Finite float64 values.
    features [n] each
        Columns by name: float64 for numbers, strings for categories; null if missing.
    assigned [n] each
        Split columns by name (strings); null for rows without a split.
    dates
        Column, part and format of the date, for features that are parts of dates.
    decimal
        Decimal mark, if the columns are those of a CSV file that is not separated by commas.
    """

    where: str
    target_name: str
    target: "pa.Array[Any]"
    features: "dict[str, pa.Array[Any]]"
    assigned: "dict[str, pa.Array[Any]]"
    notes: tuple[str, ...]
    dates: Mapping[str, tuple[str, str, str | None]] = field(default_factory=dict)
    decimal: str | None = None

    def feature(self, name: str) -> Feature:
        """Describe a feature."""
        if name in self.dates:
            return Feature(name, "number", *self.dates[name])
        if pa.types.is_floating(self.features[name].type):
            return Feature(name, "number", decimal=self.decimal)
        return Feature(name, "category")


def feature_column(
    where: str, name: str, column: "pa.ChunkedArray[Any]", *, may_drop: bool = True
) -> "tuple[pa.Array[Any], str | None]":
    """Convert a column [n] to a feature [n].

    Numbers become float64; strings and booleans become categories. Also returns a note if this
    conversion may surprise the user, otherwise None. Raises DataError for other types, such as
    dates, and if a number is infinite.

    where
        Prefix of error messages.
    may_drop
        True if error messages should suggest ``--drop``.
    """
    column = plain_strings(column)
    kind = column.type
    drop = f", or drop the column: {drop_option(name)}" if may_drop else ""
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "true", "false").combine_chunks(), None
    if pa.types.is_string(kind):
        return column.combine_chunks(), _nearly_numbers(name, column) or _nearly_ids(name, column)
    if not _is_number(kind):
        raise DataError(
            f"{where}: column {name!r} must be {_FEATURES} (it {_actual(kind)}). Convert it{drop}"
        )
    values = column.cast(pa.float64(), safe=False).combine_chunks()
    values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    if (row := _first(pc.is_inf(values))) is not None:
        raise DataError(
            f"{where}: feature {name!r} must be finite or missing (got {values[row].as_py()} in "
            f"row {row + 1}). Correct it{drop}"
        )
    return values, f"{name!r} has {_LARGE}" if _is_large(column) else None


def target_column(
    where: str, name: str, column: "pa.ChunkedArray[Any]", *, may_skip: bool = True
) -> "pa.Array[Any]":
    """Convert a column to a table's target [n], in float64.

    Strings are parsed as numbers. Raises DataError if a value is missing, not finite or too large,
    or if the target is constant.

    where
        Prefix of error messages.
    may_skip
        True if error messages should suggest skipping bad rows with ``--on-error skip``.
    """
    column = plain_strings(column)
    skip = f"skip such rows ({_SKIP})" if may_skip else "remove the row"
    if pa.types.is_string(column.type):
        if (row := first_word(column)) is not None:
            raise DataError(
                f"{where}: target {name!r} must be a number in every row (got "
                f"{column[row].as_py()!r} in row {row + 1}). Correct it, {skip}, or choose another "
                "column: --target"
            )
        column = pc.utf8_trim_whitespace(column).cast(pa.float64())
    elif not _is_number(column.type) and not pa.types.is_null(column.type):
        raise DataError(
            f"{where}: target {name!r} must be numeric (it {_actual(column.type)}). Choose another "
            "column: --target"
        )
    values = column.cast(pa.float64(), safe=False).combine_chunks()
    if (row := _first(pc.invert(pc.is_finite(values).fill_null(False)))) is not None:
        got = "missing" if (value := values[row].as_py()) is None else str(value)
        raise DataError(
            f"{where}: target {name!r} must be a finite number in every row ({got} in row "
            f"{row + 1}). Correct it, or {skip}"
        )
    if (row := _first(pc.greater(pc.abs(values), _LARGEST))) is not None:
        raise DataError(
            f"{where}: target {name!r} must be at most {_LARGEST:g} (got {values[row].as_py():g} "
            f"in row {row + 1}). Scale it, take its logarithm, or {skip}"
        )
    if _is_large(column) and pc.min(values) == pc.max(values) and pc.min(column) != pc.max(column):
        raise DataError(
            f"{where}: target {name!r} has {_LARGE}, to {values[0].as_py():g} in every row. "
            "Subtract a common offset"
        )
    check_varies(where, name, values)
    return values


def check_varies(where: str, name: str, target: "pa.Array[Any]") -> None:
    """Raise DataError if a target [n] has fewer than two values or is constant."""
    if len(target) < 2:
        rows = "one row" if len(target) else "no rows"
        raise DataError(f"{where} has {rows}; a table needs at least two")
    if pc.min(target).as_py() == pc.max(target).as_py():
        raise DataError(
            f"{where}: target {name!r} is {target[0].as_py():g} in every row, so there is nothing "
            "to predict. Choose another column: --target"
        )


def split_column(where: str, name: str, column: "pa.ChunkedArray[Any]") -> "pa.Array[Any]":
    """Convert a split column to strings [n]. Raises DataError if a split name is invalid."""
    column = plain_strings(column)
    if not pa.types.is_string(column.type):
        raise DataError(
            f"{where}: split column {name!r} must have names such as train and test (got "
            f"{column.type}). Correct it, or drop the column: {drop_option(name)}"
        )
    splits = column.combine_chunks()
    for split in pc.unique(splits.drop_null()).to_pylist():
        if not is_split(split):
            row = _first(pc.equal(splits, split))
            assert row is not None
            raise DataError(
                f"{where}: split column {name!r} is {split!r} in row {row + 1}; names of splits "
                f"are {SPLIT_RULE}"
            )
    return splits


def write_columns(folder: Path, columns: TableColumns) -> dict[str, int]:
    """Write the files of a table artifact, and return the counts for its manifest.

    Raises DataError if the table has no features, if a split column is also the target or a
    feature, or if a fold has no train rows.
    """
    where = columns.where
    if not columns.features:
        raise DataError(
            f"{where}: no column is left as a feature. A table needs at least one in addition to "
            f"the target {columns.target_name!r}"
        )
    for fold in columns.assigned:
        if fold in columns.features or fold == columns.target_name:
            raise DataError(
                f"{where}: column {fold!r} is both the split and the target or a feature. Rename it"
            )
    notes = list(columns.notes)
    counts: dict[str, int] = {}
    for fold, assigned in columns.assigned.items():
        counts, more = count_splits(where, fold, assigned)
        notes += more
    file = TableFile(
        target=columns.target_name,
        features=list(map(columns.feature, columns.features)),
        splits=list(columns.assigned),
        notes=notes,
    )
    rows = [*columns.features.values(), columns.target, *columns.assigned.values()]
    with Sink(folder / rows_name(0)) as sink:
        write_rows(sink, pa.Table.from_arrays(rows, schema=file.schema))
    write_table_file(folder, file)
    totals = {"rows": len(columns.target), "features": len(columns.features)}
    if len(columns.assigned) == 1:
        totals |= {f"rows_{split}": counts[split] for split in sorted(counts)}
    return totals


def count_splits(
    where: str, fold: str, assigned: "pa.Array[Any]"
) -> tuple[dict[str, int], list[str]]:
    """Return the number of rows in each split of a fold, and notes for the user.

    ``assigned`` contains the split of each row [n], null for none. Raises DataError if there are
    no train rows.
    """
    counts = dict(Counter(assigned.drop_null().to_pylist()))
    notes = []
    if TRAIN not in counts:
        raise DataError(
            f"{where}: the split {TRAIN!r} of {fold!r} is empty; it needs at least one row"
        )
    if "test" not in counts:
        notes.append(f"the split 'test' of {fold!r} is empty. Evaluate another one: --split")
    if assigned.null_count:
        notes.append(f"rows in no split of {fold!r}: {assigned.null_count:,}")
    return counts, notes


def first_word(column: "pa.Array[Any]") -> int | None:
    """Return the index of the first string in a column [n] that is not a number.

    Missing values are ignored. Returns None if all strings are numbers.
    """
    return _first(pc.invert(pc.match_substring_regex(column, _NUMBER)))


def plain_strings(column: "pa.ChunkedArray[Any]") -> "pa.ChunkedArray[Any]":
    """Decode dictionaries, and convert all string types to the plain one, also bytes that are
    UTF-8, as some programs write strings to Parquet."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, types = column.type, pa.types
    if types.is_large_string(kind) or types.is_string_view(kind):
        return column.cast(pa.string())
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        with suppress(pa.ArrowInvalid):
            return column.cast(pa.string())
    return column


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _actual(kind: pa.DataType) -> str:
    """Return what is wrong with a column of this type, in words."""
    return "has text that is not UTF-8" if pa.types.is_binary(kind) else f"is {kind}"


def _is_large(column: "pa.ChunkedArray[Any]") -> bool:
    """Return whether a column has integers that float64 rounds."""
    if not pa.types.is_integer(column.type) or column.null_count == len(column):
        return False
    ends = pc.min_max(column).as_py()
    return bool(ends["min"] < -_EXACT or ends["max"] > _EXACT)


def _first(wrong: "pa.ChunkedArray[Any]") -> int | None:
    """Return the index of the first true value, or None."""
    index: int = pc.index(wrong, True).as_py()
    return None if index < 0 else index


def _nearly_ids(name: str, column: "pa.ChunkedArray[Any]") -> str | None:
    """Return a note if a category column looks like the ids of rows."""
    different = pc.count_distinct(column).as_py()
    if different < _MANY or 2 * different < len(column):
        return None
    return (
        f"{name!r} is a category with {different:,} values in {len(column):,} rows. If it "
        f"identifies rows, drop it: {drop_option(name)}"
    )


def _nearly_numbers(name: str, column: "pa.ChunkedArray[Any]") -> str | None:
    """Return a note if most values look like numbers but the column became a category."""
    like = pc.sum(pc.match_substring_regex(column, _LIKE_NUMBER)).as_py()
    if not like or 2 * like < len(column):
        return None
    if (row := first_word(column)) is None:
        return f"{name!r} is a category, because its numbers are stored as strings"
    text = repr(column[row].as_py())
    return f"{name!r} is a category, because {text} in row {row + 1} is not a number"
