"""Panels for the calibration of predicted probabilities: the PIT, and coverage by level."""

from collections.abc import Mapping

import numpy as np

from numtok.analysis.picture import Axis, Band, ColumnMarks, Levels, LineMark, Mark, Panel
from numtok.metrics.base import Predictions, ends
from numtok.reports import QUANTILES

_COLUMNS = 20  # of the histogram
_LEVELS = np.linspace(0.05, 0.95, 19)  # central intervals


def pit_panel(answers: Predictions, title: str = "", colour: int = 0) -> Panel | None:
    """Return a histogram of the PIT (probability integral transform) of the predictions.

    The PIT is the predicted probability of a value at or below the true value. The histogram is
    flat if the predictions are calibrated. The result is None if no prediction has a PIT.
    """
    if answers.pit is None or not len(pit := answers.pit[~np.isnan(answers.pit)]):
        return None
    counts, edges = np.histogram(pit, _COLUMNS, (0.0, 1.0))
    shares = counts / len(pit)
    level = 1 / _COLUMNS
    low, high = ends(level, len(pit))
    across = np.array([0.0, 1.0])
    marks: list[Mark] = [
        Band(
            label="95% range if calibrated",
            x=across,
            low=np.full(2, low),
            high=np.full(2, high),
            colour=None,
        ),
        ColumnMarks(
            label="fraction of numbers",
            low=edges[:-1],
            high=edges[1:],
            heights=shares,
            colour=colour,
        ),
        Levels("calibrated", np.array([level]), "y"),
    ]
    top = 1.08 * max(float(shares.max()), high)
    x_axis = Axis(label="predicted probability of the true value or less", low=0.0, high=1.0)
    return Panel(
        title=title, x=x_axis, y=Axis(label="fraction of numbers", low=0.0, high=top), marks=marks
    )


def coverage(answers: Predictions) -> list[tuple[float, ...]]:
    """Return the coverage of the central predicted intervals at several levels.

    Each tuple contains the level, the fraction of true values inside the interval, and the ends of
    the Wilson interval for this fraction. The list is empty if predictions have neither a PIT nor
    quantiles.
    """
    if answers.pit is not None and not np.isnan(answers.pit).all():
        pit = answers.pit[~np.isnan(answers.pit)]
        apart = np.abs(2 * pit - 1)
        inside = {level: apart <= level for level in _LEVELS.tolist()}
    elif answers.quantiles is not None:
        complete = ~np.isnan(answers.quantiles).any(axis=1)
        truth, quantiles = answers.truth[complete], answers.quantiles[complete]
        inside = {
            level: (quantiles[:, QUANTILES.index(low)] <= truth)
            & (truth <= quantiles[:, QUANTILES.index(high)])
            for level, low, high in ((0.5, 0.25, 0.75), (0.9, 0.05, 0.95))
        }
    else:
        return []
    shares = {level: float(within.mean()) for level, within in inside.items() if len(within)}
    return [(level, share, *ends(share, len(inside[level]))) for level, share in shares.items()]


def coverage_panel(
    labelled: Mapping[str, Predictions], colours: Mapping[str, int], title: str = ""
) -> Panel | None:
    """Return a panel with the fraction of true values inside the predicted interval of each level.

    Each set of predictions has a line. The line is on the diagonal if the predictions are
    calibrated, and below it if they are overconfident. The result is None if no set has a PIT or
    quantiles.
    """
    marks: list[Mark] = []
    for label, answers in labelled.items():
        if levels := coverage(answers):
            marks.append(LineMark.of(label, levels, colours[label]))
    if not marks:
        return None
    x_axis = Axis(label="level of the interval", low=0.0, high=1.0)
    y_axis = Axis(label="fraction of true values within", low=0.0, high=1.0)
    return Panel(title=title, x=x_axis, y=y_axis, marks=marks, diagonal="calibrated")
