"""frequencies: how often mantissas, exponents or numbers occur and how often they are predicted."""

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

_APART = 0.2  # distance of a dot from the middle of its row, in rows


@dataclass(frozen=True)
class Frequencies(FigureKind):
    """True and predicted frequencies of the most frequent values, with two dots per value and one
    panel per report.

    Signs and invalid predictions are left out.

    part
        mantissa, exponent, or number for both together.
    target
        Target to include. Default: all targets.
    digits
        Significant digits of the mantissa.
    top
        Number of values to show. The values that are most frequent among the true values or the
        predictions are chosen.

    Raises UsageError if the target is unknown.
    """

    source: ClassVar[str] = "xVal, Figure 4"
    part: str = setting("number", choices=PartShares._fields)
    target: str = ""
    digits: int = setting(3, at_least=1, at_most=17)
    top: int = setting(20, at_least=1, at_most=200)

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(artifact) for artifact in artifacts]
        titles = report_labels(evaluations, "data")
        panels = []
        for title, evaluation in zip(titles, evaluations, strict=True):
            answers = ReportPredictions.of_numbers(evaluation).of_target(self.target).answers
            truths, predictions = decimal_parts(answers, self.digits)
            valid = [parts for parts in predictions if parts is not None]
            true, predicted = (
                getattr(PartShares.of(parts), self.part) for parts in (truths, valid)
            )
            panels.append(panel_of(title, self.part, true, predicted, self.top))
        return Picture(panels, [])


def panel_of(
    title: str, part: str, true: Mapping[str, float], predicted: Mapping[str, float], top: int
) -> Panel:
    """Return a panel of the ``top`` values with the largest true or predicted frequencies.

    The most frequent value comes first. If ``part`` is ``exponent``, values are in ascending order
    instead, so that panels are comparable.

    >>> panel = panel_of("p1000", "exponent", {"E-2": 0.9, "E-3": 0.1}, {"E-2": 1.0}, 5)
    >>> panel.y.names, [mark.lengths.tolist() for mark in panel.marks]
    (('E-3', 'E-2'), [[0.1, 0.9], [0.0, 1.0]])
    """
    largest = {
        value: max(true.get(value, 0.0), predicted.get(value, 0.0)) for value in {*true, *predicted}
    }
    shown = sorted(largest, key=lambda value: (-largest[value], value))[:top]
    if part == "exponent":
        shown.sort(key=lambda value: int(value[1:] or 0))  # the exponent of zero is empty
    marks = []
    for side, (label, shares) in enumerate((("true value", true), ("prediction", predicted))):
        aside = (2 * side - 1) * _APART
        rows = [
            (row + aside, shares.get(value, 0.0), None, None) for row, value in enumerate(shown)
        ]
        marks.append(BarMarks.of(label, rows, side))
    x_axis, y_axis = Axis(label="fraction of all numbers"), Axis(label=part, names=tuple(shown))
    return Panel(title=title, x=x_axis, y=y_axis, marks=marks)
