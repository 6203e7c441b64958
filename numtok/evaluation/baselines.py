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
    What the rows themselves bring along (``records.Row``), each by its own name; those that say
    nothing of some numbers are scored on the others.
linear
    Least squares on the numbers of the row that are no target, where all rows have as many, or,
    where rows have several targets of a name, on those between the target and the one before it;
    and on those baselines of the rows that every number has. A fit for each target's name. Not for
    rows without targets.
boosted
    Gradient-boosted trees on the same, where scikit-learn is installed.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import NamedTuple

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
from numtok.seeds import generator

#: Features [m, k] and values [m] to learn from, features [n, k] to predict from: values [n].
Fit = Callable[[Floats, Floats, Floats], Floats]
_FITTED_ON = 200_000  # rows or targets of one name in the train split, at most
_MOST_FEATURES = 256
_MOST_BEFORE = 16  # numbers before a target
_MOST_BOOSTED = 16
_SEVERAL_THREADS = 1 << 20  # numbers to learn from, from which on they pay
_Targets = tuple[EncodedSplit, Ints]  # some of its targets, by their indices
_boosted: dict[bytes, Floats] = {}  # predictions, by what they were made of


def baselines(
    codec: Codec,
    samples: EncodedSplit,
    asked: Queries,
    train: EncodedSplit | None,
    train_mean: float | None,
    fill: str,
    slot_means: Floats | None = None,
) -> Iterator[tuple[str, Floats]]:
    """Each baseline that can be had, by name, with its float64[a] predictions; NaN if invalid.

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
    if (asked.targets < 0).any():
        return  # every number in turn: each would need a fit of its own
    found = np.full((len(fits()), len(names)), np.nan)
    for name in np.unique(names):
        mine = names == name
        found[:, mine] = _fitted(train, samples, name, asked.targets[mine])
    for baseline, values in zip(fits(), found, strict=True):
        if not np.isnan(values).all():
            yield baseline, values


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


def _fitted(train: EncodedSplit, samples: EncodedSplit, name: str, asked: Ints) -> Floats:
    """float64[fits, n]: what each fit to the targets of one name predicts for those ``asked``."""
    values = np.full((len(fits()), len(asked)), np.nan)
    if (found := features_beside(train, samples, name, asked)) is not None:
        for place, fit in enumerate(fits().values()):
            values[place, found.known] = fit(found.x, found.y, found.asked)
    return values


class FittingRows(NamedTuple):
    """What a fit to the targets of one name has: features and values of ``m`` targets of the train
    split, and features of ``n`` that are asked for, of those that have all.

    x, y, asked
        float64[m, k], float64[m] and float64[n, k].
    known
        bool[all asked]: which these n are.
    """

    x: Floats
    y: Floats
    asked: Floats
    known: Bools


def features_beside(
    train: EncodedSplit, samples: EncodedSplit, name: str, asked: Ints
) -> FittingRows | None:
    """What stands beside the targets of one name, and beside those ``asked`` of other rows,
    int64[n] among their targets; None where that cannot be fitted to."""
    targets = np.flatnonzero(train.target_name.to_numpy(zero_copy_only=False) == name)
    targets = fitted_on(targets, name)
    x, features = _beside((train, targets), (samples, asked))
    y = train.numbers[train.targets[targets]]
    usable = np.isfinite(x).all(axis=1) & np.isfinite(y)
    known = np.asarray(np.isfinite(features).all(axis=1))
    if not x.shape[1] or usable.sum() <= x.shape[1] or not known.any():
        return None
    return FittingRows(x[usable], y[usable], features[known], known)


def _beside(*sides: _Targets) -> tuple[Floats, Floats]:
    """float64[m, k] and [n, k]: what stands beside targets of one name, in rows to learn from and
    in others that are asked about."""
    before = 0
    if any(len(np.unique(s.target_row[of])) < len(of) for s, of in sides):
        before = int(min(_gaps(s, of).min(initial=_MOST_BEFORE) for s, of in sides))
    if before:
        found = [_before(s, of, before) for s, of in sides]
    else:
        found = [_others(s, s.target_row[of]) for s, of in sides]
        if found[0].shape[1] != found[1].shape[1]:
            found = [np.empty((len(of), 0)) for _, of in sides]
    shared = [
        name
        for name in sorted(sides[0][0].floors.keys() & sides[1][0].floors.keys())
        if all(np.isfinite(s.floors[name][of]).all() for s, of in sides)
    ]
    first, second = (
        np.column_stack([x, *(s.floors[name][of] for name in shared)])
        for x, (s, of) in zip(found, sides, strict=True)
    )
    return first, second


def _gaps(samples: EncodedSplit, targets: Ints) -> Ints:
    """How many numbers of its row stand between each of some targets and the one before it."""
    numbers, every = samples.targets[targets], np.unique(samples.targets)
    place = np.searchsorted(every, numbers)
    before = np.where(place > 0, every[place - 1], -1)
    first = samples.number_rows[samples.target_row[targets]]
    return np.asarray(numbers - np.maximum(before + 1, first))


def _before(samples: EncodedSplit, targets: Ints, count: int) -> Floats:
    """float64[n, count]: the numbers before each of some targets."""
    places = samples.targets[targets][:, None] - np.arange(count, 0, -1)
    return np.asarray(samples.numbers[places])


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


def _others(samples: EncodedSplit, rows: Ints) -> Floats:
    """float64[n, k]: the numbers of some rows that are no target; k is 0 unless all of these have
    the same, small number of them."""
    begin = samples.number_rows[rows]
    counts = samples.number_rows[rows + 1] - begin
    first, end = (np.searchsorted(samples.target_row, rows, side) for side in ("left", "right"))
    none = np.empty((len(rows), 0))
    if (counts - (end - first)).max(initial=0) > _MOST_FEATURES:
        return none
    numbers = ranges(begin, counts)
    other = np.isin(numbers, samples.targets[ranges(first, end - first)], invert=True)
    found = np.bincount(np.repeat(np.arange(len(rows)), counts), other, len(rows))
    if not len(found) or found.min() != found.max() or not 0 < found[0] <= _MOST_FEATURES:
        return none
    return samples.numbers[numbers[other]].reshape(len(rows), -1)


def fits() -> Mapping[str, Fit]:
    """What is fitted to a train split, by name."""
    return {"linear": linear} | ({"boosted": boosted} if find_spec("sklearn") else {})


def fitted_on(rows: Ints, of: str | int) -> Ints:
    """[k]: the rows, or targets, that it is fitted to, of many so many from everywhere: they may be
    in order of what they say. ``of``: the target or the fold."""
    if len(rows) <= _FITTED_ON:
        return rows
    return np.sort(generator(0, "floors", of).permutation(rows)[:_FITTED_ON])


def linear(x: Floats, y: Floats, asked: Floats) -> Floats:
    """Least squares from features [m, k] and values [m]; of features [n, k], float64[n]."""
    size = np.abs(x).max(axis=0)  # first of all, so that no sum or square leaves float64
    size[size == 0] = 1.0
    mean, spread = (x / size).mean(axis=0), (x / size).std(axis=0)
    spread[spread == 0] = 1.0

    def columns(features: Floats) -> Floats:
        return np.column_stack([np.ones(len(features)), (features / size - mean) / spread])

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
