"""Merges the numbers that need no rewriting with those of passages."""

import numpy as np

from numtok.kernel_types import boolean, int32, reads, uint8, void, writes
from numtok.kernels import copy_bytes, kernel
from numtok.numerals.column import Literals
from numtok.numerals.find import Spans


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


def merged(spans: Spans, others: Spans) -> Spans:
    """Return the numbers of both, which are in the same texts, in the order of the texts."""
    starts = np.concatenate([spans.starts, others.starts])
    order = np.argsort(starts, kind="stable")  # linear time for two sorted sequences
    ends = np.concatenate([spans.ends, others.ends])
    one, two = spans.literals, others.literals
    firsts = np.concatenate([one.starts, two.starts])[order]
    lasts = np.concatenate([one.ends, two.ends])[order]
    bounds = np.zeros(len(order) + 1, np.int32)
    np.cumsum(lasts - firsts, out=bounds[1:])
    out = np.empty(bounds[-1], np.uint8)
    _gather(one.data, two.data, firsts, lasts, order >= len(one.starts), bounds[:-1], out)
    literals = Literals(out, bounds[:-1].copy(), bounds[1:].copy())
    return Spans(starts[order], ends[order], spans.counts + others.counts, literals)
