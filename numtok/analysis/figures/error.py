"""error: median absolute error, plotted against the magnitude of the true value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numtok.analysis.figures._reports import by_data, colours_of, report_labels
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.panels.numbers import size_panel
from numtok.analysis.picture import Panel, Picture
from numtok.errors import DataError
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.metrics.base import Predictions
from numtok.store.artifact import Artifact, Resolve


@dataclass(frozen=True)
class Error(FigureKind):
    """Median absolute error, plotted against the magnitude of the true value, with one panel per
    data set.

    True values are grouped into bins with equal counts. Error bars go from the lower to the upper
    quartile.

    relative
        Divide errors by the magnitude of the true value.
    target
        Target to include. Default: all targets.

    Raises UsageError if the target is unknown, and DataError if all true values are 0.
    """

    source: ClassVar[str] = "FP15's relative error; xVal, Section 4 (dynamic range)"
    relative: bool = False
    target: str = ""

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(artifact) for artifact in artifacts]
        labels = report_labels(evaluations, "data")
        colours = colours_of(labels)
        panels, notes = [], ["Error bars: from the lower to the upper quartile."]
        lines_of = (
            (label, ReportPredictions.of_numbers(evaluation).of_target(self.target).answers)
            for label, evaluation in zip(labels, evaluations, strict=True)
        )
        for name, lines in by_data(lines_of, evaluations, resolve).items():
            panel, panel_notes = panel_of(name, lines, colours, self.relative)
            panels.append(panel)
            notes += panel_notes
        return Picture(panels, notes)


def panel_of(
    title: str, lines: Sequence[tuple[str, Predictions]], colours: dict[str, int], relative: bool
) -> tuple[Panel, list[str]]:
    """Return a panel of the errors of several models on the same numbers, and notes on the numbers
    it leaves out."""
    notes = []
    for label, answers in lines:
        lacking, zero = int((~answers.valid).sum()), int((answers.truth == 0).sum())
        if lacking:
            notes.append(f"{label}: {lacking:,} invalid predictions are left out.")
        if zero:
            notes.append(f"{label}: {zero:,} true values of 0 are left out.")
        if not (answers.valid & (answers.truth != 0)).any():
            raise DataError(f"{title}, {label}: no nonzero true value has a valid prediction")
    sized = size_panel(dict(lines), colours, title, relative=relative)
    assert sized is not None  # one has a valid prediction
    return sized.panel, notes
