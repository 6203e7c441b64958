"""Columns of any table to those of a table artifact; shared by the stages table and fetch."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from numtok.data.tables.table import (
    Feature,
    Kind,
    TableFile,
    rows_name,
    write_rows,
    write_table_file,
)
from numtok.errors import DataError
from numtok.files import Sink
from numtok.records import SPLIT_RULE, TRAIN, is_split

#: The columns of a file that say which split a row is in, several where there are folds.
SPLIT_COLUMN = re.compile(r"split(_[0-9]+)?")

# A decimal as people write it, alone in its field.
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
# One as tables of people have it: thousands apart, a typeset minus, a percentage.
_LIKE_NUMBER = (
    r"^\s*[+\-\x{2212}]?"
    r"([0-9]{1,3}([,'\x{a0}\x{202f} ][0-9]{3})+(\.[0-9]*)?|[0-9]+\.?[0-9]*|\.[0-9]+)"
    r"([eE][+-]?[0-9]+)?\s*%?\s*$"
)
_EXACT = 1 << 53  # float64 has every integer up to this one
_MANY = 100  # values of a category
_LARGE = "integers beyond 2^53, which are rounded"
_LARGEST = 1e150  # whose square, and with it every variance, is a float64
_SKIP = "--on-error skip of numtok table and race"
_FEATURES = "features are numbers, booleans and strings"


@dataclass(frozen=True, eq=False, kw_only=True)
class TableColumns:
    """A table on its way into an artifact.

    where
        What error lines begin with: the file, or the data set.
    target [n]
        Finite float64.
    features [n] each
        float64 for a number, string for a category; null is missing.
    assigned [n] each
        The split columns by name, strings; null is in no split.
    """

    where: str
    target_name: str
    target: "pa.Array[Any]"
    features: "dict[str, pa.Array[Any]]"
    assigned: "dict[str, pa.Array[Any]]"
    notes: tuple[str, ...]


def feature_column(
    where: str, name: str, column: "pa.ChunkedArray[Any]", *, may_drop: bool = True
) -> "tuple[pa.Array[Any], str | None]":
    """A column as a feature, and a note where a reader might expect another kind.

    Numbers become float64, strings and booleans a category. Raises DataError for dates and
    whatever else is neither, and for infinities.
    """
    column = _plain(column)
    kind = column.type
    drop = f"out (--drop {name})"
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "true", "false").combine_chunks(), None
    if pa.types.is_string(kind):
        return column.combine_chunks(), _nearly_numbers(name, column) or _nearly_ids(name, column)
    if not _is_number(kind):
        what = "holds text that is not UTF-8" if pa.types.is_binary(kind) else f"is of type {kind}"
        raise DataError(
            f"{where}: the column {name!r} {what}; {_FEATURES}; write it as one of these"
            + (f", or leave it {drop}" if may_drop else "")
        )
    values = column.cast(pa.float64(), safe=False).combine_chunks()
    values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    if (row := _first(pc.is_inf(values))) is not None:
        raise DataError(
            f"{where}: the feature {name!r} is {values[row].as_py()} in row {row + 1}; features "
            f"are finite or missing; correct it"
            + (f", or leave the column {drop}" if may_drop else "")
        )
    return values, f"{name!r} has {_LARGE}" if _is_large(column) else None


def has_target(column: "pa.ChunkedArray[Any]") -> "pa.ChunkedArray[Any]":
    """Return for each row [n] if :func:`target_column` accepts its target; a column that is not
    numeric has none."""
    column = _plain(column)
    if pa.types.is_string(column.type):
        texts = pc.if_else(pc.match_substring_regex(column, _NUMBER), column, None)
        column = pc.utf8_trim_whitespace(texts).cast(pa.float64())
    elif not _is_number(column.type):
        return pa.chunked_array([pa.repeat(False, len(column))])
    sizes = pc.abs(column.cast(pa.float64(), safe=False))
    return pc.fill_null(pc.less_equal(sizes, _LARGEST), False)


def target_column(
    where: str, name: str, column: "pa.ChunkedArray[Any]", *, may_skip: bool = True
) -> "pa.Array[Any]":
    """The target [n] as finite float64.

    Numbers written as strings are read. Raises DataError for anything else, naming the first bad
    value and its row, and for a target that is the same in every row.
    """
    column = _plain(column)
    skip = f"skip such rows ({_SKIP})" if may_skip else "remove the row"
    if pa.types.is_string(column.type):
        if (row := first_word(column)) is not None:
            raise DataError(
                f"{where}: the target {name!r} is {column[row].as_py()!r} in row {row + 1}; a "
                f"target is a number in every row; correct it, {skip}, or name another column by "
                "--target"
            )
        column = pc.utf8_trim_whitespace(column).cast(pa.float64())
    elif not _is_number(column.type) and not pa.types.is_null(column.type):
        raise DataError(
            f"{where}: the target {name!r} is of type {column.type}; a target is a number in "
            "every row; name another column by --target"
        )
    values = column.cast(pa.float64(), safe=False).combine_chunks()
    if (row := _first(pc.invert(pc.is_finite(values).fill_null(False)))) is not None:
        got = "missing" if (value := values[row].as_py()) is None else str(value)
        raise DataError(
            f"{where}: the target {name!r} is {got} in row {row + 1}; a target is a finite number "
            f"in every row; correct it, or {skip}"
        )
    if (row := _first(pc.greater(pc.abs(values), _LARGEST))) is not None:
        raise DataError(
            f"{where}: the target {name!r} is {values[row].as_py():g} in row {row + 1}; at most "
            f"{_LARGEST:g} can be predicted; divide the target by what suits it, take its "
            f"logarithm, or {skip}"
        )
    if _is_large(column) and pc.min(values) == pc.max(values) and pc.min(column) != pc.max(column):
        raise DataError(
            f"{where}: the target {name!r} has {_LARGE}, to {values[0].as_py():g} in every row; "
            "subtract what they have in common"
        )
    check_varies(where, name, values)
    return values


def check_varies(where: str, name: str, target: "pa.Array[Any]") -> None:
    """DataError for fewer than two rows, and for a target of one value."""
    if len(target) < 2:
        rows = "one row" if len(target) else "no rows"
        raise DataError(f"{where} has {rows}; a table needs at least two")
    if pc.min(target).as_py() == pc.max(target).as_py():
        raise DataError(
            f"{where}: the target {name!r} is {target[0].as_py():g} in every row; there is nothing "
            "to predict; name another column by --target"
        )


def split_column(where: str, name: str, column: "pa.ChunkedArray[Any]") -> "pa.Array[Any]":
    """The split of each row [n]; DataError for what can be no split's name."""
    column = _plain(column)
    if not pa.types.is_string(column.type):
        raise DataError(
            f"{where}: the split column {name!r} is of type {column.type}; it holds names such as "
            f"train and test; write these, or leave it out (--drop {name})"
        )
    splits = column.combine_chunks()
    for split in pc.unique(splits.drop_null()).to_pylist():
        if not is_split(split):
            row = _first(pc.equal(splits, split))
            assert row is not None
            raise DataError(
                f"{where}: the split column {name!r} is {split!r} in row {row + 1}; a split's name "
                f"is {SPLIT_RULE}"
            )
    return splits


def write_columns(folder: Path, columns: TableColumns) -> dict[str, int]:
    """Write the files of a table artifact; its counts.

    Raises DataError where there is no feature, or a fold has no row to train on.
    """
    where = columns.where
    if not columns.features:
        raise DataError(
            f"{where}: no column is left for a feature; a table needs one beside the target "
            f"{columns.target_name!r}"
        )
    for fold in columns.assigned:
        if fold in columns.features or fold == columns.target_name:
            raise DataError(
                f"{where}: the column {fold!r} would be both the split of each row and the target "
                "or a feature; rename it"
            )
    notes = list(columns.notes)
    counts: dict[str, int] = {}
    for fold, assigned in columns.assigned.items():
        counts = dict(Counter(assigned.drop_null().to_pylist()))
        if TRAIN not in counts:
            raise DataError(
                f"{where}: no row is in the split {TRAIN!r} of {fold!r}; at least one is needed"
            )
        if "test" not in counts:
            notes.append(f"no row is in the split 'test' of {fold!r}; eval needs another --split")
        if assigned.null_count:
            notes.append(f"rows that are in no split of {fold!r}: {assigned.null_count:,}")
    file = TableFile(
        target=columns.target_name,
        features=[Feature(name, _kind(values)) for name, values in columns.features.items()],
        splits=list(columns.assigned),
        notes=notes,
    )
    rows = [*columns.features.values(), columns.target, *columns.assigned.values()]
    with Sink(folder / rows_name(0)) as sink:
        write_rows(sink, pa.Table.from_arrays(rows, schema=file.schema))
    write_table_file(folder, file)
    found = {"rows": len(columns.target), "features": len(columns.features)}
    if len(columns.assigned) == 1:
        found |= {f"rows_{split}": counts[split] for split in sorted(counts)}
    return found


def first_word(column: "pa.Array[Any]") -> int | None:
    """The first row of strings that is neither a number nor missing; None where none is."""
    return _first(pc.invert(pc.match_substring_regex(column, _NUMBER)))


def _kind(values: "pa.Array[Any]") -> Kind:
    return "number" if pa.types.is_floating(values.type) else "category"


def _plain(column: "pa.ChunkedArray[Any]") -> "pa.ChunkedArray[Any]":
    """Without a dictionary, and of the types of strings only the plain one."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_other = pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.string()) if is_other else column


def _is_number(kind: "pa.DataType") -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _is_large(column: "pa.ChunkedArray[Any]") -> bool:
    """Whether it has integers that float64 rounds."""
    if not pa.types.is_integer(column.type) or column.null_count == len(column):
        return False
    ends = pc.min_max(column).as_py()
    return bool(ends["min"] < -_EXACT or ends["max"] > _EXACT)


def _first(wrong: "pa.ChunkedArray[Any]") -> int | None:
    """The first place that is true."""
    place: int = pc.index(wrong, True).as_py()
    return None if place < 0 else place


def _nearly_ids(name: str, column: "pa.ChunkedArray[Any]") -> str | None:
    """A note where a category is more like a name of each row: every value has its own input."""
    different = pc.count_distinct(column).as_py()
    if different < _MANY or 2 * different < len(column):
        return None
    return (
        f"{name!r} is a category of {different:,} values in {len(column):,} rows, each of them an "
        f"input of its own; if it names rows, leave it out (--drop {name})"
    )


def _nearly_numbers(name: str, column: "pa.ChunkedArray[Any]") -> str | None:
    """A note where most values are numbers, and one that is not made a category of them."""
    like = pc.sum(pc.match_substring_regex(column, _LIKE_NUMBER)).as_py()
    if not like or 2 * like < len(column):
        return None
    if (row := first_word(column)) is None:
        return f"{name!r} is a category, because its numbers are stored as strings"
    return f"{name!r} is a category, because {column[row].as_py()!r} in row {row + 1} is no number"
