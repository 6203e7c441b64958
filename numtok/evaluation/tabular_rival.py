"""Baseline ``tabular``: boosted trees on all fields of records, including their words.

It is skrub's ``tabular_pipeline``, in which a ``TableVectorizer`` turns dates into parts,
categories into codes, and free text into components of character n-grams.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from numtok.arrays import Floats
from numtok.config import threads
from numtok.data.reading.split_rule import TRAIN
from numtok.data.records.rendering import FIELD, ROWS
from numtok.data.records.typed import with_types
from numtok.data.tables.table import VALIDATION
from numtok.evaluation.rivals import Rivals
from numtok.store.artifact import Artifact

TABULAR = "tabular"
_MOST = 20_000  # rows to which the pipeline is fitted


def tabular_rival(rows: Artifact, target: str, split: str) -> Rivals:
    """Return the predictions of the baseline for the rows of a split of rendered records.

    It is fitted to the train split, to the values and, if all are positive, to their logarithms;
    the better one on the validation split is used. If skrub is not installed, the result has only a
    note.
    """
    table = pq.read_table(rows.path / ROWS)
    splits = np.array(table["split"].to_pylist(), object)
    ids = np.array(table["id"].to_pylist(), object)[splits == split]
    keys = [(name, target, 0) for name in ids.tolist()]
    if find_spec("skrub") is None:
        note = (
            "Baseline 'tabular' is not fitted: skrub is not installed. Install: pip install skrub."
        )
        return Rivals(keys, {}, [note])
    spans = [dict(each)[target][0] for each in table["targets"].to_pylist()]
    texts = table["text"].to_pylist()
    y = np.array([float(text[a:b]) for text, (a, b) in zip(texts, spans, strict=True)])
    fields = [name for name in table.column_names if name.startswith(FIELD)]
    columns, _ = with_types(table.select(fields))
    frame = pl.from_arrow(columns)
    assert isinstance(frame, pl.DataFrame)
    train = np.flatnonzero(splits == TRAIN)[:_MOST]
    candidates = [False, True] if y[train].min() > 0 else [False]
    fitted = [_fitted(frame[train], y[train], log) for log in candidates]
    held_back = np.flatnonzero(splits == VALIDATION)
    errors = [np.abs(_predicted(*each, frame[held_back]) - y[held_back]).mean() for each in fitted]
    best = fitted[int(np.argmin(errors))]
    return Rivals(keys, {TABULAR: _predicted(*best, frame[np.flatnonzero(splits == split)])}, [])


def _fitted(frame: pl.DataFrame, y: Floats, log: bool) -> tuple[Any, bool]:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from skrub import StringEncoder, tabular_pipeline  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(threads()):
        pipeline = tabular_pipeline(HistGradientBoostingRegressor(random_state=0))
        pipeline[0].set_params(high_cardinality=StringEncoder(random_state=0))
        return pipeline.fit(frame, np.log(y) if log else y), log


def _predicted(pipeline: Any, log: bool, frame: pl.DataFrame) -> Floats:
    predicted = np.asarray(pipeline.predict(frame), np.float64)
    return np.exp(predicted) if log else predicted
