"""Which numbers lie outside the range of the train split."""

import numpy as np
from numpy.typing import NDArray

from numtok.samples import Samples


def outside(
    values: NDArray[np.float64], names: NDArray[np.object_], train: Samples
) -> NDArray[np.bool_]:
    """bool[n]: whether each value, float64[n], is below the least or above the greatest finite
    target of its name in the train split; where that has no such target, of all its numbers."""
    learnt = np.array(train.target_name.to_pylist(), object)
    found = np.zeros(len(values), np.bool_)
    for name in set(names.tolist()):
        seen = train.numbers[train.targets[learnt == name]]
        seen = seen if len(seen) else train.numbers
        seen = seen[np.isfinite(seen)]
        mine = names == name
        if len(seen):
            found[mine] = (values[mine] < seen.min()) | (values[mine] > seen.max())
    return found
