"""What needs no model: the floors that every report carries.

quantisation
    The truth as the scheme writes it: nothing that answers in this scheme does better.
mean
    The mean of the train split.
nearest
    The value seen in training that is nearest to the truth: what one reaches who knows the
    answer but can only repeat.
linear
    Least squares on the other numbers of the row, where all rows have the same number of them.
boosted
    Gradient-boosted trees on the same, where scikit-learn is installed.
"""

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from numtok.codec import Codec
from numtok.config import threads
from numtok.nn.batches import ranges
from numtok.samples import Samples
from numtok.schemes.base import Failure
from numtok.stages._predict import Asked, asked_for

_FITTED_ON = 200_000  # rows of the train split at most
_MOST_FEATURES = 256


def floors(
    codec: Codec, samples: Samples, asked: Asked, train: Samples | None, train_mean: float | None
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Each floor that can be had, by name, with its float64[a] predictions; NaN if invalid."""
    yield "quantisation", _quantised(codec, samples, asked)
    if train_mean is not None:
        yield "mean", np.full(len(asked.numbers), train_mean)
    if train is None:
        return
    theirs = asked_for(train, one_by_one=False)
    yield "nearest", _nearest(train.numbers[theirs.numbers], samples.numbers[asked.numbers])
    # The same numbers in the same order, but as a masked model is asked for them: the floors of a
    # split do not depend on the model.
    features = _features(samples, asked_for(samples, one_by_one=False))
    learnt = _features(train, theirs)
    if features is None or learnt is None or features.shape[1] != learnt.shape[1]:
        return
    y = train.numbers[theirs.numbers]
    usable = np.flatnonzero(np.isfinite(learnt).all(axis=1) & np.isfinite(y))[:_FITTED_ON]
    if len(usable) <= features.shape[1]:
        return
    learnt, y = learnt[usable], y[usable]
    known = np.isfinite(features).all(axis=1)
    fits = {"linear": _linear} | ({"boosted": _boosted} if find_spec("sklearn") else {})
    for name, fit in fits.items():
        values = np.full(len(features), np.nan)
        if known.any():
            values[known] = fit(learnt, y, features[known])
        yield name, values


def _quantised(codec: Codec, samples: Samples, asked: Asked) -> NDArray[np.float64]:
    rows = asked.rows[asked.queries]
    starts = samples.token_rows[rows] + samples.number_start[asked.numbers]
    lengths = samples.number_length[asked.numbers]
    tokens = samples.tokens[ranges(starts, lengths)].astype(np.uint32)
    channel = None if samples.channel is None else samples.channel[asked.numbers]
    decoded = codec.decode_numbers(tokens - np.uint32(codec.number_first), lengths, channel)
    return np.where(decoded.failures == Failure.NONE, decoded.values, np.nan)


def _nearest(seen: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    known = np.unique(seen[np.isfinite(seen)])
    if not len(known):
        return np.full(len(truth), np.nan)
    above = np.clip(np.searchsorted(known, truth), 0, len(known) - 1)
    below = np.maximum(above - 1, 0)
    return np.where(truth - known[below] < known[above] - truth, known[below], known[above])


def _features(samples: Samples, asked: Asked) -> NDArray[np.float64] | None:
    """float64[a, k]: the numbers of the same row that are not asked for.

    None unless all rows have the same, small number of them.
    """
    counts = np.diff(samples.number_rows)[asked.rows]
    every = ranges(samples.number_rows[asked.rows], counts)
    query = np.repeat(np.arange(len(asked.rows)), counts)
    many = len(samples.numbers)
    known = ~np.isin(query * many + every, asked.queries * many + asked.numbers)
    left = np.bincount(query[known], minlength=len(asked.rows))
    if not len(left) or left.min() != left.max() or not 0 < left[0] <= _MOST_FEATURES:
        return None
    return samples.numbers[every[known]].reshape(len(asked.rows), -1)[asked.queries]


def _linear(
    x: NDArray[np.float64], y: NDArray[np.float64], asked: NDArray[np.float64]
) -> NDArray[np.float64]:
    size = np.abs(x).max(axis=0)  # first of all, so that no sum or square leaves float64
    size[size == 0] = 1.0
    mean, spread = (x / size).mean(axis=0), (x / size).std(axis=0)
    spread[spread == 0] = 1.0

    def columns(features: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack([np.ones(len(features)), (features / size - mean) / spread])

    weights, *_ = np.linalg.lstsq(columns(x), y, rcond=None)
    return np.asarray(columns(asked) @ weights)


def _boosted(
    x: NDArray[np.float64], y: NDArray[np.float64], asked: NDArray[np.float64]
) -> NDArray[np.float64]:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(threads()):  # it knows of no other way to be held to NUMTOK_THREADS
        model = HistGradientBoostingRegressor(random_state=0).fit(x, y)
        return np.asarray(model.predict(asked), np.float64)
