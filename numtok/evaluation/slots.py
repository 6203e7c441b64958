"""Slots of the predicted numbers, with their mean and median in the train split.

If rows have no targets, every number is predicted, and metrics over all of them mostly measure that
ages differ from weights. Slots, which ``profile`` finds (``encoding.slots``), separate different
kinds of numbers. They are found in the texts of the train split and of the evaluated rows together,
because any row may show that two slots are the same. Means and medians are those of the train
split.
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

LEAST = 20  # fewest scored numbers for a slot to have metrics
_MOST = 24  # most slots with metrics
_OTHERS = "(others)"


class NumberSlots(NamedTuple):
    """Slots of ``a`` predicted numbers.

    names
        [a], slot names as in ``profile``; ``(others)`` for numbers in no slot, and in slots with
        few numbers.
    means, medians
        float64[a], of the slot's numbers in the train split; NaN for ``(others)``. The median is
        one of the numbers: the smaller of the two in the middle.
    templates
        Beginning of an example row of each template, by the template's letter in the names.
    """

    names: NDArray[np.object_]
    means: Floats
    medians: Floats
    templates: dict[str, str]


class Rows(NamedTuple):
    """Selected rows of one split of encoded data.

    samples
        Rows of the split in memory: those with the indices ``drawn``, or all if None.
    chosen
        Ascending indices int64[k] of the selected rows in ``samples``.
    """

    artifact: Artifact
    split: str
    samples: EncodedSplit
    chosen: Ints
    drawn: Ints | None = None

    @property
    def stored(self) -> Ints:
        """Indices of the selected rows in the split, int64[k]."""
        return self.chosen if self.drawn is None else self.drawn[self.chosen]

    @property
    def counts(self) -> Ints:
        """Number of numbers in each selected row, int64[k]."""
        return np.diff(self.samples.number_rows)[self.chosen]

    @property
    def numbers(self) -> Ints:
        """Indices of all numbers in the selected rows, int64[n]."""
        return ranges(self.samples.number_rows[self.chosen], self.counts)


def number_slots(
    evaluated: Rows, queries: Queries, training_data: Artifact, train: EncodedSplit
) -> NumberSlots | None:
    """Find the slots of the predicted numbers; None if no slot has enough numbers.

    ``evaluated`` selects all rows of its samples; ``train`` is the train split of
    ``training_data``.
    """
    train_rows = Rows(training_data, TRAIN, train, fitted_on(np.arange(len(train)), "slots"))
    slots, nodes = _find_slots([train_rows, evaluated], Slots())
    values = train.numbers[train_rows.numbers]
    train_nodes, query_nodes = nodes[: len(values)], nodes[len(values) :][queries.numbers]
    finite = np.isfinite(values)
    values, train_nodes = values[finite], train_nodes[finite]
    scored = query_nodes[np.isfinite(evaluated.samples.numbers[queries.numbers])]
    counts = np.bincount(scored, minlength=len(slots))
    enough = (counts >= LEAST) & (np.bincount(train_nodes, minlength=len(slots)) > 0)
    enough[[OTHER, TEXT]] = False  # mixed numbers without a known structure
    kept = sorted(np.flatnonzero(enough).tolist(), key=lambda at: (-counts[at], slots.key(at)))
    kept = kept[:_MOST]
    if not kept:
        return None
    ordered = slots.ordered(_sort_keys([train_rows, evaluated], nodes))
    labels = slots.labels(ordered)
    names = np.full(len(slots), _OTHERS, object)
    means, medians = np.full((2, len(slots)), np.nan)
    for node in kept:
        in_slot = values[train_nodes == node]
        largest = np.abs(in_slot).max() or 1.0  # so that sums do not overflow
        names[node] = labels[node]
        means[node] = (in_slot / largest).mean() * largest
        medians[node] = np.quantile(in_slot, 0.5, method="inverted_cdf")
    templates = {
        letter: text.replace("_NUM_", "[NUM]")
        for letter, text in slots.examples(ordered).items()
        if any(labels[node].startswith(f"{letter} ") for node in kept)
    }
    return NumberSlots(names[query_nodes], means[query_nodes], medians[query_nodes], templates)


def number_fields(*parts: Rows) -> list[FieldedSplit]:
    """Assign each number of some rows a field, the same for all parts.

    A field is a slot that depends on the word before the number, never on the whole template: rows
    with and without ``, width 3 m`` share the field after ``length``. The second number of a slot
    in one row is in another field than the first.
    """
    slots, nodes = _find_slots(parts, Slots(wording.BY_ANCHOR))
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


def _find_slots(parts: Sequence[Rows], slots: Slots) -> tuple[Slots, NDArray[np.int32]]:
    """Find the slots of all rows, starting from empty ``slots``.

    Also returns each number's slot, int32[numbers].
    """
    parts_nodes = [np.empty(0, np.int32)]

    def merged() -> None:
        nonlocal slots, parts_nodes
        slots, (became,) = merge([slots])
        parts_nodes = [became[nodes] for nodes in parts_nodes]

    for part in parts:
        targets, begin = _Targets.of(part), 0
        for texts, spans in read_texts(part.artifact, part.split, part.stored):
            nodes = slots.assign(texts, spans)
            targets.place(slots, nodes, begin)
            begin += len(nodes)
            parts_nodes.append(nodes)
            if slots.unsettled:
                merged()
    row_of, _ = _rows_and_positions(parts)
    while slots.next_level(*_count_nodes(np.concatenate(parts_nodes), row_of, len(slots))):
        merged()
    return slots, np.concatenate(parts_nodes)


class _Targets(NamedTuple):
    """Target of each number in some rows: int64[n] ``codes`` index ``names``, -1 for no target."""

    names: list[str]
    codes: Ints

    @classmethod
    def of(cls, rows: Rows) -> "_Targets":
        coded: Any = rows.samples.target_name.dictionary_encode()
        codes = np.full(len(rows.samples.numbers), -1)
        codes[rows.samples.targets] = coded.indices.to_numpy()
        return cls(coded.dictionary.to_pylist(), codes[rows.numbers])

    def place(self, slots: Slots, nodes: NDArray[np.int32], begin: int) -> None:
        """Assign numbers from ``begin`` on that are targets to the slots of their names."""
        codes = self.codes[begin : begin + len(nodes)]
        for code in np.unique(codes[codes >= 0]).tolist():
            nodes[codes == code] = slots.target(self.names[code])


def _rows_and_positions(parts: Sequence[Rows]) -> tuple[Ints, Ints]:
    """Return int64[n] the row of each number, and int64[n] its index within the row."""
    counts = np.concatenate([part.counts for part in parts])
    row_of = np.repeat(np.arange(len(counts)), counts)
    return row_of, np.arange(len(row_of)) - np.repeat(np.cumsum(counts) - counts, counts)


def _count_nodes(nodes: NDArray[np.int32], row_of: Ints, places: int) -> tuple[Floats, Floats]:
    """Return float64[places]: the count of numbers at each node, and of rows with such a number."""
    once = np.unique(row_of * places + nodes) % places
    counts, rows = (np.bincount(indices, minlength=places) for indices in (nodes, once))
    return counts.astype(np.float64), rows.astype(np.float64)


def _sort_keys(parts: Sequence[Rows], nodes: NDArray[np.int32]) -> dict[int, tuple[int, int]]:
    """Return the sort key of each node for ``Slots.ordered``.

    The key is the largest number of numbers before its first one in any row, and its negated count.
    """
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
