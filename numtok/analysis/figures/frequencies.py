"""frequencies: how often mantissas, exponents or numbers come, and how often they are predicted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from numtok.analysis.figures._reports import report_labels
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import Axis, BarMarks, Panel, Picture
from numtok.declaration import setting
from numtok.evaluation.number_parts import PartShares, decimal_parts
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.store.artifact import Artifact, Resolve

_APART = 0.2  # of a place: distance of a dot from its middle


@dataclass(frozen=True)
class Frequencies(FigureKind):
    """Two dots for each of the most frequent values, of truths and of predictions; a panel
    for each report. Signs are left out, and predictions that are no numbers.

    part
        mantissa, exponent, or number for both together.
    target
        Only numbers of that target; all of them where it is empty.
    digits
        Significant digits of the mantissa.
    top
        How many values are shown: of those that come or are predicted most often.

    Raises UsageError for an unknown target.
    """

    source: ClassVar[str] = "xVal, Figure 4"
    part: str = setting("number", choices=PartShares._fields)
    target: str = ""
    digits: int = setting(3, at_least=1, at_most=17)
    top: int = setting(20, at_least=1, at_most=200)

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(one) for one in artifacts]
        titles = report_labels(evaluations, "data")
        panels = []
        for title, evaluation in zip(titles, evaluations, strict=True):
            answers = ReportPredictions.of_numbers(evaluation).of_target(self.target).answers
            truths, found = decimal_parts(answers, self.digits)
            valid = [one for one in found if one is not None]
            true, predicted = (getattr(PartShares.of(one), self.part) for one in (truths, valid))
            panels.append(panel_of(title, self.part, true, predicted, self.top))
        return Picture(panels, [])


def panel_of(
    title: str, part: str, true: Mapping[str, float], predicted: Mapping[str, float], top: int
) -> Panel:
    """The ``top`` values by the larger of both shares, the most frequent above; exponents by their
    size, the smallest above, so that panels compare.

    >>> panel = panel_of("p1000", "exponent", {"E-2": 0.9, "E-3": 0.1}, {"E-2": 1.0}, 5)
    >>> panel.y.names, [mark.lengths.tolist() for mark in panel.marks]
    (('E-3', 'E-2'), [[0.1, 0.9], [0.0, 1.0]])
    """
    largest = {one: max(true.get(one, 0.0), predicted.get(one, 0.0)) for one in {*true, *predicted}}
    shown = sorted(largest, key=lambda one: (-largest[one], one))[:top]
    if part == "exponent":
        shown.sort(key=lambda one: int(one[1:] or 0))  # that of zero is empty
    marks = []
    for side, (label, shares) in enumerate((("truth", true), ("prediction", predicted))):
        aside = (2 * side - 1) * _APART
        rows = [
            (place + aside, shares.get(one, 0.0), None, None) for place, one in enumerate(shown)
        ]
        marks.append(BarMarks.of(label, rows, side))
    x_axis, y_axis = Axis(label="share of all numbers"), Axis(label=part, names=tuple(shown))
    return Panel(title=title, x=x_axis, y=y_axis, marks=marks)
