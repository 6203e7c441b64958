"""Joins literals of two sources, such as the original texts and rewritten passages."""

import numpy as np

from numtok.arrays import Ints
from numtok.kernel_types import boolean, int32, reads, uint8, void, writes
from numtok.kernels import copy_bytes, kernel
from numtok.numerals.column import Literals


@kernel(
    void(
        reads(uint8), reads(uint8), reads(int32), reads(int32), reads(boolean), reads(int32),
        writes(uint8),
    )
)  # fmt: skip
def _gather(data, other, starts, ends, is_other, outs, out):  # type: ignore[no-untyped-def]
    """Copy literals from two sources."""
    for k in range(len(starts)):
        i, o, size = np.int64(starts[k]), np.int64(outs[k]), np.int64(ends[k] - starts[k])
        if is_other[k]:
            copy_bytes(out, o, other, i, size)
        else:
            copy_bytes(out, o, data, i, size)


def joined(one: Literals, two: Literals, order: Ints) -> Literals:
    """Return the literals of both, copied in the given order, an index [n] into one and then
    two."""
    starts = np.concatenate([one.starts, two.starts])[order]
    ends = np.concatenate([one.ends, two.ends])[order]
    bounds = np.zeros(len(order) + 1, np.int32)
    np.cumsum(ends - starts, out=bounds[1:])
    out = np.empty(bounds[-1], np.uint8)
    _gather(one.data, two.data, starts, ends, order >= len(one.starts), bounds[:-1], out)
    return Literals(out, bounds[:-1].copy(), bounds[1:].copy())
