"""The rows of a table artifact, for the stages that learn from it and evaluate on it."""

import numpy as np
from numpy.typing import NDArray

from numtok.data.tables.table import TABLE_FILE, Table, read_table
from numtok.records import TRAIN
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
