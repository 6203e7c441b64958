"""learning: the loss that each training logged, over what was spent."""

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
    """A line for the model of each report, seeds of one experiment in one colour, a panel for each
    data set: the loss on the validation split, or on the train split where nothing else was
    looked at.

    over
        What was spent: seconds of training, samples (rows read) or tokens.

    Raises UsageError where no model is in the store any more, or none has what it is drawn over.
    """

    source: ClassVar[str] = "Kaplan et al. (2020), Scaling Laws, Figure 2"
    over: str = setting("seconds", choices=OVER)

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(one) for one in artifacts]
        labels = report_labels(evaluations, "data", "seed")
        colours = colours_of(labels)
        panels = []
        labelled = ((label, [one]) for label, one in zip(labels, evaluations, strict=True))
        for name, mine in by_data(labelled, evaluations, resolve).items():
            curves = learning_curves(mine, resolve)
            panel = learning_panel(curves, colours, cast(Over, self.over), name)
            if panel is not None:
                panels.append(panel)
        if not panels:
            raise UsageError(
                f"there is nothing to draw over {self.over}: the models of these reports are not "
                "in the store, or logged once; name reports of models that are there"
            )
        return Picture(panels, ["Losses of schemes are of other tokens: compare shapes."])
