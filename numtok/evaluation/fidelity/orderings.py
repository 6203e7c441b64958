"""Orderings that a published table prints: which of two cells has the higher value."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from numtok.evaluation.fidelity.measured import Place
from numtok.evaluation.published import published
from numtok.metrics.base import METRICS

_DECADES = 100  # a column whose values span this factor is compared on a logarithmic scale


class Ordering(NamedTuple):
    """Two cells of a table with the same metric, of which ``higher`` is printed as the higher.

    logarithmic
        True if differences are those of log10 of the values.
    """

    higher: Place
    lower: Place
    metric: str
    logarithmic: bool


def printed_orderings(table: str) -> list[Ordering]:
    """Return all pairs of cells of a published table whose printed values differ.

    Cells are compared within a column. Where rows are data sets and columns are heads, they are
    compared within a row, among the columns with the same metric.

    >>> len(printed_orderings("xval/table3"))
    18
    """
    pairs = []
    for metric, cells in _groups(table):
        logarithmic = is_logarithmic(metric, [value for _, value in cells])
        for (first, a), (second, b) in combinations(cells, 2):
            if a != b:
                high, low = (first, second) if a > b else (second, first)
                pairs.append(Ordering(high, low, metric, logarithmic))
    return pairs


def is_logarithmic(metric: str, values: Sequence[float]) -> bool:
    """Return True if the values of a metric without an upper bound are positive and span at least
    two decades."""
    if metric in METRICS and METRICS.build(metric).bounds[1] < math.inf:
        return False
    return min(values) > 0 and max(values) >= _DECADES * min(values)


def _groups(table: str) -> Iterator[tuple[str, list[tuple[Place, float]]]]:
    """Yield the metric and the cells of each group that is compared, with their printed values."""
    content = published(table)
    metrics = {column.name: column.metric for column in content.columns}
    if any(column.head for column in content.columns):
        groups = [
            (metric, [(row, name) for name, own in metrics.items() if own == metric])
            for row in content.rows
            for metric in dict.fromkeys(metrics.values())
        ]
    else:
        groups = [(metrics[name], [(row, name) for row in content.rows]) for name in metrics]
    for metric, cells in groups:
        printed = [
            (Place(table, row, name), float(content.rows[row][name].value))
            for row, name in cells
            if name in content.rows[row]
        ]
        if printed:
            yield metric, printed
