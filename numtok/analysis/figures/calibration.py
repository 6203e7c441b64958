"""calibration: how many truths predicted intervals hold, and where truths lie in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from numtok.analysis.figures._reports import colours_of, report_labels
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.panels.calibration import coverage_panel, pit_panel
from numtok.analysis.picture import Picture
from numtok.errors import UsageError
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.store.artifact import Artifact, Resolve


@dataclass(frozen=True)
class CalibrationFigure(FigureKind):
    """A panel of how many truths lie in the central interval of each level, a line for each report
    (on the diagonal it is calibrated, below it too sure); and for each report a histogram of the
    probability predicted for the truth or less, which is flat where it is calibrated.

    target
        Only numbers of that target; all of them where it is empty.

    Raises UsageError for an unknown target, and where a report has no distribution.
    """

    source: ClassVar[str] = (
        "Gneiting et al. (2007), Probabilistic forecasts, calibration, sharpness"
    )
    target: str = ""

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(one) for one in artifacts]
        labels = report_labels(evaluations)
        colours = colours_of(labels)
        panels = []
        answers = {
            label: ReportPredictions.of_numbers(evaluation).of_target(self.target).answers
            for label, evaluation in zip(labels, evaluations, strict=True)
        }
        for (label, one), evaluation in zip(answers.items(), evaluations, strict=False):
            if coverage_panel({label: one}, colours) is None:
                raise UsageError(
                    f"{evaluation.ref} has no predictive distribution, so there is nothing to be "
                    "calibrated; evaluate with `--num-samples N`, or name a report of another head"
                )
            panels.append(pit_panel(one, label, colours[label]))
        together = coverage_panel(answers, colours, "all" if len(answers) > 1 else "")
        return Picture(
            [one for one in (together, *panels) if one is not None],
            ["Strokes: 95% interval over the test rows (Wilson's)."],
        )
