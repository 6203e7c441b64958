"""Whether predicted probabilities are kept: the PIT, and coverage by level."""

from collections.abc import Mapping

import numpy as np

from numtok.analysis.picture import Axis, Band, ColumnMarks, Levels, LineMark, Mark, Panel
from numtok.metrics.base import Predictions, ends
from numtok.reports import QUANTILES

_COLUMNS = 20  # of the histogram
_LEVELS = np.linspace(0.05, 0.95, 19)  # central intervals
_SURE = 0.95


def pit_panel(answers: Predictions, title: str = "", colour: int = 0) -> Panel | None:
    """The probability that each prediction gives to its truth or less, as a histogram: flat where
    it is calibrated. None where it is not known."""
    if answers.pit is None or not len(pit := answers.pit[~np.isnan(answers.pit)]):
        return None
    counts, edges = np.histogram(pit, _COLUMNS, (0.0, 1.0))
    shares = counts / len(pit)
    level = 1 / _COLUMNS
    low, high = ends(level, len(pit), _SURE)
    across = np.array([0.0, 1.0])
    marks: list[Mark] = [
        Band(
            label="95% of calibrated ones",
            x=across,
            low=np.full(2, low),
            high=np.full(2, high),
            colour=None,
        ),
        ColumnMarks(
            label="share of numbers", low=edges[:-1], high=edges[1:], heights=shares, colour=colour
        ),
        Levels("calibrated", np.array([level]), "y"),
    ]
    top = 1.08 * max(float(shares.max()), high)
    x_axis = Axis(label="probability predicted for the truth or less", low=0.0, high=1.0)
    return Panel(
        title=title, x=x_axis, y=Axis(label="share of numbers", low=0.0, high=top), marks=marks
    )


def coverage(answers: Predictions) -> list[tuple[float, ...]]:
    """Return the level of central intervals, the fraction of true values within, and its Wilson
    interval; nothing if neither PIT nor quantiles are known."""
    if answers.pit is not None and not np.isnan(answers.pit).all():
        pit = answers.pit[~np.isnan(answers.pit)]
        apart = np.abs(2 * pit - 1)
        inside = {level: apart <= level for level in _LEVELS.tolist()}
    elif answers.quantiles is not None:
        known = ~np.isnan(answers.quantiles).any(axis=1)
        truth, quantiles = answers.truth[known], answers.quantiles[known]
        inside = {
            level: (quantiles[:, QUANTILES.index(low)] <= truth)
            & (truth <= quantiles[:, QUANTILES.index(high)])
            for level, low, high in ((0.5, 0.25, 0.75), (0.9, 0.05, 0.95))
        }
    else:
        return []
    shares = {level: float(one.mean()) for level, one in inside.items() if len(one)}
    return [(level, one, *ends(one, len(inside[level]), _SURE)) for level, one in shares.items()]


def coverage_panel(
    labelled: Mapping[str, Predictions], colours: Mapping[str, int], title: str = ""
) -> Panel | None:
    """How many truths lie in the central interval of each level, a line for each of some
    predictions; on the diagonal where they are calibrated, below it where they are too sure."""
    marks: list[Mark] = []
    for label, answers in labelled.items():
        if found := coverage(answers):
            marks.append(LineMark.of(label, found, colours[label]))
    if not marks:
        return None
    x_axis = Axis(label="level of the interval", low=0.0, high=1.0)
    y_axis = Axis(label="share of truths within", low=0.0, high=1.0)
    return Panel(title=title, x=x_axis, y=y_axis, marks=marks, diagonal="calibrated")
