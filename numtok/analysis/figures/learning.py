"""learning: training curves, which show the loss plotted against the training cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from numtok.analysis.figures._reports import by_data, colours_of, report_labels
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.panels.learning import OVER, Over, learning_curves, learning_panel
from numtok.analysis.picture import Picture
from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.evaluation.report_files import read
from numtok.store.artifact import Artifact, Resolve


@dataclass(frozen=True)
class LearningFigure(FigureKind):
    """Training curves, with one line per model, one color per experiment, and one panel per data
    set.

    The y axis is the loss on the validation split, or on the train split if only that was logged.

    over
        Cost on the x axis: seconds of training, samples (rows read) or tokens.

    Raises UsageError if none of the models is still in the store, or if none of them logged the
    cost ``over``.
    """

    source: ClassVar[str] = "Kaplan et al. (2020), Scaling Laws, Figure 2"
    over: str = setting("seconds", choices=OVER)

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(artifact) for artifact in artifacts]
        labels = report_labels(evaluations, "data", "seed")
        colours = colours_of(labels)
        panels = []
        labelled = (
            (label, [evaluation]) for label, evaluation in zip(labels, evaluations, strict=True)
        )
        for name, members in by_data(labelled, evaluations, resolve).items():
            curves = learning_curves(members, resolve)
            panel = learning_panel(curves, colours, cast(Over, self.over), name)
            if panel is not None:
                panels.append(panel)
        if not panels:
            raise UsageError(
                f"there is nothing to draw over {self.over}: the models of these reports are not "
                "in the store, or logged only once. Pass reports of stored models"
            )
        return Picture(
            panels,
            ["Losses of different schemes are not comparable; compare the shapes of the curves."],
        )
