"""Baseline ``tabular``: boosted trees on all fields of records, including their words.

It is skrub's ``tabular_pipeline``, in which a ``TableVectorizer`` turns dates into parts,
categories into codes, and free text into components of character n-grams.
"""

from importlib.util import find_spec

import numpy as np

from numtok.arrays import Floats
from numtok.evaluation.baselines import tree_threads
from numtok.evaluation.record_splits import RecordSplits
from numtok.evaluation.rivals import Rivals

TABULAR = "tabular"
_MOST = 20_000  # rows to which the pipeline is fitted
_COLUMNS = 30  # that a text is turned into


def tabular_rival(data: RecordSplits) -> Rivals:
    """Return the predictions of the baseline for the queried rows.

    If skrub is not installed, the result has only a note.
    """
    if find_spec("skrub") is None:
        note = (
            "Baseline 'tabular' is not fitted: skrub is not installed. Install: pip install skrub."
        )
        return Rivals(data.keys, {}, [note])
    from sklearn.ensemble import HistGradientBoostingRegressor
    from skrub import StringEncoder, tabular_pipeline  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    train = data.train[:_MOST]

    def predict(y: Floats) -> Floats:
        pipeline = tabular_pipeline(HistGradientBoostingRegressor(random_state=0))
        pipeline[0].set_params(high_cardinality=StringEncoder(_COLUMNS, random_state=0))
        fitted = pipeline.fit(data.fields[train], y)
        return np.asarray(fitted.predict(data.fields[data.predicted]), np.float64)

    with threadpool_limits(tree_threads(len(train) * data.fields.shape[1] * _COLUMNS)):
        return data.on_better_scale(TABULAR, train, predict)
