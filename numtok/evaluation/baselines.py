"""Baselines for numbers: predictions without a model. Reports on numbers include the metrics of
these baselines.

quantization
    The true value after the scheme's rounding. No prediction in that scheme can do better.
mean, median
    Mean and median of the target's values in the train split.
length
    Mean of the train values with the same number of tokens. If a scheme's numbers vary in length, a
    masked model can infer the length from the number of masks, which is a leak. Skill beyond this
    baseline is not due to the leak.
place
    Mean of the train values at the same position in the row. This baseline is used only if no row
    has targets, that is, if every number is predicted.
field
    Mean of the train values in the same field (see ``fields``).
nearest
    The train value of the target that is closest to the true value. No model that can only repeat
    values seen in training does better.
baselines in the data
    Predictions that are part of the data (see ``row.Row``), each under its own name. If a baseline
    lacks predictions for some numbers, it is scored on the others.
linear
    Linear least squares. The features are the other numbers in the row, one feature per field, and
    the baselines in the data. If a row has several targets with the same name, the features are
    instead the numbers between a target and the target before it. A missing number is replaced by
    the median of its field, and an indicator feature marks it. There is one fit per target name.
    Nothing is fitted if some rows have no targets.
boosted
    Gradient-boosted trees on the same features, if scikit-learn is installed. They handle missing
    numbers natively.

Baselines that also read words are in ``text_baselines``.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.config import threads
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import Failure
from numtok.evaluation.predict import AUTOREGRESSIVE
from numtok.evaluation.queries import Queries, decoded, target_names
from numtok.evaluation.seen_values import nearest
from numtok.evaluation.target_features import (
    AnchoredRows,
    NotFitted,
    target_features,
)

T = TypeVar("T")
#: Function that fits features [m, k] to values [m] and predicts values [n] from features [n, k].
#: Missing features are NaN.
Fit = Callable[[Floats, Floats, Floats], Floats]
_FITS = "Baselines 'linear' and 'boosted'"
_MOST_TREES = 32  # that are remembered
_SEVERAL_THREADS = 1 << 20  # training features from which several threads are faster
_boosted: dict[bytes, Any] = {}  # trees by a digest of their inputs


def baselines(
    codec: Codec,
    samples: EncodedSplit,
    queries: Queries,
    *,
    train: EncodedSplit | None,
    train_mean: float | None,
    fill: str,
    field_means: Floats | None = None,
) -> Iterator[tuple[str, Floats]]:
    """Yield the name of each baseline that does not have to be fitted, and its predictions for the
    queried numbers, float64[a].

    Invalid predictions are NaN.

    train
        Train split; None if it is not available, in which case baselines that need it are omitted.
    train_mean
        Mean of the numbers that the model was trained to predict; None if unknown.
    fill
        Decoding order of the model, as in ``predict.Options``.
    field_means
        float64[a], train mean of each number's field (see ``fields.NumberFields``); None if fields
        are not known.
    """
    rounded = decoded(codec, samples, queries.numbers)
    yield "quantization", np.where(rounded.failures == Failure.NONE, rounded.values, np.nan)
    names = target_names(samples, queries)
    means = {} if train is None else target_means(train)
    if train_mean is not None:
        yield "mean", np.array([means.get(name, train_mean) for name in names], np.float64)
    if train is not None:
        medians = target_medians(train)
        yield "median", np.array([medians.get(name, medians[""]) for name in names], np.float64)
    for baseline, predicted in sorted(samples.floors.items()):
        yield baseline, np.append(predicted, np.nan)[queries.targets]  # -1, no target, is the last
    if train is None:
        return
    if codec.scheme.tokens_per_number is None and fill != AUTOREGRESSIVE:
        yield "length", _by_length(train, names, samples.number_length[queries.numbers])
    if (queries.targets < 0).all():
        yield "place", _by_place(train, samples, queries)
    if field_means is not None:
        yield "field", field_means
    yield "nearest", nearest(train, names, samples.numbers[queries.numbers])


class FittedBaselines(NamedTuple):
    """Predictions of baselines that were fitted to the train split.

    values
        Predictions float64[a] of each baseline for the queried numbers, keyed by the baseline's
        name; NaN for targets to which nothing is fitted.
    notes
        Sentences on missing predictions, and on training rows that are not used.
    """

    values: Mapping[str, Floats]
    notes: list[str]


def fitted_baselines(
    train: AnchoredRows, samples: AnchoredRows, queries: Queries
) -> FittedBaselines:
    """Fit each baseline in :func:`fits` to the train split, and predict the queried numbers. A
    baseline without any prediction is omitted."""
    names = target_names(samples.samples, queries)
    predictions = np.full((len(fits()), len(names)), np.nan)
    notes = list(not_installed())
    in_turn = bool((queries.targets < 0).any())
    if in_turn:  # each number would need its own fit
        notes.append(
            "Baselines 'linear', 'boosted', 'tfidf' and 'boosted-text' are not fitted: some rows "
            "have no targets, so every number is predicted in turn."
        )
    for name in () if in_turn else np.unique(names):
        has_name = names == name
        features = target_features(train, name, (samples, queries.targets[has_name]))
        if isinstance(features, NotFitted):
            notes.append(f"{_FITS} are not fitted for target {name!r}: {features.reason}.")
            continue
        for index, fit in enumerate(fits().values()):
            predictions[index, has_name] = fit(features.x, features.y, features.others[0])
    found = zip(fits(), predictions, strict=True)
    return FittedBaselines({name: each for name, each in found if not np.isnan(each).all()}, notes)


def not_installed() -> Iterator[str]:
    """Yield a note if the baseline ``boosted`` is missing because scikit-learn is not installed."""
    if "boosted" not in fits():
        yield "Baseline 'boosted' is not fitted: scikit-learn is not installed."


def _by_place(train: EncodedSplit, samples: EncodedSplit, queries: Queries) -> Floats:
    """Return the train mean at each number's position in its row; NaN beyond all train rows."""
    finite = np.isfinite(train.numbers)
    values, places = train.numbers[finite], _places(train)[finite]
    largest = np.abs(values).max(initial=0.0) or 1.0  # so that sums do not overflow
    with np.errstate(invalid="ignore"):
        means = np.bincount(places, values / largest) / np.bincount(places) * largest
    wanted = _places(samples)[queries.numbers]
    return np.append(means, np.nan)[np.minimum(wanted, len(means))]


def _places(samples: EncodedSplit) -> Ints:
    """Return int64[n]: the index of each number within its row."""
    counts = np.diff(samples.number_rows)
    return np.arange(len(samples.numbers)) - np.repeat(samples.number_rows[:-1], counts)


def target_means(train: EncodedSplit) -> dict[str, float]:
    """Return the mean of the finite values of each target, keyed by target name. The result is
    empty if all targets have the same name."""
    finite = _finite_targets(train)
    if len(finite) < 2:
        return {}
    return {name: float(values.mean()) for name, values in finite.items() if len(values)}


def target_medians(train: EncodedSplit) -> dict[str, float]:
    """Return the median of the finite values of each target, keyed by target name.

    The key "" maps to the median over all targets, or over all numbers if the split has no targets;
    it is 0 if none of these is finite.
    """
    values = train.numbers[train.targets] if len(train.targets) else train.numbers
    finite = {"": values[np.isfinite(values)], **_finite_targets(train)}
    medians = {name: float(np.median(each)) for name, each in finite.items() if len(each)}
    return {"": 0.0, **medians}


def _finite_targets(train: EncodedSplit) -> dict[str, Floats]:
    """Return the finite values of each target, keyed by target name."""
    names = np.array(train.target_name.to_pylist(), object)
    values = train.numbers[train.targets]
    finite = np.isfinite(values)
    return {name: values[finite & (names == name)] for name in sorted(set(names.tolist()))}


def _by_length(
    train: EncodedSplit, names: NDArray[np.object_], lengths: NDArray[np.int32]
) -> Floats:
    """Return the mean of the train values of the same target with the same number of tokens.

    If no value has that length, the mean is over all values of the target. If the train split lacks
    the target, all of its numbers are used instead.
    """
    predictions = np.full(len(names), np.nan)
    train_names = train.target_name.to_numpy(zero_copy_only=False)
    for name in np.unique(names):
        has_name, numbers = names == name, train.targets[train_names == name]
        numbers = numbers if len(numbers) else np.arange(len(train.numbers))
        numbers = numbers[np.isfinite(train.numbers[numbers])]
        if not len(numbers):
            continue
        values, value_lengths = train.numbers[numbers], train.number_length[numbers]
        means = np.full(max(value_lengths.max(), lengths[has_name].max()) + 1, values.mean())
        for length in np.unique(value_lengths):
            means[length] = values[value_lengths == length].mean()
        predictions[has_name] = means[lengths[has_name]]
    return predictions


def fits() -> Mapping[str, Fit]:
    """Return the available functions that fit baselines (:data:`Fit`), keyed by baseline name."""
    return {"linear": linear} | ({"boosted": boosted} if find_spec("sklearn") else {})


def linear(x: Floats, y: Floats, queries: Floats) -> Floats:
    """Fit linear least squares to features ``x`` [m, k] and values ``y`` [m], and return
    predictions float64[n] for features ``queries`` [n, k].

    A missing feature (NaN) is replaced by its training median. If a feature is missing in some of
    the ``m`` rows, an indicator feature is added. No feature may be missing in all ``m`` rows.
    """
    missing = np.isnan(x)
    medians = np.nanquantile(x, 0.5, axis=0, method="inverted_cdf")  # a value: no sum overflows
    indicators = missing.any(axis=0)
    size = np.abs(np.where(missing, medians, x)).max(axis=0)  # so that no square leaves float64
    size[size == 0] = 1.0

    def scaled(features: Floats) -> Floats:
        absent = np.isnan(features)
        return np.column_stack(
            [np.where(absent, medians, features) / size, absent[:, indicators].astype(np.float64)]
        )

    mean, spread = scaled(x).mean(axis=0), scaled(x).std(axis=0)
    spread[spread == 0] = 1.0

    def columns(features: Floats) -> Floats:
        return np.column_stack([np.ones(len(features)), (scaled(features) - mean) / spread])

    weights, *_ = np.linalg.lstsq(columns(x), y, rcond=None)
    return np.asarray(columns(queries) @ weights)


def tree_threads(features: int) -> int | None:
    """Return the number of threads for fitting trees to this many features, of all rows together;
    None for the default.

    Small fits use one thread: with two cores, synchronization took twenty times as long as the
    work. The trees do not depend on the number of threads.
    """
    return 1 if features < _SEVERAL_THREADS else threads()


def boosted(x: Floats, y: Floats, queries: Floats) -> Floats:
    """Fit gradient-boosted trees to features ``x`` [m, k] and values ``y`` [m], and return
    predictions float64[n] for features ``queries`` [n, k]. Requires scikit-learn.

    Recent trees are cached, because the models of a sweep are compared with the same ones, and
    each report predicts a second split, which calibrates intervals.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(tree_threads(x.size)):  # the estimator has no option for threads
        trees = remembered(
            _boosted,
            digest_of(x, y),
            lambda: HistGradientBoostingRegressor(random_state=0).fit(x, y),
            _MOST_TREES,
        )
        return np.asarray(trees.predict(queries), np.float64)


def digest_of(*arrays: Floats) -> bytes:
    """Return a digest of features [m, k] and values [m] that trees are fitted to, and of the number
    of threads."""
    digest = hashlib.sha256(repr(([part.shape for part in arrays], threads())).encode())
    for part in arrays:
        digest.update(np.ascontiguousarray(part).data)
    return digest.digest()


def remembered(cache: dict[bytes, T], key: bytes, compute: Callable[[], T], most: int) -> T:
    """Return the cached value for ``key``, or compute and cache it. If the cache has ``most``
    values, its oldest value is dropped."""
    if key not in cache:
        value = compute()
        if len(cache) == most:
            del cache[next(iter(cache))]
        cache[key] = value
    return cache[key]
