"""Which numbers lie outside the range of the train split."""

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.dataset import EncodedSplit
from numtok.evaluation.seen_values import SeenValues


def outside(
    values: NDArray[np.float64], names: NDArray[np.object_], train: EncodedSplit
) -> NDArray[np.bool_]:
    """bool[n]: whether each value, float64[n], is below the least or above the greatest finite
    target of its name in the train split; where that has no such target, of all its numbers."""
    found = np.zeros(len(values), np.bool_)
    for name in set(names.tolist()):
        seen = SeenValues.nearby(train, name)
        mine = names == name
        if seen is not None:
            found[mine] = (values[mine] < seen.values[0]) | (values[mine] > seen.values[-1])
    return found
