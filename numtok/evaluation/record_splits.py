"""Typed fields and targets of rendered records, for baselines that read all fields."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from numtok.arrays import Floats, Ints
from numtok.data.reading.split_rule import CALIBRATION, TRAIN
from numtok.data.records.rendering import FIELD, ROWS
from numtok.data.records.typed import with_types
from numtok.data.tables.table import VALIDATION
from numtok.evaluation.rivals import CalibrationRows, Key, Rivals
from numtok.store.artifact import Artifact


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordSplits:
    """The n records of a race.

    keys
        Key of each record in the queried split.
    fields
        Typed columns [n].
    values
        Targets float64[n].
    train, validation, calibration, queried
        Row indices int64 of the four splits. The validation split calibrates intervals if the
        split ``calibration`` is empty.
    """

    keys: list[Key]
    fields: pl.DataFrame
    values: Floats
    train: Ints
    validation: Ints
    calibration: Ints
    queried: Ints

    @property
    def predicted(self) -> Ints:
        """Indices of the rows to predict: the validation, calibration and queried splits."""
        return np.concatenate([self.validation, self.calibration, self.queried])

    def on_better_scale(
        self, name: str, train: Ints, predict: Callable[[Floats], Floats]
    ) -> Rivals:
        """Fit the baseline ``name`` to the values of the rows ``train`` and, if all are positive,
        to their logarithms. Return the predictions for the queried split, on the scale with the
        smaller mean absolute error on the validation split.

        ``predict`` takes the values to fit, and returns predictions for the rows ``predicted``.
        """
        y = self.values[train]
        candidates = [predict(y)]
        if y.min() > 0:
            candidates.append(np.exp(predict(np.log(y))))
        count = len(self.validation)
        truth = self.values[self.validation]
        errors = [np.abs(each[:count] - truth).mean() for each in candidates]
        best = candidates[int(np.argmin(errors))]
        first = len(self.predicted) - len(self.queried)
        rows = self.calibration if len(self.calibration) else self.validation
        calibration = CalibrationRows(
            best[first - len(rows) : first],
            self.values[rows],
            np.arange(len(rows)),
            float(self.values[self.train].min()),
        )
        return Rivals(self.keys, {name: best[first:]}, [], {name: calibration})


def target_values(rows: pa.Table, target: str) -> Floats:
    """Return the values of a target in rendered rows, float64[n]."""
    spans = (dict(each)[target][0] for each in rows["targets"].to_pylist())
    pairs = zip(rows["text"].to_pylist(), spans, strict=True)
    return np.array([float(text[start:end]) for text, (start, end) in pairs])


def read_record_splits(rows: Artifact, target: str, split: str) -> RecordSplits:
    """Read rendered rows, to predict the given split."""
    table = pq.read_table(rows.path / ROWS)
    splits = np.array(table["split"].to_pylist(), object)
    queried = np.flatnonzero(splits == split)
    ids = table["id"].take(queried).to_pylist()
    names = [name for name in table.column_names if name.startswith(FIELD)]
    fields = pl.from_arrow(with_types(table.select(names)).table)
    assert isinstance(fields, pl.DataFrame)
    return RecordSplits(
        keys=[(name, target, 0) for name in ids],
        fields=fields,
        values=target_values(table, target),
        train=np.flatnonzero(splits == TRAIN),
        validation=np.flatnonzero(splits == VALIDATION),
        calibration=np.flatnonzero(splits == CALIBRATION),
        queried=queried,
    )
