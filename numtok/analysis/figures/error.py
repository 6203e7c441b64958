"""error: median absolute error, plotted against the magnitude of the true value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from numtok.analysis.figures._reports import by_data, colours_of, report_labels
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.panels.numbers import size_panel
from numtok.analysis.picture import Panel, Picture
from numtok.errors import DataError
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.metrics.base import Predictions
from numtok.store.artifact import Artifact, Resolve


@dataclass(frozen=True)
class Error(FigureKind):
    """Median absolute error, plotted against the magnitude of the true value, with one panel per
    data set and split.

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
        predictions = (
            ReportPredictions.of_numbers(evaluation).of_target(self.target)
            for evaluation in evaluations
        )
        members = map(_Member, labels, evaluations, predictions)
        for name, of_data in by_data(members, evaluations, resolve).items():
            groups = _on_same_rows(of_data)
            for group in groups:
                split = group[0].evaluation.report.split
                title = name if len(groups) == 1 else f"{name}, {split}"
                lines = [(member.label, member.predictions.answers) for member in group]
                panel, panel_notes = panel_of(title, lines, colours, self.relative)
                panels.append(panel)
                notes += panel_notes
        return Picture(panels, notes)


class _Member(NamedTuple):
    """A report with its label and its predictions."""

    label: str
    evaluation: Evaluation
    predictions: ReportPredictions


def _on_same_rows(members: Sequence[_Member]) -> list[list[_Member]]:
    """Group reports by the rows that they predict."""
    groups: list[list[_Member]] = []
    for member in members:
        alike = (group for group in groups if group[0].predictions.same_rows(member.predictions))
        if (group := next(alike, None)) is None:
            groups.append(group := [])
        group.append(member)
    return groups


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
