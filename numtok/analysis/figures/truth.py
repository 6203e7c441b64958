"""truth: predictions plotted against true values, with one panel per report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.analysis.figures._reports import report_labels, sources_of
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import SCALES, Mark, Panel, Picture, Points, Ticks, axis_of, some
from numtok.arrays import Floats
from numtok.data.reading.split_rule import TRAIN
from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.store.artifact import ENCODED, TABLE, Artifact, Resolve

_MOST = 5000  # dots of a panel
_MOST_TICKS = 500
_ROOM = 0.15  # margin beyond the range of the true values, in which predictions are not clipped


@dataclass(frozen=True)
class Truth(FigureKind):
    """Predictions plotted against true values, with one panel per report.

    Predictions far outside the range of the true values are drawn as diamonds at the edge. Invalid
    predictions are counted in the notes.

    target
        Target to include. Default: all targets.
    scale
        Scale of both axes: linear, log or signed-log.
    seen
        Mark the distinct numbers of the train split on the axis of the true values.

    Raises UsageError if the target or the scale is unknown, or if a logarithmic axis has values
    that are not above 0.
    """

    source: ClassVar[str] = "xVal, Figures 5 and 7"
    target: str = ""
    scale: str = setting("linear", choices=SCALES)
    seen: bool = False

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(artifact) for artifact in artifacts]
        titles = _titles(evaluations, resolve)
        panels, notes = [], []
        for title, evaluation in zip(titles, evaluations, strict=True):
            answers = ReportPredictions.of_numbers(evaluation).of_target(self.target).answers
            trained = self._seen(evaluation, resolve) if self.seen else None
            prediction = np.where(answers.valid, answers.prediction, np.nan)
            panel, own_notes = panel_of(title, answers.truth, prediction, self.scale, trained)
            panels.append(panel)
            notes += [f"{title}: {note}" if len(artifacts) > 1 else note for note in own_notes]
        return Picture(panels, notes)

    def _seen(self, evaluation: Evaluation, resolve: Resolve) -> Floats:
        """Return the distinct finite values of the targets in the train split."""
        data = resolve(evaluation.report.data, {ENCODED, TABLE})
        if data.kind == TABLE:
            from numtok.data.tables.table import read_table_of

            table = read_table_of(data)
            if len(table.assigned) > 1:
                raise UsageError(
                    f"--seen needs data with one train split, but {data.ref} has "
                    f"{len(table.assigned)} folds. Leave out --seen"
                )
            return np.unique(table.target[table.split(TRAIN)])
        from numtok.encoding.splits import read_split

        samples = read_split(data, TRAIN)
        names = np.array(samples.target_name.to_pylist(), object)
        targets = samples.targets[names == self.target] if self.target else samples.targets
        values = samples.numbers[targets] if len(samples.targets) else samples.numbers
        return np.unique(values[np.isfinite(values)])


def _titles(evaluations: Sequence[Evaluation], resolve: Resolve) -> list[str]:
    """Return the label of each report, with the name of its data if there are several."""
    labels = report_labels(evaluations, "data")
    names = [source.name for source in sources_of(evaluations, resolve)]
    if len(set(names)) == 1:
        return labels
    return [f"{label}, {name}" for label, name in zip(labels, names, strict=True)]


def panel_of(
    title: str, truth: Floats, prediction: Floats, scale: str, trained: Floats | None
) -> tuple[Panel, list[str]]:
    """Return a panel of true values float64[n] and predictions float64[n] (NaN if invalid), and
    notes on it. The values in ``trained`` are marked on the axis of the true values.

    >>> panel, notes = panel_of("p10", np.array([0.0, 1]), np.array([0.1, 50]), "linear", None)
    >>> [(mark.label, mark.x.tolist(), mark.y.tolist()) for mark in panel.marks]
    [('prediction', [0.0], [0.1]), ('beyond the axis', [1.0], [1.15])]
    """
    axis = axis_of("true value", scale, truth, _ROOM)
    assert axis.low is not None and axis.high is not None
    rows = some(len(truth), _MOST)
    notes = [] if len(rows) == len(truth) else [f"{len(rows):,} of {len(truth):,} are shown."]
    valid = ~np.isnan(prediction)
    if lacking := int((~valid).sum()):
        notes.append(f"{lacking:,} of {len(truth):,} predictions are invalid.")
    rows = rows[valid[rows]]
    x, y = truth[rows], np.clip(prediction[rows], axis.low, axis.high)
    inside = y == prediction[rows]
    marks: list[Mark] = [Points(label="prediction", x=x[inside], y=y[inside], colour=0)]
    if not inside.all():
        marks.append(
            Points(label="beyond the axis", x=x[~inside], y=y[~inside], colour=1, at_edge=True)
        )
    if trained is not None:
        shown = trained[(trained >= axis.low) & (trained <= axis.high)]
        marks.append(Ticks("in the train split", shown[some(len(shown), _MOST_TICKS)]))
    y_axis = axis_of("prediction", scale, truth, _ROOM)
    return Panel(
        title=title, x=axis, y=y_axis, marks=marks, diagonal="prediction = true value"
    ), notes
