"""bars: a metric compared between two experiments on many data sets, sorted by the difference."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numtok.analysis.figures._measures import OVER, Pair, measured, notes_of
from numtok.analysis.figures._reports import metric_label, report_labels, sources_of
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import Axis, BarMarks, Panel, Picture
from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.evaluation.comparison.experiments import group_by_experiment
from numtok.evaluation.comparison.seeds import SeedStatistics
from numtok.evaluation.report_files import read
from numtok.metrics.base import METRICS, Metric
from numtok.store.artifact import Artifact, Resolve

_APART = 0.2  # distance of a dot from the middle of its row, in rows


@dataclass(frozen=True)
class BarsFigure(FigureKind):
    """A metric compared between two experiments, with two dots per data set.

    Data sets are sorted by how far the first experiment is ahead.

    metric
        Metric to compare, as in ``numtok compare``.
    over
        Source of the intervals: ``seeds`` (bootstrap), or ``folds``.

    Raises UsageError unless the reports belong to two experiments (schemes, heads, settings) on the
    same data sets.
    """

    source: ClassVar[str] = "Decoding-based Regression, Figure 5"
    metric: str = "r2"
    over: str = setting("seeds", choices=OVER)

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        metric = METRICS.build(self.metric)
        groups = group_by_experiment([read(artifact) for artifact in artifacts])
        firsts = [group[0] for group in groups]
        ways = report_labels(firsts, "data", "seed")
        labels = list(dict.fromkeys(ways))
        if len(labels) != 2:
            listed = "; ".join(labels)
            raise UsageError(
                f"figure bars compares two experiments, but the reports are of {len(labels)}: "
                f"{listed}. Use figure lines for more"
            )
        by_source: dict[str, dict[str, SeedStatistics]] = {}
        sources = sources_of(firsts, resolve)
        for way, source, group in zip(ways, sources, groups, strict=True):
            both = by_source.setdefault(source.name, {})
            if way in both:
                raise UsageError(f"two experiments on {source.name} are {way!r}. Pass one of them")
            both[way] = measured(group, metric, self.over)
        pairs = []
        for name, both in by_source.items():
            if len(both) < 2:
                lacking = next(label for label in labels if label not in both)
                raise UsageError(
                    f"there is no report of {lacking!r} on {name}. Figure bars needs both "
                    "experiments on each data set"
                )
            pairs.append(Pair(name, both[labels[0]], both[labels[1]]))
        every = [statistics for pair in pairs for statistics in (pair.first, pair.second)]
        return Picture([panel_of(pairs, labels, metric)], notes_of(every))


def panel_of(pairs: Sequence[Pair], labels: Sequence[str], metric: Metric) -> Panel:
    """Return a panel with one row per pair, sorted by how far the first experiment is ahead.

    If neither higher nor lower values are better, the experiment with the larger value is ahead.
    Pairs with an undefined value are left out. Raises UsageError if no pair is left.
    """
    sign = -1.0 if metric.better == "lower" else 1.0
    gaps = {
        pair: sign * (pair.first.value - pair.second.value)
        for pair in pairs
        if pair.first.value is not None and pair.second.value is not None
    }
    if not gaps:
        raise UsageError(
            f"there is nothing to draw: {metric_label(metric)!r} is undefined on all data sets"
        )
    shown = sorted(gaps, key=lambda pair: -gaps[pair])
    marks = []
    for side, label in enumerate(labels):
        sides = [(pair.first, pair.second)[side] for pair in shown]
        aside = (2 * side - 1) * _APART
        rows = [
            (row + aside, measure.value, measure.low, measure.high)
            for row, measure in enumerate(sides)
        ]
        marks.append(BarMarks.of(label, rows, side))
    y_axis = Axis(names=tuple(pair.data for pair in shown))
    return Panel(x=Axis(label=metric_label(metric)), y=y_axis, marks=marks)
