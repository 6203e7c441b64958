"""Features of fitted baselines: the other numbers of each target's row, by anchored field.

Each anchored field (``fields.anchored_fields``) is a feature, which is NaN if a row lacks its
number or the number is infinite. If rows have several targets of the same name, the features are
instead the numbers between a target and the previous one.
"""

from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats, Ints, ranges
from numtok.encoding.dataset import EncodedSplit
from numtok.seeds import generator

_FITTED_ON = 200_000  # most train rows, or train targets of one name, that are used
_MOST_FEATURES = 256
_RAREST = 0.01  # fraction of the training rows that must have a field
_MOST_BEFORE = 16  # most numbers before a target that are features


class AnchoredSplit(NamedTuple):
    """Split with the anchored field of each of its numbers, int64[m]; -1 in unused rows."""

    samples: EncodedSplit
    fields: Ints


class TargetFeatures(NamedTuple):
    """Training features and values for targets of one name.

    x
        Features float64[m, k]; NaN for a missing number.
    y
        Values float64[m].
    others
        Features float64[n, k] of each further set of targets.
    """

    x: Floats
    y: Floats
    others: tuple[Floats, ...]


class NotFitted(NamedTuple):
    """Reason why nothing can be fitted to the targets of one name."""

    reason: str


Targets = tuple[AnchoredSplit, Ints]  # some targets of a split, by their indices


def target_features(train: AnchoredSplit, name: str, *more: Targets) -> TargetFeatures | NotFitted:
    """Build the features of the training targets called ``name``, and of ``more`` targets."""
    learned = train, fitted_targets(train.samples, name)
    y = train.samples.numbers[train.samples.targets[learned[1]]]
    usable = np.isfinite(y)
    built = _features(learned, *more)
    if isinstance(built, NotFitted):
        return built
    x, *rest = built
    has_values = np.isfinite(x[usable]).any(axis=0)
    x, rest = x[usable][:, has_values], [features[:, has_values] for features in rest]
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
    """Sample the rows or targets that a fit uses, [k]: all, or 200,000 drawn at random.

    Rows may be sorted by value, so the first ones would not do. ``of``: the target or the fold.
    """
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
        other_numbers = [_others(s, s.samples.target_row[of]) for s, of in sides]
        fields, counts = np.unique(other_numbers[0][1], return_counts=True)
        kept = fields[counts >= max(2.0, _RAREST * len(sides[0][1]))]
        if len(kept) > _MOST_FEATURES:
            return NotFitted(f"its rows have {len(kept):,} fields, more than {_MOST_FEATURES}")
        built = [
            _by_field(len(of), kept, *entries)
            for (_, of), entries in zip(sides, other_numbers, strict=True)
        ]
    shared = set[str].intersection(*(set(s.samples.floors) for s, _ in sides))
    return [
        _finite(np.column_stack([x, *(s.samples.floors[name][of] for name in sorted(shared))]))
        for x, (s, of) in zip(built, sides, strict=True)
    ]


def _finite(features: Floats) -> Floats:
    return np.where(np.isfinite(features), features, np.nan)


def _others(split: AnchoredSplit, rows: Ints) -> tuple[Ints, Ints, Floats]:
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
    """Arrange values by row and field: float64[count, k], NaN if missing; ``kept`` is ascending."""
    features = np.full((count, len(kept)), np.nan)
    column = np.searchsorted(kept, fields)
    is_kept = np.append(kept, -1)[column] == fields
    features[rows[is_kept], column[is_kept]] = values[is_kept]
    return features


def _gaps(samples: EncodedSplit, targets: Ints) -> Ints:
    """Count the numbers between each target and the previous target of its row."""
    numbers, every = samples.targets[targets], np.unique(samples.targets)
    index = np.searchsorted(every, numbers)
    before = np.where(index > 0, every[index - 1], -1)
    first = samples.number_rows[samples.target_row[targets]]
    return np.asarray(numbers - np.maximum(before + 1, first))


def _before(samples: EncodedSplit, targets: Ints, count: int) -> Floats:
    """Return the ``count`` numbers before each target, float64[n, count]."""
    numbers = samples.targets[targets][:, None] - np.arange(count, 0, -1)
    return np.asarray(samples.numbers[numbers])
