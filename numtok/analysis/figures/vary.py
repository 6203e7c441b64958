"""vary: predictions as a number varies, with training values and the most probable numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.analysis.figures._probed import column, read_probes
from numtok.analysis.figures._reports import colours_of
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import Axis, Band, Levels, LineMark, Mark, Panel, Picture, Points, some
from numtok.analysis.probing.probe_records import PROBE, Along, LoadedProbe
from numtok.arrays import Floats
from numtok.store.artifact import Artifact, Resolve

_MOST = 5000  # dots of a model
_MOST_LEVELS = 40  # training values; more lines would merge into a gray area
_LEAST_LOG = -12.0  # nats


@dataclass(frozen=True)
class SweepFigure(FigureKind):
    """Predictions of all models, plotted against the true value (dots) or against an input number
    that varies (lines).

    Lines have a band from the 5% to the 95% quantile, if the probe has quantiles. Target values in
    the train split are dashed lines. If a probe tracked the probabilities of numbers, another panel
    shows them.

    Raises UsageError if a probe is not of the kind ``examples`` or ``vary``.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({PROBE})
    source: ClassVar[str] = "xVal, Figures 5 and 6"

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        probes = read_probes("vary", Along, artifacts)
        groups: dict[str, list[tuple[str, LoadedProbe, Along]]] = {}
        for label, probed, summary in probes:
            groups.setdefault(title_of(summary), []).append((label, probed, summary))
        colours = colours_of(label for label, *_ in probes)
        panels, notes = [], []
        for title, group in groups.items():
            panel, panel_notes = predictions(title, group, colours)
            panels.append(panel)
            notes += panel_notes
            panels += [
                probabilities(f"{title}: {label}", probed, summary)
                for label, probed, summary in group
                if summary.top
            ]
        if any(panel.y.low == _LEAST_LOG for panel in panels):
            notes.append(f"Log-probabilities below {_LEAST_LOG:g} nats are not drawn.")
        return Picture(panels, list(dict.fromkeys(notes)))


def title_of(summary: Along) -> str:
    """Return a panel title that does not depend on the model or its encoding."""
    if summary.number is None:
        return f"{summary.target}, {summary.split}"
    return f"{summary.target}, {summary.split}, row {summary.row}"


def predictions(
    title: str, group: Sequence[tuple[str, LoadedProbe, Along]], colours: dict[str, int]
) -> tuple[Panel, list[str]]:
    """Return a panel of the predictions of all probes in ``group``, and notes on it."""
    marks: list[Mark] = []
    notes = []
    over_truth = group[0][2].number is None
    trained = _seen(group)
    if 0 < len(trained) <= _MOST_LEVELS:
        marks.append(Levels("in the train split", trained, "y"))
    elif len(trained):
        notes.append(f"{title}: the {len(trained):,} values in the train split are not drawn.")
    for label, probed, summary in group:
        x, y = column(probed, "x"), column(probed, "prediction")
        if lacking := int(np.isnan(y).sum()):
            notes.append(f"{label}: {lacking:,} of {summary.rows:,} predictions are invalid.")
        if over_truth:
            rows = some(len(x), _MOST)
            rows = rows[~np.isnan(y[rows])]
            marks.append(Points(label=label, x=x[rows], y=y[rows], colour=colours[label]))
            continue
        low, high = column(probed, "q05"), column(probed, "q95")
        if not np.isnan(low).all():
            marks.append(Band(label=label, x=x, low=low, high=high, colour=colours[label]))
            notes.append("Bands: from the 5% to the 95% quantile.")
        marks.append(LineMark(label=label, x=x, y=y, colour=colours[label]))
    target = group[0][2].target
    diagonal = "prediction = true value" if over_truth else None
    panel = Panel(
        title=title,
        x=_x_axis(group[0][2]),
        y=Axis(label=f"prediction of {target}"),
        marks=marks,
        diagonal=diagonal,
    )
    return panel, notes


def probabilities(title: str, probed: LoadedProbe, summary: Along) -> Panel:
    """Return a panel with the log-probability of each number that the probe tracked."""
    x = column(probed, "x")
    marks: list[Mark] = []
    trained = _seen([("", probed, summary)])
    if summary.number is None and 0 < len(trained) <= _MOST_LEVELS:
        marks.append(Levels("in the train split", trained, "x"))
    for k, top in enumerate(summary.top):
        y = np.maximum(column(probed, f"log_p_{k}"), _LEAST_LOG)
        y = np.where(y > _LEAST_LOG, y, np.nan)
        label = f"P({top.literal})"
        marks.append(
            Points(label=label, x=x, y=y, colour=k)
            if summary.number is None
            else LineMark(label=label, x=x, y=y, colour=k)
        )
    y_axis = Axis(label="log-probability (nats)", low=_LEAST_LOG, high=0.5)
    return Panel(title=title, x=_x_axis(summary), y=y_axis, marks=marks)


def _x_axis(summary: Along) -> Axis:
    if summary.number is None:
        return Axis(label=f"true value of {summary.target}")
    return Axis(label=f"number {summary.number} of the row")


def _seen(group: Sequence[tuple[str, LoadedProbe, Along]]) -> Floats:
    """Return all training values of these probes."""
    columns = [
        np.asarray(probed.seen.column("value").to_numpy(), np.float64)
        for _, probed, _ in group
        if probed.seen is not None
    ]
    return np.unique(np.concatenate(columns)) if columns else np.zeros(0)
