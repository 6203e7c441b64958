"""Which labels there are to learn."""

import pyarrow.compute as pc

from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.dataset import EncodedSplit
from numtok.errors import DataError
from numtok.row import in_order
from numtok.store.artifact import Artifact

_FEW, _TIMES = 100, 2  # labels that may come as they will; of more each comes twice, on average


def learnt_classes(train: EncodedSplit, encoded: Artifact) -> tuple[str, ...]:
    """The labels of a train split, in the order of :func:`in_order`.

    Raises DataError where a row has none, where all rows have the same, and where there are many
    that hardly come again: ids, or texts.
    """
    where = f"split {TRAIN!r} of {encoded.ref}"
    if lacking := train.labels.null_count:
        raise DataError(
            f"--objective classify needs a label in every row, {lacking:,} of the {len(train):,} "
            f"rows of {where} have none; encode data with them, or give another --objective"
        )
    classes = in_order(pc.unique(train.labels).to_pylist())
    if len(classes) < 2:
        raise DataError(
            f"--objective classify needs two labels or more, all rows of {where} have "
            f"{classes[0]!r}; encode data with others, or give another --objective"
        )
    if len(classes) > _FEW and len(classes) * _TIMES > len(train):
        raise DataError(
            f"--objective classify needs labels that come again, {where} has {len(classes):,} in "
            f"{len(train):,} rows, such as {classes[0]!r}; encode data whose label is a class, or "
            "give another --objective"
        )
    return classes
