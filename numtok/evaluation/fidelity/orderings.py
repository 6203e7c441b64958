"""Orderings that a published table prints: which of two cells has the higher value."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from numtok.evaluation.fidelity.measured import Place
from numtok.evaluation.published import PublishedTable, published
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
    content = published(table)
    groups = _within_rows(table, content) if _rows_are_data(content) else None
    pairs = []
    for metric, cells in groups or _within_columns(table, content):
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


Group = tuple[str, list[tuple[Place, float]]]  # metric, and cells with their printed values


def _rows_are_data(content: PublishedTable) -> bool:
    return any(column.head for column in content.columns)


def _within_columns(table: str, content: PublishedTable) -> Iterator[Group]:
    for column in content.columns:
        cells = [
            (Place(table, row, column.name), float(cells[column.name].value))
            for row, cells in content.rows.items()
            if column.name in cells
        ]
        if cells:
            yield column.metric, cells


def _within_rows(table: str, content: PublishedTable) -> list[Group]:
    return [
        (metric, cells)
        for row, printed in content.rows.items()
        for metric in dict.fromkeys(column.metric for column in content.columns)
        if (
            cells := [
                (Place(table, row, column.name), float(printed[column.name].value))
                for column in content.columns
                if column.metric == metric and column.name in printed
            ]
        )
    ]
