"""Features for fits that need no model: the other numbers of each target's row, by field.

A feature is a field (``slots.number_fields``). A row that lacks its number has NaN there, as it has
where the number is infinite. Where rows have several targets of one name, the features are instead
the numbers between the target and the one before it.
"""

from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats, Ints, ranges
from numtok.encoding.dataset import EncodedSplit
from numtok.seeds import generator

_FITTED_ON = 200_000  # rows or targets of one name in the train split, at most
_MOST_FEATURES = 256
_RAREST = 0.01  # fraction of the training rows that must have a field
_MOST_BEFORE = 16  # numbers before a target


class FieldedSplit(NamedTuple):
    """A split, and the field of each of its numbers, int64[m]; -1 in rows that are never used."""

    samples: EncodedSplit
    fields: Ints


class TargetFeatures(NamedTuple):
    """Features x, float64[m, k] with NaN for a missing number, and values y, float64[m], of the
    training targets of one name; ``others`` are the features, float64[n, k], of each further set of
    targets."""

    x: Floats
    y: Floats
    others: tuple[Floats, ...]


class NotFitted(NamedTuple):
    """Why nothing can be fitted to the targets of one name."""

    reason: str


Targets = tuple[FieldedSplit, Ints]  # some targets of a split, by their indices


def target_features(train: FieldedSplit, name: str, *others: Targets) -> TargetFeatures | NotFitted:
    """Build the features of the training targets called ``name``, and of ``others``."""
    learned = train, fitted_targets(train.samples, name)
    y = train.samples.numbers[train.samples.targets[learned[1]]]
    usable = np.isfinite(y)
    built = _features(learned, *others)
    if isinstance(built, NotFitted):
        return built
    x, *rest = built
    known = np.isfinite(x[usable]).any(axis=0)
    x, rest = x[usable][:, known], [features[:, known] for features in rest]
    needed = x.shape[1] + int(np.isnan(x).any(axis=0).sum())
    if not needed:
        return NotFitted("its training rows contain no other number")
    if len(x) <= needed:
        return NotFitted(f"{len(x):,} training rows are too few for {needed:,} features")
    return TargetFeatures(x, y[usable], tuple(rest))


def fitted_targets(train: EncodedSplit, name: str) -> Ints:
    """Indices int64[m] of the training targets called ``name`` that fits use."""
    return fitted_on(np.flatnonzero(train.target_name.to_numpy(zero_copy_only=False) == name), name)


def fitted_rows(train: EncodedSplit) -> Ints:
    """Rising indices int64[k] of the training rows that fits use."""
    targets = [fitted_targets(train, name) for name in train.target_name.unique().to_pylist()]
    return np.unique(train.target_row[np.concatenate([np.empty(0, np.int64), *targets])])


def fitted_on(rows: Ints, of: str | int) -> Ints:
    """Sample the rows or targets that a fit uses, [k]: all, or 200,000 from everywhere, since rows
    may be sorted by value. ``of``: the target or the fold."""
    if len(rows) <= _FITTED_ON:
        return rows
    return np.sort(generator(0, "floors", of).permutation(rows)[:_FITTED_ON])


def _features(*sides: Targets) -> list[Floats] | NotFitted:
    """Features float64[n, k] of the targets of each side, by the fields of the first one."""
    before = 0
    if any(len(np.unique(s.samples.target_row[of])) < len(of) for s, of in sides):
        before = int(min(_gaps(s.samples, of).min(initial=_MOST_BEFORE) for s, of in sides))
    if before:
        built = [_before(s.samples, of, before) for s, of in sides]
    else:
        others = [_others(s, s.samples.target_row[of]) for s, of in sides]
        seen, counts = np.unique(others[0][1], return_counts=True)
        kept = seen[counts >= max(2.0, _RAREST * len(sides[0][1]))]
        if len(kept) > _MOST_FEATURES:
            return NotFitted(f"its rows have {len(kept):,} fields, more than {_MOST_FEATURES}")
        built = [_by_field(len(of), kept, *one) for (_, of), one in zip(sides, others, strict=True)]
    shared = set[str].intersection(*(set(s.samples.floors) for s, _ in sides))
    return [
        _finite(np.column_stack([x, *(s.samples.floors[name][of] for name in sorted(shared))]))
        for x, (s, of) in zip(built, sides, strict=True)
    ]


def _finite(features: Floats) -> Floats:
    return np.where(np.isfinite(features), features, np.nan)


def _others(split: FieldedSplit, rows: Ints) -> tuple[Ints, Ints, Floats]:
    """Index in ``rows``, field and value of each number of theirs that is not a target, [k]."""
    samples = split.samples
    begin = samples.number_rows[rows]
    counts = samples.number_rows[rows + 1] - begin
    numbers = ranges(begin, counts)
    other = np.isin(numbers, samples.targets, invert=True)
    numbers = numbers[other]
    index = np.repeat(np.arange(len(rows)), counts)[other]
    return index, split.fields[numbers], samples.numbers[numbers]


def _by_field(count: int, kept: Ints, rows: Ints, fields: Ints, values: Floats) -> Floats:
    """float64[count, k]: values of some rows by the fields ``kept``, which rise; NaN: missing."""
    features = np.full((count, len(kept)), np.nan)
    column = np.searchsorted(kept, fields)
    known = np.append(kept, -1)[column] == fields
    features[rows[known], column[known]] = values[known]
    return features


def _gaps(samples: EncodedSplit, targets: Ints) -> Ints:
    """Count the numbers between each target and the previous target of its row."""
    numbers, every = samples.targets[targets], np.unique(samples.targets)
    place = np.searchsorted(every, numbers)
    before = np.where(place > 0, every[place - 1], -1)
    first = samples.number_rows[samples.target_row[targets]]
    return np.asarray(numbers - np.maximum(before + 1, first))


def _before(samples: EncodedSplit, targets: Ints, count: int) -> Floats:
    """float64[n, count]: the numbers before each of some targets."""
    places = samples.targets[targets][:, None] - np.arange(count, 0, -1)
    return np.asarray(samples.numbers[places])
