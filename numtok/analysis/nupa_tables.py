"""NUPA tables: mean scores of answers by number of digits, by task, and by range of digits (small,
medium, large and extra large, as in the NUPA paper).

The papers on NUPA do not specify which mean their tables show, so there are three: over all answers
(``micro``), over the task means, and over the stratum means. A stratum contains the answers to one
task with one digit key (number of digits).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

import msgspec
import numpy as np

from numtok.arrays import Bools, Floats, Ints
from numtok.data.nupa.keys import KEYS, Key
from numtok.metrics.base import Z, ends
from numtok.reports import Figure

#: Field of ``nupa.answers.Score`` for each measure.
MEASURES = {
    "exact match": "exact",
    "the same number": "equal",
    "digit match": "digit_match",
    "d-length": "d_length",
    "d-length by parts": "d_length_parts",
    "answered": "valid",
}
_EXACT, _DIGITS, _LENGTH = (list(MEASURES).index(measure) for measure in (
    "exact match", "digit match", "d-length",
))  # fmt: skip
_LENGTHS = ("d-length", "d-length by parts")  # the others are fractions
_FAR = 100  # digits of the longest numbers in tasks of long numbers
#: Ranges of digit keys, for tasks up to 20 digits (21 counts as none) and up to 100.
_RANGES = {
    "S": ((1, 4), (1, 10)),
    "M": ((5, 8), (11, 20)),
    "L": ((9, 14), (21, 60)),
    "XL": ((15, 20), (61, 100)),
}


@dataclass(frozen=True)
class Scored:
    """Scores of ``n`` answers.

    tasks, digits
        Task key of each answer, and its digit key (number of digits).
    scores
        float64[n, len(MEASURES)], in the order of :data:`MEASURES`.
    """

    tasks: Sequence[str]
    digits: Ints
    scores: Floats


class Means(msgspec.Struct, frozen=True):
    """Three means of one measure: over all answers, over the task means, and over the stratum
    means. A stratum contains the answers to one task with one digit key (number of digits).

    Each mean has a 95% interval, based on the variance of the answers within each stratum.
    """

    measure: str
    micro: Figure
    of_tasks: Figure
    of_strata: Figure


class AnswerGroup(msgspec.Struct, frozen=True):
    """Mean of each measure over one group of answers.

    The answers have the same digit key, belong to the same group of tasks, or form a stratum.
    """

    name: str
    n: int
    means: dict[str, float]


class TaskScores(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of one task.

    exact
        Exact match over all answers.
    ranges
        Exact match in each range of digits (S, M, L and XL); None for a range without answers.
    inside, outside
        Exact match in S and M together, and in L and XL together.
    well_learned
        Largest digit key with exact match and digit match of at least 0.9 and d-length of at most
        0.1, or None.
    has_performance
        Largest digit key with exact match of at least 0.1, digit match of at least 0.5 and d-length
        of at most 1, or None.
    """

    name: str
    n: int
    exact: float
    ranges: dict[str, float | None]
    inside: float | None
    outside: float | None
    well_learned: int | None
    has_performance: int | None


class Tables(msgspec.Struct, frozen=True, kw_only=True):
    """All NUPA tables for a set of answers.

    ``digits``, ``operations`` and ``strata`` contain one entry per group of answers.
    """

    means: list[Means]
    digits: list[AnswerGroup]
    operations: list[AnswerGroup]
    tasks: list[TaskScores]
    strata: list[AnswerGroup]


def tables(scored: Scored) -> Tables:
    """Return the NUPA tables for one or more answers."""
    names = np.array(scored.tasks, object)
    strata: dict[tuple[str, int], Ints] = {}
    for name in sorted(set(scored.tasks)):
        rows = np.flatnonzero(names == name)
        digits = scored.digits[rows]
        for digit in np.unique(digits).tolist():
            strata[name, digit] = rows[digits == digit]
    operations = np.array([KEYS[name].operation for name in scored.tasks], object)
    return Tables(
        means=list(_means(scored, strata)),
        digits=[
            _part(str(d), scored, scored.digits == d) for d in np.unique(scored.digits).tolist()
        ],
        operations=[_part(name, scored, operations == name) for name in sorted(set(operations))],
        tasks=[_task(KEYS[name], scored, strata) for name in sorted(set(scored.tasks))],
        strata=[_part(f"{name} {digit}", scored, rows) for (name, digit), rows in strata.items()],
    )


def _part(name: str, scored: Scored, rows: Bools | Ints) -> AnswerGroup:
    scores = scored.scores[rows]
    return AnswerGroup(
        name, len(scores), dict(zip(MEASURES, scores.mean(axis=0).tolist(), strict=True))
    )


def _means(scored: Scored, strata: Mapping[tuple[str, int], Ints]) -> Iterator[Means]:
    """Yield the means of each measure; each mean is a weighted mean over strata."""
    sizes = np.array([len(rows) for rows in strata.values()], np.float64)
    tasks = np.unique([name for name, _ in strata], return_inverse=True)[1]
    weights = (sizes, sizes / np.bincount(tasks, sizes)[tasks], np.ones(len(sizes)))
    groups = [scored.scores[rows] for rows in strata.values()]
    means = np.array([group.mean(axis=0) for group in groups])
    errors = _variances(groups) / sizes[:, None]
    count = int(sizes.sum())
    for column, measure in enumerate(MEASURES):
        figures = []
        for weight in weights:
            total = fsum(weight)  # so that the mean of ones is one
            value = fsum(weight * means[:, column]) / total
            error = fsum(weight**2 * errors[:, column]) / total**2
            if measure in _LENGTHS:
                off = Z * sqrt(error)
                low, high = max(0.0, value - off), value + off
            else:  # if all answers agree there is no variance, but the fraction is uncertain
                varies = error > 0 and 0 < value < 1
                n = value * (1 - value) / error if varies else total**2 / fsum(weight**2 / sizes)
                low, high = ends(value, n)
            figures.append(Figure(value, low, high, count))
        yield Means(measure, *figures)


def _variances(groups: Sequence[Floats]) -> Floats:
    """Return the variance of each measure within each stratum, [strata, measures].

    Strata with one answer share the variance of all such strata, or of all answers if there is only
    one.
    """
    alone = [group for group in groups if len(group) == 1]
    pooled = np.concatenate(alone if len(alone) > 1 else groups)
    together = pooled.var(axis=0, ddof=min(1, len(pooled) - 1))
    return np.array([group.var(axis=0, ddof=1) if len(group) > 1 else together for group in groups])


def _task(key: Key, scored: Scored, strata: Mapping[tuple[str, int], Ints]) -> TaskScores:
    own = {digit: rows for (name, digit), rows in strata.items() if name == key.name}
    is_far = key.tested[1] >= _FAR

    def exact(*ranges: str) -> float | None:
        ends = [_RANGES[name][is_far] for name in ranges]
        inside = [
            rows for digit, rows in own.items() if any(low <= digit <= high for low, high in ends)
        ]
        if not inside:
            return None
        return float(scored.scores[np.concatenate(inside), _EXACT].mean())

    every = np.concatenate(list(own.values()))
    return TaskScores(
        name=key.name,
        n=len(every),
        exact=float(scored.scores[every, _EXACT].mean()),
        ranges={name: exact(name) for name in _RANGES},
        inside=exact("S", "M"),
        outside=exact("L", "XL"),
        well_learned=_largest(scored, own, 0.9, 0.9, 0.1),
        has_performance=_largest(scored, own, 0.1, 0.5, 1),
    )


def _largest(
    scored: Scored, own: Mapping[int, Ints], exact: float, matched: float, length: float
) -> int | None:
    """Return the largest digit key whose means meet all three bounds, even if smaller keys do
    not."""
    reached = [
        digit
        for digit, rows in own.items()
        if (means := scored.scores[rows].mean(axis=0))[_EXACT] >= exact
        and means[_DIGITS] >= matched
        and means[_LENGTH] <= length
    ]
    return max(reached, default=None)
