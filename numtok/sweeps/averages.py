"""Every way of doing it over all data sets of a sweep: averages, as papers have them, and ranks.

A way is what runs share that differ only in the data, the seed and what was
chosen: the best ``decoder:ud`` is one, whatever its base was on each data set.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from numtok.evaluation.comparison.seeds import FoldStatistics
from numtok.stages.compare import Comparison
from numtok.sweeps.plan import FETCHED, Sweep, label_of
from numtok.sweeps.runs import Run

_LEVEL = 0.05  # of the test of ranks


class Average(NamedTuple):
    """One way, by its place on the other axes: each metric over the data sets, and on each."""

    label: str
    metrics: dict[str, FoldStatistics]
    each: list[dict[str, float | None]]


class Ranking(NamedTuple):
    """Which way is the best on how many data sets, as Demšar (2006) compares classifiers.

    metric
        By which they are ranked, on each data set, the best with 1; ways that are as good share
        theirs.
    ways
        The mean of the ranks of each way that has a figure on all data sets, and their deviation;
        the best first.
    apart
        Two mean ranks that differ by less may do so by chance: the critical difference of Nemenyi's
        test at 5%, for all pairs together.
    """

    metric: str
    data_sets: int
    ways: dict[str, FoldStatistics]
    apart: float


def averages(
    sweep: Sweep,
    runs: Sequence[Run],
    reports: Mapping[int, Path],
    comparisons: Sequence[Comparison],
) -> list[Average]:
    """From the runs, the report of each by its index, and the comparison of each data set.

    A way with figures on one data set alone has none; so is it where figures are by group.
    """
    of_data = {axis for point, _ in sweep.data for axis in point} | {FETCHED}
    ways = {}
    for run in runs:
        if (folder := reports.get(run.index)) is not None:
            way = {axis: value for axis, value in sweep.shared(run.point) if axis not in of_data}
            ways[f"{folder.parent.name}@{folder.name}"] = label_of(way)
    found: dict[str, list[dict[str, float | None]]] = {}  # on each data set
    for comparison in comparisons:
        part = comparison.parts[0]
        for experiment in comparison.experiments if part.value is None else ():
            standings = part.standings[experiment.label]
            values = {metric: standing.figure.value for metric, standing in standings.items()}
            found.setdefault(ways[experiment.reports[0]], []).append(values)
    # Which metrics a comparison has, its data decide; what one of them lacks is undefined.
    metrics = list(dict.fromkeys(chain.from_iterable(chain.from_iterable(found.values()))))
    return [
        Average(
            label,
            {metric: FoldStatistics.of([one.get(metric) for one in figures]) for metric in metrics},
            figures,
        )
        for label, figures in found.items()
        if len(figures) > 1
    ]


def ranks(ways: Sequence[Average], better: Mapping[str, str]) -> Ranking | None:
    """Of the first metric of which one direction is ``better``; None where there are not two ways
    with a figure on all data sets."""
    from scipy.stats import rankdata, studentized_range  # takes half a second

    metric = next((metric for metric, which in better.items() if which != "neither"), None)
    count = max((len(one.each) for one in ways), default=0)
    if metric is None:
        return None
    figures = {one.label: [on.get(metric) for on in one.each] for one in ways}
    whole = {
        label: values
        for label, values in figures.items()
        if len(values) == count and None not in values
    }
    if len(whole) < 2:
        return None
    of_each = np.array(list(whole.values()), np.float64)  # [ways, data sets]
    order = -of_each if better[metric] == "higher" else of_each
    ranked = rankdata(order, axis=0)
    found = {label: FoldStatistics.of(of.tolist()) for label, of in zip(whole, ranked, strict=True)}
    best_first = sorted(found.items(), key=lambda one: one[1].mean or 0.0)
    many = len(whole)
    studentized = float(studentized_range.ppf(1 - _LEVEL, many, np.inf)) / math.sqrt(2)
    apart = studentized * math.sqrt(many * (many + 1) / (6 * count))
    return Ranking(metric, count, dict(best_first), apart)
