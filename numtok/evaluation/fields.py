"""Fields that predicted numbers belong to, with each field's mean and median in the train split.

If rows have no targets, every number is predicted. In that case, a metric over all numbers mostly
reflects the differences between kinds of numbers, such as ages and weights. Fields separate these
kinds. They are detected as in ``profile`` (see ``encoding.fields``), from the texts of the train
split and of the evaluated rows together, because a single row can reveal that two apparent fields
are the same field. Means and medians are computed from the train split only.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.fields import wording
from numtok.encoding.fields.fields import Fields, merge
from numtok.encoding.fields.places import OTHER, TEXT
from numtok.encoding.splits import read_texts
from numtok.evaluation.queries import Queries
from numtok.evaluation.rows import Rows
from numtok.evaluation.target_features import AnchoredRows, fitted_on
from numtok.store.artifact import Artifact

LEAST = 20  # minimum number of scored numbers for a field to have metrics
_MOST = 24  # maximum number of fields with metrics
_OTHERS = "(others)"


class NumberFields(NamedTuple):
    """Fields that the predicted numbers belong to. ``a`` is the number of predicted numbers.

    names
        [a], name of each number's field, as in ``profile``; ``(others)`` for numbers that belong to
        no field, or to a field with few numbers.
    means, medians
        float64[a], mean and median of the field's numbers in the train split; NaN for ``(others)``.
        If the count is even, the median is the smaller of the two middle numbers.
    templates
        Beginning of an example row for each template, keyed by the letter that stands for the
        template in ``names``.
    """

    names: NDArray[np.object_]
    means: Floats
    medians: Floats
    templates: dict[str, str]


def number_fields(
    evaluated: Rows, queries: Queries, training_data: Artifact, train: EncodedSplit
) -> NumberFields | None:
    """Return the fields of the predicted numbers, or None if no field has enough numbers.

    ``evaluated`` must select all rows of its samples. ``train`` is the train split of
    ``training_data``.
    """
    train_rows = Rows(training_data, TRAIN, train, fitted_on(np.arange(len(train)), "fields"))
    fields, nodes = _find_fields([train_rows, evaluated], Fields())
    values = train.numbers[train_rows.numbers]
    train_nodes, query_nodes = nodes[: len(values)], nodes[len(values) :][queries.numbers]
    finite = np.isfinite(values)
    values, train_nodes = values[finite], train_nodes[finite]
    scored = query_nodes[np.isfinite(evaluated.samples.numbers[queries.numbers])]
    counts = np.bincount(scored, minlength=len(fields))
    enough = (counts >= LEAST) & (np.bincount(train_nodes, minlength=len(fields)) > 0)
    enough[[OTHER, TEXT]] = False  # mixed numbers without a known structure
    kept = sorted(np.flatnonzero(enough).tolist(), key=lambda at: (-counts[at], fields.key(at)))
    kept = kept[:_MOST]
    if not kept:
        return None
    ordered = fields.ordered(_sort_keys([train_rows, evaluated], nodes))
    labels = fields.labels(ordered)
    names = np.full(len(fields), _OTHERS, object)
    means, medians = np.full((2, len(fields)), np.nan)
    for node in kept:
        in_field = values[train_nodes == node]
        largest = np.abs(in_field).max() or 1.0  # so that sums do not overflow
        names[node] = labels[node]
        means[node] = (in_field / largest).mean() * largest
        medians[node] = np.quantile(in_field, 0.5, method="inverted_cdf")
    templates = {
        letter: text.replace("_NUM_", "[NUM]")
        for letter, text in fields.examples(ordered).items()
        if any(labels[node].startswith(f"{letter} ") for node in kept)
    }
    return NumberFields(names[query_nodes], means[query_nodes], medians[query_nodes], templates)


def anchored_fields(*parts: Rows) -> list[AnchoredRows]:
    """Return each part with an anchored field for every number in the selected rows.

    An anchored field depends only on the word before the number, not on the whole template: rows
    with and without ``, width 3 m`` share the field after ``length``. If the same word precedes
    several numbers in a row, each number has its own anchored field. A field has the same code in
    all parts.
    """
    fields, nodes = _find_fields(parts, Fields(wording.BY_ANCHOR))
    row_of, _ = _rows_and_positions(parts)
    codes = row_of * len(fields) + nodes
    order = np.argsort(codes, kind="stable")
    _, counts = np.unique(codes, return_counts=True)
    nth = np.empty(len(codes), np.int64)
    nth[order] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    anchored_codes = nodes + len(fields) * nth
    bounds = np.cumsum([0, *(len(part.numbers) for part in parts)])
    anchored = []
    for part, begin, end in zip(parts, bounds[:-1], bounds[1:], strict=True):
        of_all = np.full(len(part.samples.numbers), -1)
        of_all[part.numbers] = anchored_codes[begin:end]
        anchored.append(AnchoredRows(part, of_all))
    return anchored


def _find_fields(parts: Sequence[Rows], fields: Fields) -> tuple[Fields, NDArray[np.int32]]:
    """Return the fields of all rows, and the field of each number, int32[numbers].

    The search starts from ``fields``, which must be empty.
    """
    parts_nodes = [np.empty(0, np.int32)]

    def merged() -> None:
        nonlocal fields, parts_nodes
        fields, (became,) = merge([fields])
        parts_nodes = [became[nodes] for nodes in parts_nodes]

    for part in parts:
        targets, begin = _Targets.of(part), 0
        for texts, spans in read_texts(part.artifact, part.split, part.stored):
            nodes = fields.assign(texts, spans)
            targets.place(fields, nodes, begin)
            begin += len(nodes)
            parts_nodes.append(nodes)
            if fields.unsettled:
                merged()
    row_of, _ = _rows_and_positions(parts)
    while fields.next_level(*_count_nodes(np.concatenate(parts_nodes), row_of, len(fields))):
        merged()
    return fields, np.concatenate(parts_nodes)


class _Targets(NamedTuple):
    """Target of each number in the given rows: int64[n] ``codes``, indices in ``names``; -1 for
    numbers that are not targets."""

    names: list[str]
    codes: Ints

    @classmethod
    def of(cls, rows: Rows) -> "_Targets":
        coded: Any = rows.samples.target_name.dictionary_encode()
        codes = np.full(len(rows.samples.numbers), -1)
        codes[rows.samples.targets] = coded.indices.to_numpy()
        return cls(coded.dictionary.to_pylist(), codes[rows.numbers])

    def place(self, fields: Fields, nodes: NDArray[np.int32], begin: int) -> None:
        """Assign targets among the numbers starting at index ``begin`` to the fields of their
        names."""
        codes = self.codes[begin : begin + len(nodes)]
        for code in np.unique(codes[codes >= 0]).tolist():
            nodes[codes == code] = fields.target(self.names[code])


def _rows_and_positions(parts: Sequence[Rows]) -> tuple[Ints, Ints]:
    """Return the row of each number, int64[n], and its index within the row, int64[n]."""
    counts = np.concatenate([part.counts for part in parts])
    row_of = np.repeat(np.arange(len(counts)), counts)
    return row_of, np.arange(len(row_of)) - np.repeat(np.cumsum(counts) - counts, counts)


def _count_nodes(nodes: NDArray[np.int32], row_of: Ints, places: int) -> tuple[Floats, Floats]:
    """Return the count of numbers at each node and of rows with such a number, each
    float64[places]."""
    once = np.unique(row_of * places + nodes) % places
    counts, rows = (np.bincount(indices, minlength=places) for indices in (nodes, once))
    return counts.astype(np.float64), rows.astype(np.float64)


def _sort_keys(parts: Sequence[Rows], nodes: NDArray[np.int32]) -> dict[int, tuple[int, int]]:
    """Return the sort key of each node for ``Fields.ordered``.

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
