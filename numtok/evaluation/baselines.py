"""What needs no model: the baselines that every report carries.

quantisation
    The truth as the scheme writes it: no answer that the scheme writes does better.
mean
    The mean of the train split, of each target's name.
length
    The mean of those with as many tokens: what a masked model is told by the number of masks,
    where a scheme's numbers have several lengths. Skill over it is what it knows beyond that.
place
    Of rows without targets, whose numbers are all asked for, the mean of the train split at that
    place of a row: what one says who knows which number it is, and nothing of the others.
slot
    Of numbers in slots (``slots``), the mean of the train split in the slot.
nearest
    The value of that target seen in training that is nearest to the truth: what one reaches who
    knows the answer but can only repeat.
those of the rows
    What the rows themselves bring along (``row.Row``), each by its own name; those that say
    nothing of some numbers are scored on the others.
linear
    Least squares on the other numbers of the row, by field, or, where rows have several targets of
    a name, on those between the target and the one before it; and on the baselines of the rows. A
    missing number is the median of its field, and has an indicator. One fit per target name. Not
    for rows without targets.
boosted
    Gradient-boosted trees on the same, where scikit-learn is installed; they handle missing numbers
    themselves.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools, Floats, Ints, ranges
from numtok.config import threads
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import Failure
from numtok.evaluation.predict import AUTOREGRESSIVE
from numtok.evaluation.queries import Queries, target_names
from numtok.evaluation.seen_values import nearest
from numtok.evaluation.target_features import (
    FieldedSplit,
    NotFitted,
    TargetFeatures,
    target_features,
)

#: Features [m, k] and values [m] to learn from, features [n, k] to predict from: values [n]. A
#: missing feature is NaN.
Fit = Callable[[Floats, Floats, Floats], Floats]
_FITS = "Baselines 'linear' and 'boosted'"
_MOST_BOOSTED = 16
_SEVERAL_THREADS = 1 << 20  # numbers to learn from, from which on they pay
_boosted: dict[bytes, Floats] = {}  # predictions, by what they were made of


def baselines(
    codec: Codec,
    samples: EncodedSplit,
    asked: Queries,
    *,
    train: EncodedSplit | None,
    train_mean: float | None,
    fill: str,
    slot_means: Floats | None = None,
) -> Iterator[tuple[str, Floats]]:
    """Each baseline that needs no fit, by name, with its float64[a] predictions; NaN if invalid.

    ``fill`` as in ``predict.Options``; ``slot_means``, float64[a], as in ``slots.NumberSlots``.
    """
    yield "quantisation", _quantised(codec, samples, asked)
    names = target_names(samples, asked)
    means = {} if train is None else target_means(train)
    if train_mean is not None:
        yield "mean", np.array([means.get(name, train_mean) for name in names], np.float64)
    for baseline, predicted in sorted(samples.floors.items()):
        yield baseline, np.append(predicted, np.nan)[asked.targets]  # -1, no target, is the last
    if train is None:
        return
    if codec.scheme.tokens_per_number is None and fill != AUTOREGRESSIVE:
        yield "length", _by_length(train, names, samples.number_length[asked.numbers])
    if (asked.targets < 0).all():
        yield "place", _by_place(train, samples, asked)
    if slot_means is not None:
        yield "slot", slot_means
    yield "nearest", nearest(train, names, samples.numbers[asked.numbers])


def fitted_baselines(
    train: FieldedSplit, samples: FieldedSplit, asked: Queries
) -> Iterator[tuple[str, Floats]]:
    """Each fit of :func:`fits`, by name, with its float64[a] predictions; NaN for the targets that
    :func:`not_fitted` reports."""
    names = target_names(samples.samples, asked)
    predictions = np.full((len(fits()), len(names)), np.nan)
    for _, mine, built in _by_target(train, samples, asked):
        if isinstance(built, TargetFeatures):
            for index, fit in enumerate(fits().values()):
                predictions[index, mine] = fit(built.x, built.y, built.others[0])
    for baseline, values in zip(fits(), predictions, strict=True):
        if not np.isnan(values).all():
            yield baseline, values


def not_fitted(train: FieldedSplit, samples: FieldedSplit, asked: Queries) -> Iterator[str]:
    """Why a baseline of :func:`fitted_baselines` is missing, one sentence each."""
    yield from not_installed()
    if _in_turn(asked):
        yield (
            f"{_FITS} are not fitted: some rows have no targets, so every number is predicted in "
            "turn."
        )
    for name, _, built in _by_target(train, samples, asked):
        if isinstance(built, NotFitted):
            yield f"{_FITS} are not fitted for target {name!r}: {built.reason}."


def not_installed() -> Iterator[str]:
    """Why a baseline is fitted to no data at all, one sentence each."""
    if "boosted" not in fits():
        yield "Baseline 'boosted' is not fitted: scikit-learn is not installed."


def _by_target(
    train: FieldedSplit, samples: FieldedSplit, asked: Queries
) -> Iterator[tuple[str, Bools, TargetFeatures | NotFitted]]:
    """Each target name, bool[a] which numbers have it, and their features; nothing for rows whose
    numbers are predicted in turn, since each number would need a fit of its own."""
    names = target_names(samples.samples, asked)
    for name in () if _in_turn(asked) else np.unique(names):
        mine = names == name
        yield name, mine, target_features(train, name, (samples, asked.targets[mine]))


def _in_turn(asked: Queries) -> bool:
    return bool((asked.targets < 0).any())


def _by_place(train: EncodedSplit, samples: EncodedSplit, asked: Queries) -> Floats:
    """The mean at each number's place of its row; NaN where no row to learn from has as many."""
    finite = np.isfinite(train.numbers)
    values, places = train.numbers[finite], _places(train)[finite]
    largest = np.abs(values).max(initial=0.0) or 1.0  # so that sums do not overflow
    with np.errstate(invalid="ignore"):
        means = np.bincount(places, values / largest) / np.bincount(places) * largest
    wanted = _places(samples)[asked.numbers]
    return np.append(means, np.nan)[np.minimum(wanted, len(means))]


def _places(samples: EncodedSplit) -> Ints:
    """int64[n]: which number of its row each one is."""
    counts = np.diff(samples.number_rows)
    return np.arange(len(samples.numbers)) - np.repeat(samples.number_rows[:-1], counts)


def _quantised(codec: Codec, samples: EncodedSplit, asked: Queries) -> Floats:
    rows = asked.rows[asked.queries]
    starts = samples.token_rows[rows] + samples.number_start[asked.numbers]
    lengths = samples.number_length[asked.numbers]
    tokens = samples.tokens[ranges(starts, lengths)].astype(np.uint32)
    channel = None if samples.channel is None else samples.channel[asked.numbers]
    decoded = codec.decode_numbers(tokens - np.uint32(codec.number_first), lengths, channel)
    return np.where(decoded.failures == Failure.NONE, decoded.values, np.nan)


def target_means(train: EncodedSplit) -> dict[str, float]:
    """The mean of the finite targets of each name; empty where all have one name."""
    names = np.array(train.target_name.to_pylist(), object)
    values = train.numbers[train.targets]
    usable = np.isfinite(values)
    found = {
        name: float(values[usable & (names == name)].mean())
        for name in sorted(set(names[usable].tolist()))
    }
    return found if len(set(names.tolist())) > 1 else {}


def _by_length(
    train: EncodedSplit, names: NDArray[np.object_], lengths: NDArray[np.int32]
) -> Floats:
    """The mean of the same target in the train split by its number of tokens, of all where it has
    none of that length; of any number where it has no such target."""
    found = np.full(len(names), np.nan)
    learnt = train.target_name.to_numpy(zero_copy_only=False)
    for name in np.unique(names):
        mine, of = names == name, train.targets[learnt == name]
        of = of if len(of) else np.arange(len(train.numbers))
        of = of[np.isfinite(train.numbers[of])]
        if not len(of):
            continue
        values, known = train.numbers[of], train.number_length[of]
        means = np.full(max(known.max(), lengths[mine].max()) + 1, values.mean())
        for length in np.unique(known):
            means[length] = values[known == length].mean()
        found[mine] = means[lengths[mine]]
    return found


def fits() -> Mapping[str, Fit]:
    """What is fitted to a train split, by name."""
    return {"linear": linear} | ({"boosted": boosted} if find_spec("sklearn") else {})


def linear(x: Floats, y: Floats, asked: Floats) -> Floats:
    """Least squares from features [m, k] and values [m]; of features [n, k], float64[n].

    A missing feature (NaN) is its training median. A feature that is missing in some of the ``m``
    rows also has an indicator; none may be missing in all of them.
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
    return np.asarray(columns(asked) @ weights)


def tree_threads(x: Floats) -> int | None:
    """Of a fit of trees to features [m, k]: one where there are few, since on two cores several
    wait for each other twenty times longer than there is to do; the trees are the same."""
    return 1 if x.size < _SEVERAL_THREADS else threads()


def boosted(x: Floats, y: Floats, asked: Floats) -> Floats:
    """As :func:`linear`, by gradient-boosted trees: float64[n]; needs scikit-learn.

    The last few fits are kept: the models of a sweep are all asked about the same rows.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    digest = hashlib.sha256(repr((x.shape, asked.shape, threads())).encode())
    for part in (x, y, asked):
        digest.update(np.ascontiguousarray(part).data)
    key = digest.digest()
    if key not in _boosted:
        with threadpool_limits(tree_threads(x)):  # it knows of no other way to be held to some
            model = HistGradientBoostingRegressor(random_state=0).fit(x, y)
            predicted = np.asarray(model.predict(asked), np.float64)
        predicted.setflags(write=False)
        if len(_boosted) == _MOST_BOOSTED:
            del _boosted[next(iter(_boosted))]  # the oldest
        _boosted[key] = predicted
    return _boosted[key]
