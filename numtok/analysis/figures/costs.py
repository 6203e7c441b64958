"""costs: a metric plotted against its cost, with the Pareto front."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numtok.analysis.figures._measures import measured, notes_of
from numtok.analysis.figures._reports import by_data, colours_of, metric_label, report_labels
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.panels.costs import COSTS, HIGHER, CostPoint, cost_panel
from numtok.analysis.picture import Picture
from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.evaluation.comparison.experiments import costs_of, group_by_experiment
from numtok.evaluation.report_files import read
from numtok.metrics.base import METRICS
from numtok.store.artifact import Artifact, Resolve


@dataclass(frozen=True)
class CostFigure(FigureKind):
    """A metric plotted against a cost, with one dot per experiment and one panel per data set.

    The gray line is the Pareto front: no experiment is both cheaper and better than one on the
    line.

    metric
        Metric on the y axis, as in ``numtok compare``.
    cost
        Cost on the x axis, averaged over the seeds.

    Raises UsageError if no report has both the metric and the cost.
    """

    source: ClassVar[str] = "Schwartz et al. (2020), Green AI (cost next to accuracy)"
    metric: str = "r2"
    cost: str = setting("train_seconds", choices=tuple(COSTS))

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        metric = METRICS.build(self.metric)
        groups = group_by_experiment([read(artifact) for artifact in artifacts])
        firsts = [group[0] for group in groups]
        labels = report_labels(firsts, "data", "seed")
        colours = colours_of(labels)
        measures = [measured(group, metric, "seeds") for group in groups]
        panels = []
        every = zip(labels, groups, measures, strict=True)
        for name, members in by_data(every, firsts, resolve).items():
            points = [
                CostPoint(label, cost, measure.value, measure.low, measure.high)
                for label, group, measure in members
                if measure.value is not None
                and (cost := getattr(costs_of(group), self.cost)) is not None
            ]
            words = COSTS[self.cost], metric_label(metric)
            panel = cost_panel(points, words, colours, name, higher=HIGHER.get(metric.better))
            if panel is not None:
                panels.append(panel)
        if not panels:
            raise UsageError(
                f"there is nothing to draw: no report has both {self.metric} and {self.cost}. "
                "Choose another --metric or --cost"
            )
        return Picture(panels, notes_of(measures))
