"""density: true values, and samples from models, plotted against a table's only feature."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.analysis.figures._reports import labels_of, one_feature
from numtok.analysis.figures.base import FigureKind
from numtok.analysis.picture import SCALES, Axis, Panel, Picture, Points, axis_of, some
from numtok.arrays import Floats
from numtok.data.tables.table import read_table_of
from numtok.declaration import setting
from numtok.errors import DataError, UsageError
from numtok.store.artifact import MODEL, TABLE, Artifact, Resolve

_ROOM = 0.1  # margin, as a fraction of the range of the true values


@dataclass(frozen=True)
class Density(FigureKind):
    """True values, and samples from table models, plotted against the table's only feature.

    One panel shows the rows of a split. For each model, another panel shows one sample per row from
    its predictive distribution (without temperature or truncation), so all panels have the same
    number of points. The artifacts are one or more table models and their table. The models are
    run, because reports store quantiles but no samples.

    split
        Split of the table.
    scale
        Scale of the target: linear, log or signed-log.

    Raises UsageError unless the table has a single feature and that feature is numeric, and
    DataError if a model was not trained on this table.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({MODEL, TABLE})
    source: ClassVar[str] = "Decoding-based Regression, Figures 7 and 13"
    split: str = "test"
    rows: int = setting(2000, "Largest number of rows.", at_least=1)
    scale: str = setting("linear", choices=SCALES)

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        models = [artifact for artifact in artifacts if artifact.kind == MODEL]
        tables = [artifact for artifact in artifacts if artifact.kind == TABLE]
        if len(tables) != 1 or not models:
            raise UsageError(
                f"figure density needs one table and at least one model of it (got {len(tables)} "
                f"and {len(models)}). Name the models first, then the table"
            )
        # These import PyTorch.
        from numtok.training.device import device_of
        from numtok.training.features import Features
        from numtok.training.model_files import read_regressor
        from numtok.training.model_json import TableModelFile, read_model_file

        source, table = tables[0], read_table_of(tables[0])
        feature = one_feature(source.ref, table.file)
        folds, fitted, heads, settings = [], [], [], []
        for model in models:
            file = read_model_file(model)
            if not isinstance(file, TableModelFile):
                raise UsageError(
                    f"figure density needs table models, but {model.ref} is a text model"
                )
            loaded = read_regressor(model, device_of("cpu"), file)
            if (loaded.file.settings.target, loaded.file.settings.features) != (
                table.file.target,
                table.file.features,
            ):
                raise DataError(
                    f"{model.ref} was trained on other columns than those of {source.ref}. Pass a "
                    "table with the same columns"
                )
            fold, regressor = next(iter(loaded.fitted.items()))
            folds.append(fold)
            if fold != folds[0]:
                raise UsageError(
                    f"{model.ref} was trained on fold {fold}, but {models[0].ref} on fold "
                    f"{folds[0]}. Pass models of one fold"
                )
            fitted.append(regressor)
            heads.append(loaded.file.trained.options.scheme)
            trained = loaded.file.trained
            own = {key: str(value) for key, value in trained.configuration.items()}
            settings.append(own | {"seed": str(trained.seed), "model": model.ref})
        rows = table.split(self.split, folds[0])
        rows = rows[some(len(rows), self.rows)]
        columns = Features(table.numbers, table.categories).take(rows)
        draws = [
            regressor.predictive(columns).sample(1, np.random.default_rng(0))[:, 0]
            for regressor in fitted
        ]
        return picture_of(
            (Axis(label=feature), table.file.target),
            (columns.numbers[:, 0], table.target[rows]),
            dict(zip(labels_of(heads, settings), draws, strict=True)),
            self.scale,
            f"{source.name} ({self.split})",
        )


def picture_of(
    axes: tuple[Axis, str],
    truth: tuple[Floats, Floats],
    draws: dict[str, Floats],
    scale: str,
    title: str,
) -> Picture:
    """Return a picture with a panel of the true values, titled ``title``, and a panel of samples
    per model.

    axes
        Axis of the feature, and name of the target.
    truth
        Feature and target of each row, float64[n] each.
    draws
        One sample per row, float64[n], keyed by model label. The axes fit the true values; samples
        outside the axes are not drawn but counted in the notes.
    """
    x, y = truth
    y_axis = axis_of(axes[1], scale, y, _ROOM)
    x_axis = axis_of(axes[0].label, "linear", x[np.isfinite(x)], 0.03)
    assert y_axis.low is not None and y_axis.high is not None
    panels = [Panel(title=title, x=x_axis, y=y_axis, marks=[Points(label="true value", x=x, y=y)])]
    outside = {}
    for label, drawn in draws.items():
        inside = (drawn >= y_axis.low) & (drawn <= y_axis.high)
        outside[label] = int((~inside).sum())
        marks = [Points(label="one sample per row", x=x[inside], y=drawn[inside], colour=0)]
        panels.append(Panel(title=label, x=x_axis, y=y_axis, marks=marks))
    notes = [
        f"{label}: {count:,} of {len(x):,} samples are outside the frame."
        for label, count in outside.items()
        if count
    ]
    return Picture(panels, notes)
