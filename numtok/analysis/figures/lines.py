"""lines: a metric over a setting, a line for each way, a panel for each data set."""

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

_WIDE = 10  # times the least: from there on the x axis is logarithmic
_FEW = 10  # values that are all written below the axis
_ROOM = 0.06  # of the range, beside the first and the last


@dataclass(frozen=True)
class LinesFigure(FigureKind):
    """What differs beside ``x``, the data and the seed makes a line of its own.

    x
        A numeric setting: of the configuration or the decoding (``rows``, ``draws``,
        ``budget_steps``, ...), of the head (``head.layers``) or the embedder
        (``embedder.sigma``), or of the task that made the data (``data.dimension``).
    metric
        As in ``compare``.
    over
        What the intervals are over: ``seeds`` (the bootstrap's where there is one), or ``folds``.
    scale
        Of the metric: linear, log or signed-log.

    Raises UsageError for an ``x`` that a report lacks or that is no number.
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
                "figure lines needs --x KEY, the setting along the x axis: a number such as rows, "
                "draws, head.layers or data.dimension"
            )

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        metric = METRICS.build(self.metric)
        groups = group_by_experiment([read(one) for one in artifacts])
        places = placed(self.x, [group[0] for group in groups], resolve)
        lines = labels_of([one.scheme for one in places], [one.settings for one in places])
        points = [
            Point(place.panel, line, place.x, measured(group, metric, self.over))
            for place, line, group in zip(places, lines, groups, strict=True)
        ]
        notes = notes_of(point.found for point in points)
        return Picture(
            panels_of(points, self.x, Axis(label=metric_label(metric), scale=self.scale)), notes
        )


def panels_of(points: Sequence[Point], x: str, y_axis: Axis) -> list[Panel]:
    """The panels and lines in the order of their first points; a line goes from left to right.

    Points without a value are left out. Raises UsageError where none has one, where two points of
    a line have one place, and for a logarithm of what is not above 0.
    """
    known = [point for point in points if point.found.value is not None]
    if not known:
        raise UsageError(f"there is nothing to draw: no report defines {y_axis.label!r}")
    if y_axis.scale != "linear":  # what a logarithm cannot show is refused
        values = np.array([point.found.value for point in known], np.float64)
        y_axis = replace(axis_of(y_axis.label, y_axis.scale, values, 0), low=None, high=None)
    x_axis = x_axis_of(x, np.unique([point.x for point in known]))
    lines = list(dict.fromkeys(point.line for point in points))
    panels = []
    for title in dict.fromkeys(point.panel for point in points):
        marks = []
        for colour, label in enumerate(lines):
            mine = [one for one in known if (one.panel, one.line) == (title, label)]
            if not mine:
                continue
            mine.sort(key=lambda point: point.x)
            rows = [(one.x, one.found.value, one.found.low, one.found.high) for one in mine]
            if len({one.x for one in mine}) < len(mine):
                raise UsageError(
                    f"two experiments of {title!r} are {label!r} at one {x}; give one of them"
                )
            marks.append(LineMark.of(label, rows, colour))
        panels.append(Panel(title=title, x=x_axis, y=y_axis, marks=marks))
    return panels


def x_axis_of(x: str, values: Floats) -> Axis:
    """Logarithmic where the values (float64[n], rising) are above 0 and wide apart; few of them are
    written.

    >>> x_axis_of("data.dimension", np.array([2.0, 4.0])).label
    'dimension'
    """
    wide = values[0] > 0 and values[-1] >= _WIDE * values[0]
    words = x.removeprefix("data.").replace(".", " ").replace("_", " ")
    ticks = tuple(values.tolist()) if len(values) <= _FEW else ()
    return replace(axis_of(words, "log" if wide else "linear", values, _ROOM), ticks=ticks)
