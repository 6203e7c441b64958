"""error: how large errors are at each magnitude of the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.analysis.figures._labels import colours_of, report_labels
from numtok.analysis.figures._picture import Axis, LineMark, Mark, Panel, Picture, axis_of
from numtok.analysis.figures._sources import sources_of
from numtok.analysis.figures.base import FigureKind
from numtok.arrays import Floats
from numtok.errors import DataError
from numtok.evaluation.report_files import ReportPredictions, answers_of, read
from numtok.metrics.base import Predictions
from numtok.store.artifact import Artifact, Resolve

_MOST_BINS, _LEAST_IN_BIN = 20, 20
_ROOM = 0.05


@dataclass(frozen=True)
class Error(FigureKind):
    """The median of |prediction - truth| over |truth|, in bins of as many numbers each, with
    strokes from the lower to the upper quartile; a panel for each data set, both axes logarithmic.

    relative
        The error over |truth| instead.
    target
        Only numbers of that target; all of them where it is empty.

    Raises UsageError for an unknown target, DataError where all truths are 0.
    """

    source: ClassVar[str] = "FP15's relative error; xVal, Section 4 (dynamic range)"
    relative: bool = False
    target: str = ""

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(one) for one in artifacts]
        labels = report_labels(evaluations, "data")
        colours = colours_of(labels)
        sources = sources_of(evaluations, resolve)
        panels, notes = [], ["Strokes: from the lower to the upper quartile."]
        for name in dict.fromkeys(source.name for source in sources):
            lines = [
                (label, answers_of(ReportPredictions.of_numbers(evaluation), self.target))
                for label, evaluation, source in zip(labels, evaluations, sources, strict=True)
                if source.name == name
            ]
            panel, told = panel_of(name, lines, colours, self.relative)
            panels.append(panel)
            notes += told
        return Picture(panels, notes)


def panel_of(
    title: str, lines: Sequence[tuple[str, Predictions]], colours: dict[str, int], relative: bool
) -> tuple[Panel, list[str]]:
    """A panel of labelled predictions, and what is left out of it."""
    marks: list[Mark] = []
    notes = []
    for label, answers in lines:
        lacking, zero = int((~answers.valid).sum()), int((answers.truth == 0).sum())
        if lacking:
            notes.append(f"{label}: {lacking:,} predictions are no number and are left out.")
        if zero:
            notes.append(f"{label}: {zero:,} truths are 0 and are left out.")
        kept = answers.take(answers.valid & (answers.truth != 0))
        if not len(kept.truth):
            raise DataError(f"{title}, {label}: no truth but 0 has a valid prediction")
        size, errors = np.abs(kept.truth), np.abs(kept.prediction - kept.truth)
        x, y, low, high = binned(size, errors / size if relative else errors)
        marks.append(LineMark(label, x, y, colours[label], dots=True, low=low, high=high))
    every = [
        one for mark in marks if isinstance(mark, LineMark) for one in (mark.y, mark.low, mark.high)
    ]
    ends = np.concatenate([one for one in every if one is not None])
    sizes = np.concatenate([mark.x for mark in marks if isinstance(mark, LineMark)])
    told = "|prediction - truth| / |truth|" if relative else "|prediction - truth|"
    # A median of 0, of a model that is exact, has a place on a signed logarithm alone.
    y_axis = axis_of(told, "log" if ends.min() > 0 else "signed-log", ends, _ROOM)
    x_axis: Axis = axis_of("|truth|", "log", sizes, _ROOM)
    return Panel(title, x_axis, y_axis, marks), notes


def binned(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """In bins of as many points each, by x: the median of x, and median and quartiles of y.

    >>> [one.tolist() for one in binned(np.array([3.0, 1.0, 2.0]), np.array([8.0, 0.0, 4.0]))]
    [[2.0], [4.0], [2.0], [6.0]]
    """
    order = np.argsort(x, kind="stable")
    bins = np.array_split(order, max(1, min(_MOST_BINS, len(x) // _LEAST_IN_BIN)))
    found = [
        (np.median(x[rows]), *np.quantile(y[rows], [0.5, 0.25, 0.75]).tolist()) for rows in bins
    ]
    across, middle, low, high = np.array(found, np.float64).T
    return across, middle, low, high
