"""bars: a metric of two ways on many data sets, the largest gap first."""

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

_APART = 0.2  # of a place: distance of a dot from its middle


@dataclass(frozen=True)
class BarsFigure(FigureKind):
    """Two dots for each data set, sorted by how much better the first way is.

    metric
        As in ``compare``.
    over
        What the intervals are over: ``seeds`` (the bootstrap's where there is one), or ``folds``.

    Raises UsageError unless the reports are of two ways (schemes, heads, settings) on the same
    data sets.
    """

    source: ClassVar[str] = "Decoding-based Regression, Figure 5"
    metric: str = "r2"
    over: str = setting("seeds", choices=OVER)

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        metric = METRICS.build(self.metric)
        groups = group_by_experiment([read(one) for one in artifacts])
        firsts = [group[0] for group in groups]
        ways = report_labels(firsts, "data", "seed")
        labels = list(dict.fromkeys(ways))
        if len(labels) != 2:
            told = "; ".join(labels)
            raise UsageError(
                f"figure bars compares two ways, and these reports are of {len(labels)}: {told}; "
                "figure lines takes more"
            )
        found: dict[str, dict[str, SeedStatistics]] = {}
        sources = sources_of(firsts, resolve)
        for way, source, group in zip(ways, sources, groups, strict=True):
            both = found.setdefault(source.name, {})
            if way in both:
                raise UsageError(f"two experiments on {source.name} are {way!r}; give one of them")
            both[way] = measured(group, metric, self.over)
        pairs = []
        for name, both in found.items():
            if len(both) < 2:
                lacking = next(label for label in labels if label not in both)
                raise UsageError(
                    f"there is no report of {lacking!r} on {name}; figure bars needs both ways on "
                    "each data set"
                )
            pairs.append(Pair(name, both[labels[0]], both[labels[1]]))
        every = [one for pair in pairs for one in (pair.first, pair.second)]
        return Picture([panel_of(pairs, labels, metric)], notes_of(every))


def panel_of(pairs: Sequence[Pair], labels: Sequence[str], metric: Metric) -> Panel:
    """The pairs from that in which the first way is furthest ahead to that in which the second is.

    Where neither direction of the metric is better, the larger counts as ahead. Pairs without one
    of the figures are left out; raises UsageError where all are.
    """
    sign = -1.0 if metric.better == "lower" else 1.0
    gaps = {
        pair: sign * (pair.first.value - pair.second.value)
        for pair in pairs
        if pair.first.value is not None and pair.second.value is not None
    }
    if not gaps:
        raise UsageError(
            f"there is nothing to draw: {metric_label(metric)!r} is defined for no data set"
        )
    shown = sorted(gaps, key=lambda pair: -gaps[pair])
    marks = []
    for side, label in enumerate(labels):
        found = [(pair.first, pair.second)[side] for pair in shown]
        aside = (2 * side - 1) * _APART
        rows = [(place + aside, one.value, one.low, one.high) for place, one in enumerate(found)]
        marks.append(BarMarks.of(label, rows, side))
    y_axis = Axis(names=tuple(pair.data for pair in shown))
    return Panel(x=Axis(label=metric_label(metric)), y=y_axis, marks=marks)
