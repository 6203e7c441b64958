"""Features for fitted baselines: the other numbers in each target's row, one per anchored field.

Anchored fields are explained in ``fields.anchored_fields``. A feature is NaN if the row lacks the
number or the number is infinite. If rows have several targets with the same name, the features are
instead the numbers between a target and the target before it.
"""

from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats, Ints, ranges
from numtok.encoding.dataset import EncodedSplit
from numtok.evaluation.rows import Rows, sampled

_FITTED_ON = 200_000  # maximum number of train rows, or of train targets with one name
_MOST_FEATURES = 256
_RAREST = 0.01  # fraction of the training rows that must have a field
_MOST_BEFORE = 16  # maximum number of numbers before a target that are features


class AnchoredRows(NamedTuple):
    """Selected rows, with the anchored field of each number of their split, int64[m]; -1 for
    numbers in other rows."""

    rows: Rows
    fields: Ints

    @property
    def samples(self) -> EncodedSplit:
        """The split in memory that has the rows."""
        return self.rows.samples


class TargetFeatures(NamedTuple):
    """Features and values to which a baseline is fitted, for all targets with the same name.

    x
        Features float64[m, k]; NaN for a missing number.
    y
        Values float64[m].
    others
        Features float64[n, k] of each further set of targets, such as the targets to predict.
    """

    x: Floats
    y: Floats
    others: tuple[Floats, ...]


class NotFitted(NamedTuple):
    """Reason why no baseline can be fitted for a target name."""

    reason: str


Targets = tuple[AnchoredRows, Ints]  # a split and the indices of some of its targets


def target_features(train: AnchoredRows, name: str, *more: Targets) -> TargetFeatures | NotFitted:
    """Return the features of the training targets called ``name`` and of further sets of targets.
    If nothing can be fitted to them, return the reason."""
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
    """Return the indices int64[m] of the training targets called ``name`` to which baselines are
    fitted."""
    return fitted_on(np.flatnonzero(train.target_name.to_numpy(zero_copy_only=False) == name), name)


def fitted_rows(train: EncodedSplit) -> Ints:
    """Return the ascending indices int64[k] of the training rows to which baselines are fitted."""
    targets = [fitted_targets(train, name) for name in train.target_name.unique().to_pylist()]
    return np.unique(train.target_row[np.concatenate([np.empty(0, np.int64), *targets])])


def fitted_on(rows: Ints, of: str | int, most: int | None = None) -> Ints:
    """Return the rows or targets [k] to which a baseline is fitted: all of ``rows``, or a sample of
    ``most`` (default: 200,000) if there are more.

    The sample is random, because rows may be sorted by value. ``of``, the target name or the fold,
    seeds the sample.
    """
    return sampled(rows, most or _FITTED_ON, "floors", of)


def _features(*sides: Targets) -> list[Floats] | NotFitted:
    """Return the features float64[n, k] of the targets of each side. The fields are those of the
    first side."""
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


def _others(split: AnchoredRows, rows: Ints) -> tuple[Ints, Ints, Floats]:
    """Return index in ``rows``, field and value of each number in these rows that is not a target,
    [k]."""
    samples = split.samples
    begin = samples.number_rows[rows]
    counts = samples.number_rows[rows + 1] - begin
    numbers = ranges(begin, counts)
    other = np.isin(numbers, samples.targets, invert=True)
    numbers = numbers[other]
    index = np.repeat(np.arange(len(rows)), counts)[other]
    return index, split.fields[numbers], samples.numbers[numbers]


def _by_field(count: int, kept: Ints, rows: Ints, fields: Ints, values: Floats) -> Floats:
    """Arrange values by row and field as float64[count, k], with NaN for missing values. ``kept``,
    the fields of the columns, is ascending."""
    features = np.full((count, len(kept)), np.nan)
    column = np.searchsorted(kept, fields)
    is_kept = np.append(kept, -1)[column] == fields
    features[rows[is_kept], column[is_kept]] = values[is_kept]
    return features


def _gaps(samples: EncodedSplit, targets: Ints) -> Ints:
    """Return the number of numbers between each target and the previous target of its row."""
    numbers, every = samples.targets[targets], np.unique(samples.targets)
    index = np.searchsorted(every, numbers)
    before = np.where(index > 0, every[index - 1], -1)
    first = samples.number_rows[samples.target_row[targets]]
    return np.asarray(numbers - np.maximum(before + 1, first))


def _before(samples: EncodedSplit, targets: Ints, count: int) -> Floats:
    """Return the ``count`` numbers before each target, float64[n, count]."""
    numbers = samples.targets[targets][:, None] - np.arange(count, 0, -1)
    return np.asarray(samples.numbers[numbers])
