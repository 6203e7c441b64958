"""density: what a model draws for the target over the one feature, beside the truth."""

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

_ROOM = 0.1  # of the range of the truth, above and below


@dataclass(frozen=True)
class Density(FigureKind):
    """The rows of a split, and for each model one number drawn for each of these rows, from its
    predictive distribution as it is (no temperature, no cut): clouds of one size to compare.

    Takes one or several models of tables, and the table. Reports hold quantiles, not draws, so
    the models are asked.

    split
        Whose rows.
    scale
        Of the target: linear, log or signed-log.

    Raises UsageError for a table without just one number feature, DataError for a table that the
    models were not fitted to.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({MODEL, TABLE})
    source: ClassVar[str] = "Decoding-based Regression, Figures 7 and 13"
    split: str = "test"
    rows: int = setting(2000, "At most so many of them.", at_least=1)
    scale: str = setting("linear", choices=SCALES)

    def picture(self, artifacts: Sequence[Artifact], resolve: Resolve) -> Picture:
        models = [one for one in artifacts if one.kind == MODEL]
        tables = [one for one in artifacts if one.kind == TABLE]
        if len(tables) != 1 or not models:
            raise UsageError(
                f"figure density needs one table and at least one model of it, got {len(tables)} "
                f"and {len(models)}; name the models first, then the table"
            )
        # PyTorch is behind these.
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
                    f"figure density needs models of tables, and {model.ref} is one of texts"
                )
            loaded = read_regressor(model, device_of("cpu"), file)
            if (loaded.file.settings.target, loaded.file.settings.features) != (
                table.file.target,
                table.file.features,
            ):
                raise DataError(
                    f"{model.ref} was not fitted to the columns of {source.ref}; give a table "
                    "with the same ones"
                )
            fold, one = next(iter(loaded.fitted.items()))
            folds.append(fold)
            if fold != folds[0]:
                raise UsageError(
                    f"{model.ref} was fitted to fold {fold}, {models[0].ref} to {folds[0]}: their "
                    "rows are not the same; give models of one fold"
                )
            fitted.append(one)
            heads.append(loaded.file.trained.options.scheme)
            told = {key: str(value) for key, value in loaded.file.trained.configuration.items()}
            settings.append(told | {"seed": str(loaded.file.trained.seed), "model": model.ref})
        rows = table.split(self.split, folds[0])
        rows = rows[some(len(rows), self.rows)]
        columns = Features(table.numbers, table.categories).take(rows)
        draws = [
            one.predictive(columns).sample(1, np.random.default_rng(0))[:, 0] for one in fitted
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
    """A panel of the truth, with that title, and one of each model's draws.

    axes
        That of the feature, and the name of the target.
    truth
        float64[n] each: the feature and the target.
    draws
        float64[n] by label: what is drawn for each of these rows. Those outside the frame, which is
        that of the truth, are counted below.
    """
    x, y = truth
    y_axis = axis_of(axes[1], scale, y, _ROOM)
    x_axis = axis_of(axes[0].label, "linear", x[np.isfinite(x)], 0.03)
    assert y_axis.low is not None and y_axis.high is not None
    panels = [Panel(title=title, x=x_axis, y=y_axis, marks=[Points(label="truth", x=x, y=y)])]
    outside = {}
    for label, drawn in draws.items():
        inside = (drawn >= y_axis.low) & (drawn <= y_axis.high)
        outside[label] = int((~inside).sum())
        marks = [Points(label="one draw for each row", x=x[inside], y=drawn[inside], colour=0)]
        panels.append(Panel(title=label, x=x_axis, y=y_axis, marks=marks))
    notes = [
        f"{label}: {count:,} of {len(x):,} draws lie outside the frame."
        for label, count in outside.items()
        if count
    ]
    return Picture(panels, notes)
