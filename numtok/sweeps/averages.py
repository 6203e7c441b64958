"""Averages: every way of doing it over all data sets of a sweep, as tables of papers have them.

A way is what runs share that differ only in the data, the seed and what was
chosen: the best ``decoder:ud`` is one, whatever its base was on each data set.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from numtok.evaluation.comparison.seeds import FoldStatistics
from numtok.stages.compare import Comparison
from numtok.sweeps.plan import FETCHED, Sweep, label_of
from numtok.sweeps.runs import Run


class Average(NamedTuple):
    """One way, by its place on the other axes, and each metric over the data sets."""

    label: str
    metrics: dict[str, FoldStatistics]


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
        )
        for label, figures in found.items()
        if len(figures) > 1
    ]
