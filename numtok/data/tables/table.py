"""Regression tables: features, a target, and the split of each row in each fold.

A *table* artifact consists of ``table.json`` (:class:`TableFile`) and ``rows-00000.parquet``, ...:
the features in order, then the target, then one column per fold. ``numtok gen``, ``fetch`` and
``table`` write it; training and evaluation read it. This module depends neither on the store nor on
torch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from numtok.data.reading.split_rule import TRAIN
from numtok.errors import unknown
from numtok.files import Sink
from numtok.seeds import generator
from numtok.store.artifact import Artifact
from numtok.store.columns import check_nulls, damaged, read_columns
from numtok.stored_json import StoredJson

FORMAT = 1  # of table.json
VALIDATION = "validation"  # split for validation; without it some train rows are held out
TABLE_FILE = "table.json"
_ROWS = "rows-"  # start of the names of Parquet files
ROW_GROUP = 12 << 20  # approximate bytes of columns in a row group

Kind = Literal["number", "category"]


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Name of a feature column, and whether it contains numbers or categories.

    date, part
        For a part of a date, such as the year: the column of the date, and the name of the part.
    date_format
        Format of the date, if it was read from a string.
    decimal
        For numbers of a CSV file that is not separated by commas: the decimal mark of the file.
    """

    name: str
    kind: Kind
    date: str | None = None
    part: str | None = None
    date_format: str | None = None
    decimal: str | None = None


def decimal_of(features: Iterable[Feature]) -> str | None:
    """Return the decimal mark of the file that features were read from; None if unknown."""
    return next((each.decimal for each in features if each.decimal is not None), None)


class TableFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Content of ``table.json``: the columns of a table.

    splits
        Names of the columns that contain the split of each row (``train``, ``test``, ..., or null),
        one column per fold: fold k is ``splits[k]``.
    notes
        Notes for users of the table.

    Raises ValueError if two columns have the same name.
    """

    format: int = FORMAT
    target: str
    features: list[Feature]
    splits: list[str]
    notes: list[str]

    def __post_init__(self) -> None:
        names = [*(feature.name for feature in self.features), self.target, *self.splits]
        if len(set(names)) < len(names):
            raise ValueError("two columns have the same name")

    @property
    def schema(self) -> pa.Schema:
        """Schema of the Parquet files: float64 for number features and the target, else string.

        >>> feature = Feature("x", "number")
        >>> file = TableFile(target="y", features=[feature], splits=["split"], notes=[])
        >>> file.schema.names
        ['x', 'y', 'split']
        """
        columns = [
            (feature.name, pa.float64() if feature.kind == "number" else pa.string())
            for feature in self.features
        ]
        columns += [(self.target, pa.float64()), *((name, pa.string()) for name in self.splits)]
        return pa.schema(columns)


_TABLE = StoredJson(name=TABLE_FILE, kind=TableFile, newest=FORMAT)


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """All ``n`` rows of a table artifact, in memory.

    numbers [n, number features]
        Number features in the order of ``file.features``; NaN if missing.
    categories
        String array [n] of each category feature, in order; null if missing.
    target [n]
        Finite values.
    assigned
        Split of each row, as one string array [n] per fold; null for rows without a split.
    """

    file: TableFile
    numbers: NDArray[np.float64]
    categories: "list[pa.Array[Any]]"
    target: NDArray[np.float64]
    assigned: "list[pa.Array[Any]]"

    def __len__(self) -> int:
        return len(self.target)

    def splits(self, fold: int = 0) -> list[str]:
        """Return the sorted names of a fold's splits. Raises UsageError if the fold is unknown."""
        if not 0 <= fold < len(self.assigned):
            raise unknown("fold", str(fold), map(str, range(len(self.assigned))))
        return sorted(pc.unique(self.assigned[fold]).drop_null().to_pylist())

    def split(self, name: str, fold: int = 0) -> NDArray[np.int64]:
        """Return the indices of the rows of a split, in increasing order (int64[k]).

        Raises UsageError if the fold or the split is unknown.
        """
        if name not in (names := self.splits(fold)):
            raise unknown(f"split of fold {fold}", name, names)
        rows = np.flatnonzero(pc.equal(self.assigned[fold], name).fill_null(False).to_numpy(False))
        return rows.astype(np.int64)


def rows_name(index: int) -> str:
    """Return the name of the Parquet file with this index.

    >>> rows_name(3)
    'rows-00003.parquet'
    """
    return f"{_ROWS}{index:05d}.parquet"


def write_rows(sink: Sink | IO[bytes], rows: pa.Table) -> None:
    """Write rows with the columns of :attr:`TableFile.schema` to a Parquet file.

    The bytes depend only on the rows. Raises StoreError if writing fails.
    """
    per_row = max(1, rows.nbytes // max(1, rows.num_rows))
    pq.write_table(
        rows.combine_chunks(),  # chunks would change the bytes
        sink,
        row_group_size=max(1, ROW_GROUP // per_row),
        compression="zstd",
        use_dictionary=[field.name for field in rows.schema if pa.types.is_string(field.type)],
        write_page_checksum=True,
        write_statistics=False,
    )


def write_table_file(folder: Path, file: TableFile) -> None:
    """Write ``table.json`` to a folder. Raises StoreError if writing fails."""
    _TABLE.write(folder, file)


def read_table_file(artifact: Artifact) -> TableFile:
    """Read the ``table.json`` of a table artifact.

    Raises StoreError if the file was changed or its format is newer than this version of numtok.
    """
    return artifact.read(_TABLE)


def read_table(folder: Path, names: Sequence[str]) -> Table:
    """Read the table in a folder, with rows from the files ``names``.

    Raises StoreError if a file is damaged or its format is newer than this version of numtok.
    """
    file = _TABLE.read(folder)
    rows = pa.concat_tables(
        [file.schema.empty_table(), *(_read_rows(folder / name, file) for name in names)]
    ).combine_chunks()
    target = _numbers(rows, file.target)
    features = {
        kind: [feature.name for feature in file.features if feature.kind == kind]
        for kind in ("number", "category")
    }
    numbers = np.empty((len(target), len(features["number"])))
    for index, name in enumerate(features["number"]):
        numbers[:, index] = _numbers(rows, name)
    assigned = [_strings(rows, name) for name in file.splits]
    if any(len(fold) == fold.null_count for fold in assigned):
        raise damaged(folder / rows_name(0), "no row of a fold is in any split")
    return Table(
        file=file,
        numbers=numbers,
        categories=[_strings(rows, name) for name in features["category"]],
        target=target,
        assigned=assigned,
    )


def _read_rows(path: Path, file: TableFile) -> pa.Table:
    def check(schema: pa.Schema) -> None:
        if not schema.equals(file.schema):
            raise damaged(path, f"its columns differ from {TABLE_FILE}")

    rows = read_columns(path, check)
    check_nulls(path, rows, lambda name: name != file.target)
    for name in rows.column_names:
        if pa.types.is_floating(rows.schema.field(name).type):
            values = _numbers(rows, name)
            if np.isinf(values).any() or (name == file.target and np.isnan(values).any()):
                raise damaged(path, f"a value of its column {name!r} is not finite")
    return rows


def _numbers(rows: pa.Table, name: str) -> NDArray[np.float64]:
    column = rows.column(name).fill_null(float("nan"))
    values: NDArray[np.float64] = column.to_numpy()
    return values


def _strings(rows: pa.Table, name: str) -> "pa.Array[Any]":
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks else pa.array([], pa.string())


def read_table_of(artifact: Artifact) -> Table:
    """Read all rows of a table artifact. Raises the same errors as :func:`read_table`, and
    StoreError if ``table.json`` was changed."""
    paths = (output.path for output in artifact.files())
    names = sorted(path for path in paths if path.startswith(_ROWS))
    table = read_table(artifact.path, names)
    artifact.check(TABLE_FILE)
    return table


def learnt_rows(
    table: Table, fold: int, most: int | None = None, seed: int = 0
) -> NDArray[np.int64]:
    """Return the indices of the train rows of a fold, in increasing order (int64[k]).

    If ``most`` is given and there are more train rows, a random sample of ``most`` rows, drawn with
    ``seed``, is returned. Raises UsageError if the fold is unknown.
    """
    rows = table.split(TRAIN, fold)
    if most is None or most >= len(rows):
        return rows
    return np.sort(generator(seed, "rows", fold).permutation(rows)[:most])


def count_twins(table: Table, split: str) -> int:
    """Return the number of rows in a split (of fold 0) that have a twin in the train split.

    Twins have equal features, ignoring case and surrounding spaces in categories. Every
    row of the train split counts as its own twin. The result is 0 if the table has no features.
    """
    codes = [
        pc.utf8_trim_whitespace(pc.utf8_lower(column)).dictionary_encode(null_encoding="encode")
        for column in table.categories
    ]
    columns = [
        table.numbers + 0.0,
        *(encoded.indices.to_numpy(False)[:, None] for encoded in codes),
    ]
    features = np.column_stack(columns).astype(np.float64)
    if not features.shape[1]:
        return 0
    rows = np.ascontiguousarray(features).view(np.dtype((np.void, 8 * features.shape[1]))).ravel()
    return int(np.isin(rows[table.split(split)], rows[table.split(TRAIN)]).sum())


def twin_notes(table: Table, splits: Iterable[str]) -> list[str]:
    """Return a note for each split in which rows have twins in train (:func:`count_twins`)."""
    counts = [(name, count_twins(table, name), len(table.split(name))) for name in splits]
    return [
        f"{twins:,} of {rows:,} {name} rows have a twin in {TRAIN} (the same features). Remove "
        "them from one of the splits"
        for name, twins, rows in counts
        if twins
    ]
