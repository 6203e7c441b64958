"""error: how large errors are at each magnitude of the truth."""

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
    """The median of |prediction - truth| over |truth|, in bins of as many numbers each, with
    strokes from the lower to the upper quartile; a panel for each data set.

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
        panels, notes = [], ["Strokes: from the lower to the upper quartile."]
        lines_of = (
            (label, ReportPredictions.of_numbers(evaluation).of_target(self.target).answers)
            for label, evaluation in zip(labels, evaluations, strict=True)
        )
        for name, lines in by_data(lines_of, evaluations, resolve).items():
            panel, told = panel_of(name, lines, colours, self.relative)
            panels.append(panel)
            notes += told
        return Picture(panels, notes)


def panel_of(
    title: str, lines: Sequence[tuple[str, Predictions]], colours: dict[str, int], relative: bool
) -> tuple[Panel, list[str]]:
    """A panel of labelled predictions of the same numbers, and what is left out of it."""
    notes = []
    for label, answers in lines:
        lacking, zero = int((~answers.valid).sum()), int((answers.truth == 0).sum())
        if lacking:
            notes.append(f"{label}: {lacking:,} predictions are no number and are left out.")
        if zero:
            notes.append(f"{label}: {zero:,} truths are 0 and are left out.")
        if not (answers.valid & (answers.truth != 0)).any():
            raise DataError(f"{title}, {label}: no truth but 0 has a valid prediction")
    found = size_panel(dict(lines), colours, title, relative=relative)
    assert found is not None  # one has a valid prediction
    return found.panel, notes
