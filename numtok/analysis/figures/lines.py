"""lines: a metric plotted against a setting, with one line per experiment."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from numtok.analysis.figures._measures import OVER, Point, measured, notes_of
from numtok.analysis.figures._reports import labels_of, metric_label
from numtok.analysis.figures._settings import placed
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import SCALES, Axis, LineMark, Panel, Picture, axis_of
from numtok.arrays import Floats
from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.evaluation.comparison.experiments import group_by_experiment
from numtok.evaluation.report_files import read
from numtok.metrics.base import METRICS
from numtok.store.artifact import Artifact, Resolve

_WIDE = 10  # ratio of largest to smallest value from which the x axis is logarithmic
_FEW = 10  # most values that are all labeled below the axis
_ROOM = 0.06  # margin, as a fraction of the range


@dataclass(frozen=True)
class LinesFigure(FigureKind):
    """A metric plotted against a numeric setting, with one line per experiment and one panel per
    data set.

    Reports that differ only in the setting, in the data or in the seed are on one line.

    x
        Numeric setting of the configuration or the decoding (``rows``, ``draws``,
        ``budget_steps``, ...), of the head (``head.layers``) or the embedder (``embedder.sigma``),
        or of the task that generated the data (``data.dimension``).
    metric
        Metric on the y axis, as in ``numtok compare``.
    over
        Source of the intervals: ``seeds`` (bootstrap), or ``folds``.
    scale
        Scale of the metric: linear, log or signed-log.

    Raises UsageError unless every report has a numeric value for the setting ``x``.
    """

    source: ClassVar[str] = "Decoding-based Regression, Figures 6 and 8 to 12"
    checked_at: ClassVar[str] = "lines,x=rows"
    x: str = ""
    metric: str = "r2"
    over: str = setting("seeds", choices=OVER)
    scale: str = setting("linear", choices=SCALES)

    def __post_init__(self) -> None:
        if not self.x:
            raise UsageError(
                "figure lines needs --x KEY, a numeric setting such as rows, draws, head.layers or "
                "data.dimension"
            )

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        metric = METRICS.build(self.metric)
        groups = group_by_experiment([read(artifact) for artifact in artifacts])
        positions = placed(self.x, [group[0] for group in groups], resolve)
        schemes = [position.scheme for position in positions]
        lines = labels_of(schemes, [position.settings for position in positions])
        points = [
            Point(position.panel, line, position.x, measured(group, metric, self.over))
            for position, line, group in zip(positions, lines, groups, strict=True)
        ]
        notes = notes_of(point.found for point in points)
        return Picture(
            panels_of(points, self.x, Axis(label=metric_label(metric), scale=self.scale)), notes
        )


def panels_of(points: Sequence[Point], x: str, y_axis: Axis) -> list[Panel]:
    """Return one panel per data set. Panels and lines are in the order of their first points, and
    lines go from left to right.

    Undefined points are left out. Raises UsageError if all are undefined, if two points of a line
    have the same x, or if a logarithmic axis has values that are not above 0.
    """
    defined = [point for point in points if point.found.value is not None]
    if not defined:
        raise UsageError(f"there is nothing to draw: no report defines {y_axis.label!r}")
    if y_axis.scale != "linear":  # raises an error for values that a logarithm cannot show
        values = np.array([point.found.value for point in defined], np.float64)
        y_axis = replace(axis_of(y_axis.label, y_axis.scale, values, 0), low=None, high=None)
    x_axis = x_axis_of(x, np.unique([point.x for point in defined]))
    lines = list(dict.fromkeys(point.line for point in points))
    panels = []
    for title in dict.fromkeys(point.panel for point in points):
        marks = []
        for colour, label in enumerate(lines):
            members = [point for point in defined if (point.panel, point.line) == (title, label)]
            if not members:
                continue
            members.sort(key=lambda point: point.x)
            rows = [
                (point.x, point.found.value, point.found.low, point.found.high) for point in members
            ]
            if len({point.x for point in members}) < len(members):
                raise UsageError(
                    f"two experiments of {title!r} are {label!r} at the same {x}. Pass one of them"
                )
            marks.append(LineMark.of(label, rows, colour))
        panels.append(Panel(title=title, x=x_axis, y=y_axis, marks=marks))
    return panels


def x_axis_of(x: str, values: Floats) -> Axis:
    """Return the x axis for ascending values float64[n].

    The axis is logarithmic if all values are above 0 and the largest is many times the smallest. If
    there are few values, each is labeled.

    >>> x_axis_of("data.dimension", np.array([2.0, 4.0])).label
    'dimension'
    """
    wide = values[0] > 0 and values[-1] >= _WIDE * values[0]
    words = x.removeprefix("data.").replace(".", " ").replace("_", " ")
    ticks = tuple(values.tolist()) if len(values) <= _FEW else ()
    return replace(axis_of(words, "log" if wide else "linear", values, _ROOM), ticks=ticks)
