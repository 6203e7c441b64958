"""The rows of a table artifact, for the stages that learn from it and evaluate on it."""

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.data.reading.split_rule import TRAIN
from numtok.data.tables.table import TABLE_FILE, Table, read_table
from numtok.seeds import generator
from numtok.store.artifact import Artifact

VALIDATION = "validation"  # the split that is looked at; without it rows are held back


def read_table_of(artifact: Artifact) -> Table:
    """All rows; raises as ``table.read_table``."""
    names = sorted(output.path for output in artifact.files() if output.path != TABLE_FILE)
    return read_table(artifact.path, names)


def learnt_rows(table: Table, fold: int, most: int | None, seed: int) -> NDArray[np.int64]:
    """int64[k]: the rows of a fold's train split that are learnt from, in order: ``most`` of them,
    drawn by the seed, or all. Raises UsageError for a fold that is not there."""
    rows = table.split(TRAIN, fold)
    if most is None or most >= len(rows):
        return rows
    return np.sort(generator(seed, "rows", fold).permutation(rows)[:most])


def count_twins(table: Table, split: str) -> int:
    """Count the rows of a split (fold 0) with a twin in the train split: the same features, up to
    case and spaces in categories. Always 0 for a table without features."""
    codes = [
        pc.utf8_trim_whitespace(pc.utf8_lower(column)).dictionary_encode(null_encoding="encode")
        for column in table.categories
    ]
    columns = [table.numbers + 0.0, *(one.indices.to_numpy(False)[:, None] for one in codes)]
    features = np.column_stack(columns).astype(np.float64)
    if not features.shape[1]:
        return 0
    rows = np.ascontiguousarray(features).view(np.dtype((np.void, 8 * features.shape[1]))).ravel()
    return int(np.isin(rows[table.split(split)], rows[table.split(TRAIN)]).sum())
