"""curve: predictions for a function of one number, plotted against that number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.analysis.figures._reports import colours_of, one_feature, report_labels, sources_of
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import (
    SCALES,
    Axis,
    Band,
    LineMark,
    Mark,
    Panel,
    Picture,
    Points,
    axis_of,
    some,
)
from numtok.arrays import Floats
from numtok.data.tables.table import read_table_of
from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.metrics.base import Predictions
from numtok.reports import QUANTILES
from numtok.store.artifact import TABLE, Artifact, Resolve

_MOST = 3000  # rows of a report
_ROOM = 0.1  # margin, as a fraction of the range of the true values


@dataclass(frozen=True)
class Curve(FigureKind):
    """True values and predictions, plotted against the only feature of a table, with one panel per
    table.

    True values are dots, and the predictions of each report are a line. A band shows the 5% to 95%
    quantiles, if the report has them.

    scale
        Scale of the target: linear, log or signed-log.

    Raises UsageError unless each report is for a table whose only feature is numeric.
    """

    source: ClassVar[str] = "Decoding-based Regression, Figure 4"
    scale: str = setting("linear", choices=SCALES)

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        evaluations = [read(artifact) for artifact in artifacts]
        labels = report_labels(evaluations, "data")
        colours = colours_of(labels)
        names = [source.name for source in sources_of(evaluations, resolve)]
        refs = [evaluation.report.data for evaluation in evaluations]
        panels = []
        for ref, title in dict(zip(refs, names, strict=True)).items():
            data = resolve(ref)
            if data.kind != TABLE:
                raise UsageError(
                    f"figure curve needs reports of tables, but {ref} is {data.kind}. Use figure "
                    "truth for both"
                )
            table = read_table_of(data)
            feature = one_feature(data.ref, table.file)
            columns = []
            for label, evaluation in zip(labels, evaluations, strict=True):
                if evaluation.report.data == ref:
                    predictions = ReportPredictions.of_numbers(evaluation)
                    rows = np.array(predictions.table.column("id").to_pylist(), np.int64)
                    columns.append((label, table.numbers[rows, 0], predictions.answers))
            axes = Axis(label=feature), table.file.target
            panels.append(panel_of(title, axes, columns, colours, self.scale))
        banded = any(isinstance(mark, Band) for panel in panels for mark in panel.marks)
        return Picture(panels, ["Bands: from the 5% to the 95% quantile."] if banded else [])


def panel_of(
    title: str,
    axes: tuple[Axis, str],
    columns: Sequence[tuple[str, Floats, Predictions]],
    colours: dict[str, int],
    scale: str,
) -> Panel:
    """Return the panel for one table.

    axes
        Axis of the feature, and name of the target.
    columns
        Label, feature float64[n] and predictions for each report. Rows in which the feature is
        missing are left out, and invalid predictions are gaps in the line.
    """
    x_axis, target = axes
    marks: list[Mark] = []
    truths: list[Floats] = []
    for label, x, answers in columns:
        rows = some(len(x), _MOST)
        rows = rows[np.isfinite(x[rows])]
        rows = rows[np.argsort(x[rows], kind="stable")]
        kept, across = answers.take(rows), x[rows]
        if not truths:
            marks.append(Points(label="true value", x=across, y=kept.truth))
        truths.append(kept.truth)
        if kept.quantiles is not None:
            low, high = (kept.quantiles[:, QUANTILES.index(level)] for level in (0.05, 0.95))
            marks.append(Band(label=label, x=across, low=low, high=high, colour=colours[label]))
        predicted = np.where(kept.valid, kept.prediction, np.nan)
        marks.append(LineMark(label=label, x=across, y=predicted, colour=colours[label]))
    y_axis = axis_of(target, scale, np.concatenate(truths), _ROOM)
    return Panel(title=title, x=x_axis, y=y_axis, marks=marks)
