"""number_sample: small samples of the numbers in each field, and of rows.

The samples do not depend on how the rows are divided into units of work. A number is identified by
a hash of its row (id and content) and its index in the row. A sample consists of the numbers with
the smallest hashes (bottom-k sampling, see ``row_keys``), so it is uniform. Numbers in equal rows
with equal ids have equal hashes; they enter the sample as one number with a weight.

Each number belongs to a *node*, which stands for a field (see :mod:`numtok.encoding.fields`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Int32s, Ints, UInt64s
from numtok.data.reading.arrow import packed
from numtok.encoding.row_keys import ANYTHING, KEPT
from numtok.numerals.column import Literals

ROWS_KEPT = 512
_PENDING = 1 << 16  # numbers waiting to be merged into the sample


@dataclass(frozen=True, eq=False)
class Sample:
    """Sample of numbers as written.

    Each number is stored with its node, its hash and its weight, which is the number of equal
    numbers that it represents.
    """

    nodes: Int32s  # [n]
    hashes: UInt64s  # [n]
    weights: Ints  # [n]
    literals: Literals  # [n]

    def __len__(self) -> int:
        return len(self.nodes)

    def at(self, node: int) -> "Sample":
        """Return a sample that contains only the numbers of one node."""
        return self.take(np.flatnonzero(self.nodes == node))

    def take(self, keep: Ints) -> "Sample":
        """Return a sample that contains only the numbers at the given indices, int64[k]. Their
        literals are copied into a compact array."""
        data, starts, ends = self.literals
        taken, bounds = packed(data, starts[keep], ends[keep])
        literals = Literals(taken, bounds[:-1], bounds[1:])
        return Sample(self.nodes[keep], self.hashes[keep], self.weights[keep], literals)

    def moved(self, became: Int32s) -> "Sample":
        """Return the sample with nodes merged: node i becomes ``became[i]``, int32[nodes]."""
        return smallest(replace(self, nodes=became[self.nodes]))

    def limits(self) -> dict[int, np.uint64]:
        """Return the largest sampled hash of each node whose sample is full, keyed by node. Numbers
        with larger hashes cannot enter the sample."""
        nodes, first, counts = np.unique(self.nodes, return_index=True, return_counts=True)
        full = counts >= KEPT
        last = first[full] + KEPT - 1
        return dict(zip(nodes[full].tolist(), self.hashes[last], strict=True))


def smallest(sample: Sample, most: int = KEPT) -> Sample:
    """Return the sample with equal numbers merged and, for each node, only the ``most`` numbers
    with the smallest hashes. The result is sorted by node and hash."""
    if not len(sample):
        return sample
    order = np.lexsort((sample.hashes, sample.nodes))
    nodes, hashes = sample.nodes[order], sample.hashes[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (nodes[1:] != nodes[:-1]) | (hashes[1:] != hashes[:-1])
    firsts = np.flatnonzero(new)
    weights = np.add.reduceat(sample.weights[order], firsts)
    owners = nodes[firsts]
    rank = np.arange(len(firsts)) - np.searchsorted(owners, owners)
    keep = rank < most
    kept = sample.take(order[firsts[keep]])
    return replace(kept, weights=weights[keep])


def _smallest_of_many(sample: Sample) -> Sample:
    """Return the same as :func:`smallest`, without sorting numbers whose hash is too large to be
    kept.

    Hashes are uniform, so about ``4 * KEPT`` of a node's numbers are below the limit. If fewer than
    ``KEPT`` of these are distinct, because rows are equal, all numbers of the node are sorted.
    """
    counts = np.bincount(sample.nodes)
    if counts.max(initial=0) <= 8 * KEPT:
        return smallest(sample)
    shares = np.minimum(4 * KEPT / np.maximum(counts, 1), 1.0)
    limits = (shares * 2.0**63).astype(np.uint64) * np.uint64(2) - np.uint64(1)
    below = sample.hashes <= limits[sample.nodes]
    kept = smallest(sample.take(np.flatnonzero(below)))
    lacking = (np.bincount(kept.nodes, minlength=len(counts)) < KEPT) & (shares < 1)
    if not lacking.any():
        return kept
    again = lacking[sample.nodes]
    whole = smallest(sample.take(np.flatnonzero(again)))
    return joined([kept.take(np.flatnonzero(~lacking[kept.nodes])), whole])


def joined(samples: Sequence[Sample]) -> Sample:
    """Concatenate samples without merging equal numbers."""
    data, *ends = zip(*(sample.literals for sample in samples), strict=True)
    shifts = np.cumsum([0, *map(len, data[:-1])], dtype=np.int32)
    starts, stops = (
        np.concatenate([offsets + shift for offsets, shift in zip(each, shifts, strict=True)])
        for each in ends
    )
    return Sample(
        np.concatenate([sample.nodes for sample in samples]),
        np.concatenate([sample.hashes for sample in samples]),
        np.concatenate([sample.weights for sample in samples]),
        Literals(np.concatenate(data), starts, stops),
    )


def no_sample() -> Sample:
    """Return an empty sample."""
    empty = np.empty(0, np.int32)
    literals = Literals(np.empty(0, np.uint8), empty, empty)
    return Sample(empty, np.empty(0, np.uint64), np.empty(0, np.int64), literals)


class NodeSamples:
    """Collects a sample of numbers for each node in a unit of work. New numbers are merged in
    batches."""

    def __init__(self) -> None:
        self._settled = no_sample()
        self._waiting: list[Sample] = []
        self.limits: Mapping[int, np.uint64] = {}

    def add(self, nodes: Int32s, hashes: UInt64s, literals: Literals) -> None:
        """Add n numbers, with the node and hash of each number, [n]. Their bytes are copied.

        A number whose hash exceeds the limit of its node (:attr:`limits`) cannot enter the sample,
        so callers should leave it out.
        """
        chosen = Sample(nodes, hashes, np.ones(len(nodes), np.int64), literals)
        self._waiting.append(_smallest_of_many(chosen))
        if sum(map(len, self._waiting)) > _PENDING or not self.limits:
            self.settled()

    def settled(self) -> Sample:
        """Merge all added numbers, and return the samples of all nodes."""
        if self._waiting:
            self._settled = smallest(joined([self._settled, *self._waiting]))
            self._waiting = []
            self.limits = self._settled.limits()
        return self._settled

    def move(self, became: Int32s) -> None:
        """Update the samples for merged nodes: node i becomes ``became[i]``, int32[nodes]."""
        self._settled = self.settled().moved(became)
        self.limits = self._settled.limits()


class SampledRows:
    """Sample of the rows that contain numbers. For each row, the sample stores the nodes of its
    numbers and the number of equal rows."""

    def __init__(self) -> None:
        # By hash of the row: its nodes, each with the index of its first number.
        self._nodes: dict[int, dict[int, int]] = {}
        self._weights: Counter[int] = Counter()
        self.limit = ANYTHING

    @property
    def exact(self) -> bool:
        """True if the sample is not full, so that no row has been left out."""
        return len(self._nodes) < ROWS_KEPT

    def add(
        self, rows: NDArray[np.intp], hashes: UInt64s, number_rows: Int32s, nodes: Int32s
    ) -> None:
        """Add rows to the sample. Callers should leave out rows whose hash exceeds ``limit``.

        rows, hashes
            Indices and hashes of the added rows, [n].
        number_rows
            Index of the first number in each row of the batch, followed by the total number of
            numbers.
        nodes
            Node of each number in the batch.
        """
        distinct, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        for code, index, count in zip(
            distinct[:ROWS_KEPT].tolist(), first.tolist(), counts.tolist(), strict=False
        ):
            if code not in self._nodes:
                row = rows[index]
                own = nodes[number_rows[row] : number_rows[row + 1]]
                distinct_nodes, first_numbers = np.unique(own, return_index=True)
                self._nodes[code] = dict(
                    zip(distinct_nodes.tolist(), first_numbers.tolist(), strict=True)
                )
            self._weights[code] += count
        self._cut()

    def move(self, became: Int32s) -> None:
        """Update the sample for merged nodes: node i becomes ``became[i]``, int32[nodes]."""
        for code, nodes in self._nodes.items():
            moved: dict[int, int] = {}
            for node, number in nodes.items():
                now = int(became[node])
                moved[now] = min(number, moved.get(now, number))
            self._nodes[code] = moved

    def merge(self, other: "SampledRows") -> None:
        """Add the rows of another sample to this one."""
        self._nodes = other._nodes | self._nodes
        self._weights += other._weights
        self._cut()

    def share(self, node: int) -> float:
        """Return the fraction of the sampled rows that have a number at ``node``."""
        all_rows = self._weights.total()
        having = sum(self._weights[code] for code, nodes in self._nodes.items() if node in nodes)
        return having / all_rows if all_rows else 0.0

    def place(self, node: int) -> int | None:
        """Return the largest index that the first number at ``node`` has within a sampled row.
        Returns None if no sampled row has a number at ``node``."""
        return max((nodes[node] for nodes in self._nodes.values() if node in nodes), default=None)

    def _cut(self) -> None:
        kept = sorted(self._nodes)[:ROWS_KEPT]
        self._nodes = {code: self._nodes[code] for code in kept}
        self._weights = Counter({code: self._weights[code] for code in kept})
        if len(kept) == ROWS_KEPT:
            self.limit = np.uint64(kept[-1])
