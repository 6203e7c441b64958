"""The work on one unit of ``profile``: rows in, statistics by place out; units are merged."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from numtok.analysis.profiling.notations import count_notations
from numtok.analysis.profiling.slot_statistics import (
    NumberStatistics,
    SlotStatistics,
    merged_tallies,
)
from numtok.arrays import Bools, Floats
from numtok.data.reading.rows import Categories
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.units import Unit
from numtok.encoding.normalizers.base import Moments
from numtok.encoding.number_sample import (
    NodeSamples,
    Sample,
    SampledRows,
    joined,
    no_sample,
    smallest,
)
from numtok.encoding.row_keys import ANYTHING, LONGEST, number_keys, row_codes
from numtok.encoding.row_twins import RowTwins, row_hashes
from numtok.encoding.slots.slots import Slots, merge
from numtok.encoding.targets import ResolvedTargets
from numtok.encoding.texts import Spans, Texts, offsets
from numtok.encoding.train_numbers import NumberSample
from numtok.encoding.unit import Screening
from numtok.numerals.column import Literals
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.unread import UnreadDigits, count_unread

_TOGETHER = 8  # parts that are joined at once


@dataclass(kw_only=True)
class Counted:
    """What is known of some rows; nodes are of ``slots``."""

    slots: Slots = field(default_factory=Slots)
    tallies: dict[int, NumberStatistics] = field(default_factory=dict)  # by node
    sample: Sample = field(default_factory=no_sample)
    sampled_rows: SampledRows = field(default_factory=SampledRows)
    moments: Moments = field(default_factory=Moments)  # of the train split
    learnt: NumberSample = field(default_factory=NumberSample)  # of the train split
    targets: dict[str, Moments] = field(default_factory=dict)  # of the train split, by name
    splits: Counter[str] = field(default_factory=Counter)  # rows
    twins: RowTwins = field(default_factory=RowTwins)
    rows_with_numbers: int = 0
    rejected: int = 0
    unread: UnreadDigits = field(default_factory=UnreadDigits)
    notations: Counter[str] = field(default_factory=Counter)  # notations.count_notations
    text_bytes: int = 0
    number_bytes: int = 0

    @property
    def rows(self) -> int:
        """Rows of all splits."""
        return self.splits.total()

    def places(self) -> dict[int, tuple[int, int]]:
        """Where in a row each node is (of optional parts, in the rows that have most before it),
        and how few numbers it has, negated: of two at one place the commoner comes first."""
        found = {}
        for node, tally in self.tallies.items():
            place = self.sampled_rows.place(node)
            found[node] = (tally.before if place is None else place, -tally.numbers)
        return found

    def rows_at(self, node: int) -> tuple[int, bool]:
        """How many rows have a number at a node, and whether that is exact: of nodes that became
        one, the rows may be the same, so they are estimated from the sample of rows."""
        tally = self.tallies[node]
        if self.slots.as_found(node):
            return tally.rows, True
        rows = round(self.sampled_rows.share(node) * self.rows_with_numbers)
        return min(max(rows, 1), tally.numbers), self.sampled_rows.exact

    def add_targets(self, targets: Mapping[str, Moments]) -> None:
        """Add the moments of more targets, by name."""
        for name, moments in targets.items():
            self.targets[name] = self.targets.get(name, Moments()).merged(moments)

    def move(self, became: NDArray[np.int32]) -> None:
        """Nodes have become other nodes: node i is now ``became[i]``."""
        moved = [(int(became[node]), tally) for node, tally in self.tallies.items()]
        self.tallies = merged_tallies(moved)
        self.sample = self.sample.moved(became)
        self.sampled_rows.move(became)


def merged(parts: Iterable[Counted]) -> Counted:
    """All rows there are, from their parts in order; the parts are used up, and few of them are
    held at a time."""
    whole = Counted()
    coming = iter(parts)
    while some := list(islice(coming, _TOGETHER)):
        whole = _as_one([whole, *some])
    while _takes_next_level(whole):
        whole.slots, (coarser,) = merge([whole.slots])
        whole.move(coarser)
    return whole


def _as_one(parts: Sequence[Counted]) -> Counted:
    """Some parts as one, which others may follow."""
    whole = Counted()
    whole.slots, nodes = merge([part.slots for part in parts])
    tallies: list[tuple[int, NumberStatistics]] = []
    for part, became in zip(parts, nodes, strict=True):
        part.move(became)
        tallies += part.tallies.items()
        whole.sampled_rows.merge(part.sampled_rows)
        whole.moments = whole.moments.merged(part.moments)
        whole.learnt.merge(part.learnt)
        whole.add_targets(part.targets)
        whole.splits += part.splits
        whole.rows_with_numbers += part.rows_with_numbers
        whole.rejected += part.rejected
        whole.unread.merge(part.unread)
        whole.notations += part.notations
        whole.text_bytes += part.text_bytes
        whole.number_bytes += part.number_bytes
    whole.twins.merge(part.twins for part in parts)
    whole.tallies = merged_tallies(tallies)
    whole.sample = smallest(joined([part.sample for part in parts]))
    return whole


def _takes_next_level(whole: Counted) -> bool:
    """Whether slots became coarser, because texts have no structure that comes again."""
    counts, rows = np.zeros((2, len(whole.slots)))
    for node, tally in whole.tallies.items():
        counts[node] = tally.numbers
        rows[node], _ = whole.rows_at(node)
    return whole.slots.next_level(counts, rows)


@dataclass(frozen=True)
class ProfileUnit:
    """Called with a unit, in any process: its index, and what is known of its rows.

    ``learning``: sample the numbers of the train split, which schemes are learnt from.
    """

    screening: Screening
    policy: NumeralPolicy
    learning: bool

    def __call__(self, unit: Unit) -> tuple[int, Counted]:
        counting, find = Counting(self.learning), partial(Texts.find, policy=self.policy)
        for batch, splits, texts, spans, targets in self.screening.resolved(unit, find):
            counting.add(Texts.of(batch.rows.ids), texts, spans, targets, splits)
            counting.found.rejected += len(batch.rejected)
            batch.release()
        return unit.index, counting.finished()


class Counting:
    """Statistics that grow batch by batch; ``learning`` as in :class:`ProfileUnit`."""

    def __init__(self, learning: bool) -> None:
        self.found = Counted()
        self._learning = learning
        self._tallies = SlotStatistics()
        self._samples = NodeSamples()

    def add(
        self, ids: Texts, texts: Texts, spans: Spans, targets: ResolvedTargets, splits: Categories
    ) -> None:
        """Count some rows, which ``ids`` tell apart."""
        found = self.found
        found.unread.merge(count_unread(texts.data, texts.rows, spans.starts, spans.ends))
        found.notations += count_notations(texts, spans)
        nodes = found.slots.assign(texts, spans)
        if len(targets.spans):
            own = [found.slots.target(name) for name in targets.names.names]
            nodes[targets.spans] = np.array(own, np.int32)[targets.names.codes]
        if found.slots.unsettled:
            found.slots, (became,) = merge([found.slots])
            nodes = became[nodes]
            self._tallies.move(became)
            self._samples.move(became)
            found.sampled_rows.move(became)
        numerals = texts.numerals(spans)
        self._tallies.add(texts, spans, nodes, numerals)
        codes = row_codes(ids, texts, spans, numerals)
        rows = np.flatnonzero((codes <= found.sampled_rows.limit) & (spans.counts > 0))
        found.sampled_rows.add(rows, codes[rows], offsets(spans.counts), nodes)
        keys = number_keys(codes, spans)
        self._sample(texts, spans, nodes, keys)
        found.twins.add(row_hashes(texts, spans, targets), splits)
        for name, rows in splits.places():
            found.splits[name] += len(rows)
            if name == TRAIN:
                train: Bools | slice = slice(None)
                if len(rows) < len(splits.codes):
                    in_train = np.zeros(len(spans.counts), np.bool_)
                    in_train[rows] = True
                    train = np.repeat(in_train, spans.counts)
                found.moments = found.moments.merged(Moments.of(numerals.values[train]))
                found.add_targets(_target_moments(targets, numerals.values, train))
                if self._learning:
                    literals = Literals(texts.data, spans.starts[train], spans.ends[train])
                    found.learnt.add(keys[train], literals)
        found.rows_with_numbers += int((spans.counts > 0).sum())
        found.text_bytes += int(texts.rows[-1] - texts.rows[0])
        found.number_bytes += int((spans.ends - spans.starts).sum(dtype=np.int64))

    def _sample(
        self, texts: Texts, spans: Spans, nodes: NDArray[np.int32], keys: NDArray[np.uint64]
    ) -> None:
        """Add numbers to the samples of their nodes, if their keys are small enough."""
        limits = np.full(len(self.found.slots), ANYTHING)
        for node, limit in self._samples.limits.items():
            limits[node] = limit
        chosen = np.flatnonzero((keys <= limits[nodes]) & (spans.ends - spans.starts <= LONGEST))
        if len(chosen):
            starts, ends = spans.starts[chosen], spans.ends[chosen]
            self._samples.add(nodes[chosen], keys[chosen], texts.data, starts, ends)

    def finished(self) -> Counted:
        """What was counted."""
        self.found.learnt.settle()
        self.found.unread = self.found.unread.commonest()
        self.found.tallies = self._tallies.by_node()
        self.found.sample = self._samples.settled()
        return self.found


def _target_moments(
    targets: ResolvedTargets, values: Floats, train: Bools | slice
) -> dict[str, Moments]:
    """Return the moments of the targets among the numbers ``train``, by name."""
    inside = np.zeros(len(values), np.bool_)
    inside[train] = True
    chosen = np.flatnonzero(inside[targets.spans])
    chosen = chosen[np.argsort(targets.names.codes[chosen], kind="stable")]
    codes, first = np.unique(targets.names.codes[chosen], return_index=True)
    parts = np.split(values[targets.spans[chosen]], first[1:])
    return {
        targets.names.names[code]: Moments.of(part)
        for code, part in zip(codes.tolist(), parts, strict=False)  # without codes: an empty part
    }
