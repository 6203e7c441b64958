"""Baseline ``tabicl``: TabICL, a pretrained transformer for tables, on all fields of records.

It is optional. It takes part if the package tabicl is installed and a checkpoint of its regressor
is on this machine. Nothing is downloaded. It predicts on the CPU, so it is limited to small data.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from numtok.arrays import Floats
from numtok.config import threads
from numtok.errors import UsageError
from numtok.evaluation.record_splits import RecordSplits
from numtok.evaluation.rivals import Rivals

TABICL = "tabicl"
VARIABLE = "NUMTOK_TABICL"  # the environment variable that names a checkpoint
_HUB = "jingang/TabICL"  # where the package downloads its checkpoints
# At these limits two cores take about two minutes. Rows of all splits count, and columns after
# encoding.
_MOST_ROWS = 5_000
_MOST_VALUES = 50_000


def tabicl_rival(data: RecordSplits) -> Rivals:
    """Return the predictions of the baseline for the queried rows.

    The result is empty without a checkpoint (:func:`checkpoint`), and has only a note if the data
    is too large.
    """
    path = checkpoint()
    if path is None:
        return Rivals(data.keys, {}, [])
    rows = len(data.train) + len(data.predicted)
    if rows > _MOST_ROWS:
        return _too_large(data, f"{rows:,} rows", f"{_MOST_ROWS:,}")
    from sklearn.preprocessing import OrdinalEncoder
    from skrub import StringEncoder, TableVectorizer  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(threads()):
        encoder = TableVectorizer(
            low_cardinality=OrdinalEncoder(
                handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
            ),
            high_cardinality=StringEncoder(random_state=0),
        )
        x = _finite(encoder.fit_transform(data.fields[data.train]))
        if rows * x.shape[1] > _MOST_VALUES:
            size = f"{rows:,} rows of {x.shape[1]:,} encoded columns"
            return _too_large(data, size, f"{_MOST_VALUES:,} values")
        queries = _finite(encoder.transform(data.fields[data.predicted]))

        def predict(y: Floats) -> Floats:
            return _predict(path, x, y, queries)

        return data.on_better_scale(TABICL, data.train, predict)


def checkpoint() -> Path | None:
    """Return the file with TabICL's weights; None if it is missing or a package cannot be used.

    This is the file that ``NUMTOK_TABICL`` names or, if it is unset, the package's default
    checkpoint in the Hugging Face cache. Raises UsageError if ``NUMTOK_TABICL`` is set, but the
    file or a package is missing or cannot be used.
    """
    named, unusable = os.environ.get(VARIABLE), _unusable()
    if named:
        if unusable:
            raise UsageError(
                f'{VARIABLE} is set, but {unusable}. Install: pip install "numtok[tabicl]"'
            )
        if not Path(named).is_file():
            raise UsageError(f"{VARIABLE} must be the file of a checkpoint (got {named!r})")
        return Path(named)
    if unusable:
        return None
    from huggingface_hub import try_to_load_from_cache
    from tabicl import TabICLRegressor

    cached = try_to_load_from_cache(_HUB, TabICLRegressor().checkpoint_version)
    return Path(cached) if isinstance(cached, str) else None


def _unusable() -> str | None:
    """Return what is wrong with the packages, or None if they can be used."""
    for name in ("skrub", "tabicl"):
        if find_spec(name) is None:
            return f"{name} is not installed"
    try:
        from tabicl import TabICLRegressor  # noqa: F401
    except ImportError as error:  # an old version, or a dependency is missing
        return f"tabicl cannot be used ({error})"
    return None


def check_tabicl() -> None:
    """Predict a row with TabICL if it takes part, since a race only needs it at the end.

    Raises UsageError if its checkpoint is not a regressor that the installed package can load, and
    the errors of :func:`checkpoint`.
    """
    path = checkpoint()
    if path is None:
        return
    x = np.eye(8, 2)
    try:
        _predict(path, x, np.arange(8.0), x[:1])
    except Exception as error:  # a wrong file raises many kinds of errors
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise UsageError(
            f"{path} is not a checkpoint of TabICL's regressor ({reason}). "
            f"Set {VARIABLE} to another file"
        ) from error


def _predict(path: Path, x: Floats, y: Floats, queries: Floats) -> Floats:
    """Return predicted medians float64[n] for features [n, k], given rows [m, k] with values
    float64[m]."""
    from tabicl import TabICLRegressor

    mean, scale = float(y.mean()), float(y.std()) or 1.0  # tabicl would round values to float32
    most = threads()
    regressor: Any = TabICLRegressor(
        model_path=path,
        allow_auto_download=False,
        device="cpu",
        random_state=0,
        batch_size=1,  # as fast on a CPU, and needs less memory
        n_jobs=None if most is None else min(most, os.cpu_count() or 1),
    )
    fitted = regressor.fit(x, (y - mean) / scale)
    medians: Floats = np.asarray(fitted.predict(queries, output_type="median"), np.float64)
    return mean + scale * medians


def _finite(encoded: Any) -> Floats:
    """Return encoded columns as float64[n, k]. Values beyond float32 are missing."""
    x = encoded.to_numpy().astype(np.float64)
    return np.where(np.isfinite(x), x, np.nan)


def _too_large(data: RecordSplits, size: str, most: str) -> Rivals:
    note = f"Baseline {TABICL!r} is not fitted: {size} are more than its limit on a CPU, {most}."
    return Rivals(data.keys, {}, [note])
