"""Computes statistics for one unit of rows in ``numtok profile``, and merges statistics of units.

A unit is a part of the input that one worker reads (:class:`numtok.data.reading.units.Unit`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from numtok.analysis.profiling.field_statistics import (
    FieldStatistics,
    NumberStatistics,
    merged_tallies,
)
from numtok.analysis.profiling.notations import count_notations
from numtok.arrays import Bools, Floats
from numtok.data.reading.rows import Categories
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.units import Unit
from numtok.encoding.fields.fields import Fields, merge
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
from numtok.encoding.targets import ResolvedTargets
from numtok.encoding.texts import Texts, offsets
from numtok.encoding.train_numbers import NumberSample
from numtok.encoding.unit import Screening
from numtok.numerals.find import Spans
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.unread import UnreadDigits, count_unread

_TOGETHER = 8  # parts merged at once


@dataclass(kw_only=True)
class Counted:
    """Statistics of the numbers in a set of rows.

    Per-field statistics are keyed by the field's node in ``fields``.
    """

    fields: Fields = field(default_factory=Fields)
    tallies: dict[int, NumberStatistics] = field(default_factory=dict)  # by node
    sample: Sample = field(default_factory=no_sample)
    sampled_rows: SampledRows = field(default_factory=SampledRows)
    moments: Moments = field(default_factory=Moments)  # of the train split
    others: Moments = field(default_factory=Moments)  # of the train split, without targets
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
        """Number of rows, summed over splits."""
        return self.splits.total()

    def places(self) -> dict[int, tuple[int, int]]:
        """Return sort keys, keyed by node, that order fields by their position in a row.

        Each key contains the position and the negated count of numbers, so the most frequent field
        comes first at equal positions. If the position differs between rows, the largest one is
        used.
        """
        keys = {}
        for node, tally in self.tallies.items():
            position = self.sampled_rows.place(node)
            keys[node] = (tally.before if position is None else position, -tally.numbers)
        return keys

    def rows_at(self, node: int) -> tuple[int, bool]:
        """Return the number of rows with a number at a node, and whether the result is exact.

        A row may have numbers at several nodes that were merged. The number of rows is then
        estimated from the sampled rows.
        """
        tally = self.tallies[node]
        if self.fields.as_found(node):
            return tally.rows, True
        rows = round(self.sampled_rows.share(node) * self.rows_with_numbers)
        return min(max(rows, 1), tally.numbers), self.sampled_rows.exact

    def add_targets(self, targets: Mapping[str, Moments]) -> None:
        """Merge moments of additional target values, keyed by target name, into :attr:`targets`."""
        for name, moments in targets.items():
            self.targets[name] = self.targets.get(name, Moments()).merged(moments)

    def move(self, became: NDArray[np.int32]) -> None:
        """Renumber the nodes: node i becomes ``became[i]`` (int32[nodes]).

        Fields whose nodes become equal are merged.
        """
        moved = [(int(became[node]), tally) for node, tally in self.tallies.items()]
        self.tallies = merged_tallies(moved)
        self.sample = self.sample.moved(became)
        self.sampled_rows.move(became)


def merged(parts: Iterable[Counted]) -> Counted:
    """Merge statistics for several parts of the data, in order.

    The iterator is consumed a few parts at a time, so that only a few are in memory.
    """
    whole = Counted()
    remaining = iter(parts)
    while chunk := list(islice(remaining, _TOGETHER)):
        whole = _as_one([whole, *chunk])
    while _takes_next_level(whole):
        whole.fields, (coarser,) = merge([whole.fields])
        whole.move(coarser)
    return whole


def _as_one(parts: Sequence[Counted]) -> Counted:
    """Merge parts into one, to which others may be added."""
    whole = Counted()
    whole.fields, nodes = merge([part.fields for part in parts])
    tallies: list[tuple[int, NumberStatistics]] = []
    for part, became in zip(parts, nodes, strict=True):
        part.move(became)
        tallies += part.tallies.items()
        whole.sampled_rows.merge(part.sampled_rows)
        whole.moments = whole.moments.merged(part.moments)
        whole.others = whole.others.merged(part.others)
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
    """Make fields coarser if texts have no repeated structure; return whether they changed."""
    counts, rows = np.zeros((2, len(whole.fields)))
    for node, tally in whole.tallies.items():
        counts[node] = tally.numbers
        rows[node], _ = whole.rows_at(node)
    return whole.fields.next_level(counts, rows)


@dataclass(frozen=True)
class ProfileUnit:
    """Callable that computes the statistics of one unit of rows, in this process or in a worker.

    It returns the index of the unit and its statistics. If ``learning`` is true, numbers of the
    train split are also sampled, for schemes that are fitted to numbers.
    """

    screening: Screening
    policy: NumeralPolicy
    learning: bool

    def __call__(self, unit: Unit) -> tuple[int, Counted]:
        counting = Counting(self.learning)
        for batch, splits, texts, spans, targets in self.screening.resolved(unit, self.policy):
            counting.add(Texts.of(batch.rows.ids), texts, spans, targets, splits)
            counting.counted.rejected += len(batch.rejected)
            batch.release()
        return unit.index, counting.finished()


class Counting:
    """Accumulates the statistics of a unit of rows, batch by batch.

    If ``learning`` is true, numbers of the train split are also sampled, for schemes that are
    fitted to numbers.
    """

    def __init__(self, learning: bool) -> None:
        self.counted = Counted()
        self._learning = learning
        self._tallies = FieldStatistics()
        self._samples = NodeSamples()

    def add(
        self, ids: Texts, texts: Texts, spans: Spans, targets: ResolvedTargets, splits: Categories
    ) -> None:
        """Add the numbers in a batch of rows to the statistics. ``ids`` are the row ids."""
        counted = self.counted
        found = texts.data, texts.rows, spans.starts, spans.ends
        counted.unread.merge(count_unread(*found, counted.unread.next_sample))
        counted.notations += count_notations(texts, spans)
        nodes = counted.fields.assign(texts, spans)
        if len(targets.spans):
            own = [counted.fields.target(name) for name in targets.names.names]
            nodes[targets.spans] = np.array(own, np.int32)[targets.names.codes]
        if counted.fields.unsettled:
            counted.fields, (became,) = merge([counted.fields])
            nodes = became[nodes]
            self._tallies.move(became)
            self._samples.move(became)
            counted.sampled_rows.move(became)
        numerals = spans.numerals()
        self._tallies.add(texts, spans, nodes, numerals)
        codes = row_codes(ids, texts, spans, numerals)
        rows = np.flatnonzero((codes <= counted.sampled_rows.limit) & (spans.counts > 0))
        counted.sampled_rows.add(rows, codes[rows], offsets(spans.counts), nodes)
        keys = number_keys(codes, spans)
        self._sample(spans, nodes, keys)
        counted.twins.add(row_hashes(texts, spans, targets), splits)
        for name, rows in splits.places():
            counted.splits[name] += len(rows)
            if name == TRAIN:
                train: Bools | slice = slice(None)
                if len(rows) < len(splits.codes):
                    in_train = np.zeros(len(spans.counts), np.bool_)
                    in_train[rows] = True
                    train = np.repeat(in_train, spans.counts)
                self._add_moments(numerals.values, targets, train)
                if self._learning:
                    literals = spans.literals.take(train)
                    counted.learnt.add(keys[train], literals)
        counted.rows_with_numbers += int((spans.counts > 0).sum())
        counted.text_bytes += int(texts.rows[-1] - texts.rows[0])
        counted.number_bytes += int((spans.ends - spans.starts).sum(dtype=np.int64))

    def _add_moments(self, values: Floats, targets: ResolvedTargets, train: Bools | slice) -> None:
        """Add the numbers ``values[train]`` to the moments of the train split."""
        counted, own = self.counted, Moments.of(values[train])
        counted.moments = counted.moments.merged(own)
        if len(targets.spans):
            counted.add_targets(_target_moments(targets, values, train))
            without = np.zeros(len(values), np.bool_)
            without[train] = True
            without[targets.spans] = False
            own = Moments.of(values[without])
        counted.others = counted.others.merged(own)

    def _sample(self, spans: Spans, nodes: NDArray[np.int32], keys: NDArray[np.uint64]) -> None:
        """Add numbers to the samples of their nodes, if their keys are small enough."""
        limits = np.full(len(self.counted.fields), ANYTHING)
        for node, limit in self._samples.limits.items():
            limits[node] = limit
        chosen = np.flatnonzero((keys <= limits[nodes]) & (spans.ends - spans.starts <= LONGEST))
        if len(chosen):
            self._samples.add(nodes[chosen], keys[chosen], spans.literals.take(chosen))

    def finished(self) -> Counted:
        """Return the statistics of all rows that were added."""
        self.counted.learnt.settle()
        self.counted.unread = self.counted.unread.commonest()
        self.counted.tallies = self._tallies.by_node()
        self.counted.sample = self._samples.settled()
        return self.counted


def _target_moments(
    targets: ResolvedTargets, values: Floats, train: Bools | slice
) -> dict[str, Moments]:
    """Return the moments of the targets among the numbers ``train``, keyed by name."""
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
