"""Of each number that is predicted its slot, and what the train split has there.

Where rows have no targets, every number is predicted, and figures over all of them tell mostly that
ages differ from weights. Slots, which ``profile`` finds (``encoding.slots``), tell numbers of one
kind from the others. They are looked for in the texts of the train split and of the rows that are
evaluated together, since any row may show that places are one, and their means and medians are
those of the train split.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints, ranges
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.slots import wording
from numtok.encoding.slots.places import OTHER, TEXT
from numtok.encoding.slots.slots import Slots, merge
from numtok.encoding.splits import read_texts
from numtok.evaluation.queries import Queries
from numtok.evaluation.target_features import FieldedSplit, fitted_on
from numtok.store.artifact import Artifact

LEAST = 20  # numbers of a slot that are scored
_MOST = 24  # slots with figures
_OTHERS = "(others)"


class NumberSlots(NamedTuple):
    """Of each of ``a`` numbers that are asked for its slot.

    names
        [a] as ``profile`` calls it; ``(others)`` for those of no slot, and of slots with few
        numbers.
    means, medians
        float64[a], of the numbers of the slot in the train split; NaN for the others. A median is a
        number that is there: of the two in the middle the smaller.
    templates
        The beginning of a row of each template, by its letter in the names.
    """

    names: NDArray[np.object_]
    means: Floats
    medians: Floats
    templates: dict[str, str]


class Rows(NamedTuple):
    """Some rows of one split of encoded data: int64[k] ``chosen``, ascending, of ``samples``, which
    are the rows ``drawn`` of the split, or all of them for None."""

    artifact: Artifact
    split: str
    samples: EncodedSplit
    chosen: Ints
    drawn: Ints | None = None

    @property
    def stored(self) -> Ints:
        """int64[k]: their indices in the split."""
        return self.chosen if self.drawn is None else self.drawn[self.chosen]

    @property
    def counts(self) -> Ints:
        """int64[k]: the numbers of each."""
        return np.diff(self.samples.number_rows)[self.chosen]

    @property
    def numbers(self) -> Ints:
        """int64[n]: all of them, by their indices."""
        return ranges(self.samples.number_rows[self.chosen], self.counts)


def number_slots(
    evaluated: Rows, asked: Queries, learnt: Artifact, train: EncodedSplit
) -> NumberSlots | None:
    """Find the slots of the predicted numbers. ``evaluated`` holds all rows of its samples,
    ``train`` those of the train split of ``learnt``. None where no slot has enough numbers."""
    known = Rows(learnt, TRAIN, train, fitted_on(np.arange(len(train)), "slots"))
    slots, nodes = _settled([known, evaluated], Slots())
    values = train.numbers[known.numbers]
    learnt_at, asked_at = nodes[: len(values)], nodes[len(values) :][asked.numbers]
    finite = np.isfinite(values)
    values, learnt_at = values[finite], learnt_at[finite]
    scored = asked_at[np.isfinite(evaluated.samples.numbers[asked.numbers])]
    counts = np.bincount(scored, minlength=len(slots))
    enough = (counts >= LEAST) & (np.bincount(learnt_at, minlength=len(slots)) > 0)
    enough[[OTHER, TEXT]] = False  # numbers of all kinds, of which no structure is known
    kept = sorted(np.flatnonzero(enough).tolist(), key=lambda at: (-counts[at], slots.key(at)))
    kept = kept[:_MOST]
    if not kept:
        return None
    ordered = slots.ordered(_where([known, evaluated], nodes))
    labels = slots.labels(ordered)
    names = np.full(len(slots), _OTHERS, object)
    means, medians = np.full((2, len(slots)), np.nan)
    for node in kept:
        mine = values[learnt_at == node]
        largest = np.abs(mine).max() or 1.0  # so that sums do not overflow
        names[node] = labels[node]
        means[node] = (mine / largest).mean() * largest
        medians[node] = np.quantile(mine, 0.5, method="inverted_cdf")
    told = {
        letter: text.replace("_NUM_", "[NUM]")
        for letter, text in slots.examples(ordered).items()
        if any(labels[node].startswith(f"{letter} ") for node in kept)
    }
    return NumberSlots(names[asked_at], means[asked_at], medians[asked_at], told)


def number_fields(*parts: Rows) -> list[FieldedSplit]:
    """Assign each number of some rows a field, the same for all parts.

    A field is a slot that depends on the word before the number, never on the whole template: rows
    with and without ``, width 3 m`` share the field after ``length``. The second number of a slot
    in one row is in another field than the first.
    """
    slots, nodes = _settled(parts, Slots(wording.BY_ANCHOR))
    row_of, _ = _rows_and_positions(parts)
    codes = row_of * len(slots) + nodes
    order = np.argsort(codes, kind="stable")
    _, counts = np.unique(codes, return_counts=True)
    nth = np.empty(len(codes), np.int64)
    nth[order] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    fields = nodes + len(slots) * nth
    bounds = np.cumsum([0, *(len(part.numbers) for part in parts)])
    fielded = []
    for part, begin, end in zip(parts, bounds[:-1], bounds[1:], strict=True):
        of_all = np.full(len(part.samples.numbers), -1)
        of_all[part.numbers] = fields[begin:end]
        fielded.append(FieldedSplit(part.samples, of_all))
    return fielded


def _settled(parts: Sequence[Rows], slots: Slots) -> tuple[Slots, NDArray[np.int32]]:
    """The places in all rows, from empty ``slots`` on, and int32[numbers] at which each number
    is."""
    found = [np.empty(0, np.int32)]

    def merged() -> None:
        nonlocal slots, found
        slots, (became,) = merge([slots])
        found = [became[nodes] for nodes in found]

    for part in parts:
        targets, begin = _Targets.of(part), 0
        for texts, spans in read_texts(part.artifact, part.split, part.stored):
            nodes = slots.assign(texts, spans)
            targets.place(slots, nodes, begin)
            begin += len(nodes)
            found.append(nodes)
            if slots.unsettled:
                merged()
    row_of, _ = _rows_and_positions(parts)
    while slots.next_level(*_counted(np.concatenate(found), row_of, len(slots))):
        merged()
    return slots, np.concatenate(found)


class _Targets(NamedTuple):
    """Of each number of some rows the target that it is: int64[n] ``codes`` among ``names``, -1 for
    none."""

    names: list[str]
    codes: Ints

    @classmethod
    def of(cls, rows: Rows) -> "_Targets":
        coded: Any = rows.samples.target_name.dictionary_encode()
        codes = np.full(len(rows.samples.numbers), -1)
        codes[rows.samples.targets] = coded.indices.to_numpy()
        return cls(coded.dictionary.to_pylist(), codes[rows.numbers])

    def place(self, slots: Slots, nodes: NDArray[np.int32], begin: int) -> None:
        """Give the targets among the numbers from ``begin`` on the nodes of their names."""
        codes = self.codes[begin : begin + len(nodes)]
        for code in np.unique(codes[codes >= 0]).tolist():
            nodes[codes == code] = slots.target(self.names[code])


def _rows_and_positions(parts: Sequence[Rows]) -> tuple[Ints, Ints]:
    """int64[n] of each number its row, and which number of this it is."""
    counts = np.concatenate([part.counts for part in parts])
    row_of = np.repeat(np.arange(len(counts)), counts)
    return row_of, np.arange(len(row_of)) - np.repeat(np.cumsum(counts) - counts, counts)


def _counted(nodes: NDArray[np.int32], row_of: Ints, places: int) -> tuple[Floats, Floats]:
    """float64[places]: the numbers at each node, and the rows that have one."""
    once = np.unique(row_of * places + nodes) % places
    counts, rows = (np.bincount(one, minlength=places) for one in (nodes, once))
    return counts.astype(np.float64), rows.astype(np.float64)


def _where(parts: Sequence[Rows], nodes: NDArray[np.int32]) -> dict[int, tuple[int, int]]:
    """What ``Slots.ordered`` asks of each node: how many numbers are before the first one at it in
    the row with the most, and how few it has, negated."""
    row_of, positions = _rows_and_positions(parts)
    places = int(nodes.max()) + 1
    once, first = np.unique(row_of * places + nodes, return_index=True)
    most = np.zeros(places, np.int64)
    np.maximum.at(most, once % places, positions[first])
    counts = np.bincount(nodes)
    return {
        node: (int(most[node]), -int(counts[node]))
        for node in np.flatnonzero(counts).tolist()
        if node != OTHER
    }
