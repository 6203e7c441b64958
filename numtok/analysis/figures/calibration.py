"""calibration: coverage of predicted intervals, and probability integral transforms (PIT)."""

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
    """Calibration of predictive distributions: a panel with the coverage of predicted intervals,
    and a PIT histogram per report.

    The first panel shows the fraction of true values in the central interval of each level, with
    one line per report. A calibrated model is on the diagonal, an overconfident one below it. The
    histograms show the probability integral transform (PIT), the predicted probability of a value
    at or below the true value. For a calibrated model, it is uniformly distributed.

    target
        Target to include. Default: all targets.

    Raises UsageError if the target is unknown, or if a report has no predictive distributions.
    """

    source: ClassVar[str] = (
        "Gneiting et al. (2007), Probabilistic forecasts, calibration, sharpness"
    )
    target: str = ""

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(artifact) for artifact in artifacts]
        labels = report_labels(evaluations)
        colours = colours_of(labels)
        panels = []
        answers = {
            label: ReportPredictions.of_numbers(evaluation).of_target(self.target).answers
            for label, evaluation in zip(labels, evaluations, strict=True)
        }
        for (label, own), evaluation in zip(answers.items(), evaluations, strict=False):
            if coverage_panel({label: own}, colours) is None:
                raise UsageError(
                    f"{evaluation.ref} has no predictive distribution to check. Evaluate with "
                    "--num-samples N, or pass a report of another head"
                )
            panels.append(pit_panel(own, label, colours[label]))
        together = coverage_panel(answers, colours, "all" if len(answers) > 1 else "")
        return Picture(
            [panel for panel in (together, *panels) if panel is not None],
            ["Error bars: 95% Wilson interval over the test rows."],
        )
