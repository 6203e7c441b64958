"""Resampling with replacement: weights, seeds, replicates of statistics, intervals."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.reports import Figure

#: float64[resamples, n] weights to float64[resamples].
Statistic = Callable[[Floats], Floats]

_CHUNK = 1 << 20  # weights at a time: 8 MB, and a few arrays of that size inside a statistic


def resample(n: int, sample: Ints | None, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield float64[some, n] weights, ``resamples`` in all: how often each number was drawn.

    With ``sample``, int64[n], as many samples are drawn as there are, each with all its
    numbers. The draws depend on the seed alone, not on how many are yielded at a time.
    """
    members = None if sample is None else np.unique(sample, return_inverse=True)[1]
    units = n if members is None else int(members.max()) + 1
    generator = np.random.default_rng(seed)
    step = max(1, _CHUNK // n)
    for done in range(0, resamples, step):
        rows = min(step, resamples - done)
        draws = generator.integers(0, units, (rows, units))
        draws += units * np.arange(rows)[:, None]  # each resample counts in places of its own
        every = np.bincount(draws.ravel(), minlength=rows * units)
        counts = every.reshape(rows, units).astype(np.float64)
        yield counts if members is None else np.take(counts, members, axis=1)


def replicates(
    statistics: Sequence[Statistic], n: int, sample: Ints | None, resamples: int, seed: int
) -> list[Floats]:
    """float64[resamples] of each statistic, all on the same resamples.

    Where fewer than two can be drawn from, every resample is the same and says nothing about
    spread: the arrays are empty.
    """
    few = n < 2 or (sample is not None and len(np.unique(sample)) < 2)
    if few or not statistics:
        return [np.empty(0) for _ in statistics]
    found: list[list[Floats]] = [[] for _ in statistics]
    for weights in resample(n, sample, resamples, seed):
        for values, statistic in zip(found, statistics, strict=True):
            values.append(statistic(weights))
    return [np.concatenate(values) for values in found]


def mean_over_seeds(seeds: Sequence[Statistic], stream: int | None) -> Statistic:
    """The mean of the seeds' statistics in each resample.

    With a ``stream`` of random numbers, each resample draws its seeds with replacement.
    """
    if len(seeds) == 1:
        return seeds[0]
    generator = None if stream is None else np.random.default_rng([stream])

    def statistic(weights: Floats) -> Floats:
        values = np.stack([one(weights) for one in seeds])  # [seeds, resamples]
        if generator is not None and not (weights == 1).all():  # the plain metric
            drawn = generator.integers(0, len(seeds), values.shape)
            values = np.take_along_axis(values, drawn, axis=0)
        return np.asarray(values.mean(axis=0))

    return statistic


def interval(values: Floats, level: float) -> tuple[float | None, float | None]:
    """The percentile interval of values [r]: both ends are values that occurred; None for one that
    is not finite, or where there are no values."""
    if not len(values):
        return None, None
    levels = [(1 - level) / 2, (1 + level) / 2]
    # No interpolation: between a number and infinity there is nothing.
    ends = np.quantile(values, levels, method="inverted_cdf").tolist()
    low, high = (end if np.isfinite(end) else None for end in ends)
    return low, high


Z = 1.959963984540054  # of 95%


def share(hits: int, n: int) -> Figure:
    """``hits`` of ``n`` with Wilson's 95% score interval (1927), which is right near 0 and 1 too.

    >>> found = share(0, 100)
    >>> found.value, found.low, round(found.high, 3)
    (0.0, 0.0, 0.037)
    """
    return Figure(hits / n, *ends(hits / n, n), n) if n else Figure(None, None, None, 0)


def ends(p: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return the ends of the interval of a fraction p of n. For a weighted mean, n is the effective
    sample size, which need not be an integer."""
    z = Z if level == 0.95 else NormalDist().inv_cdf((1 + level) / 2)
    z2 = z * z / n
    middle = (p + z2 / 2) / (1 + z2)
    half = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n)) / (1 + z2)
    # At the ends rounding would leave it a little off.
    return 0.0 if p == 0 else max(0.0, middle - half), 1.0 if p == 1 else min(1.0, middle + half)
