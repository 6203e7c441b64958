"""Bootstrap: resampling with replacement, replicates of statistics, and intervals."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.reports import Figure

#: float64[resamples, n] weights to float64[resamples].
Statistic = Callable[[Floats], Floats]

_CHUNK = 1 << 20  # weights per chunk: 8 MB, plus a few arrays of that size inside a statistic


def resample(n: int, sample: Ints | None, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield bootstrap weights float64[chunk, n], ``resamples`` rows in total: the number of times
    that each number was drawn.

    If ``sample``, int64[n], is given, whole samples are drawn, each with all its numbers. The draws
    depend only on the seed, not on the chunk size.
    """
    members = None if sample is None else np.unique(sample, return_inverse=True)[1]
    units = n if members is None else int(members.max()) + 1
    generator = np.random.default_rng(seed)
    step = max(1, _CHUNK // n)
    for done in range(0, resamples, step):
        rows = min(step, resamples - done)
        draws = generator.integers(0, units, (rows, units))
        draws += units * np.arange(rows)[:, None]  # each resample gets its own range of bins
        every = np.bincount(draws.ravel(), minlength=rows * units)
        counts = every.reshape(rows, units).astype(np.float64)
        yield counts if members is None else np.take(counts, members, axis=1)


def replicates(
    statistics: Sequence[Statistic], n: int, sample: Ints | None, resamples: int, seed: int
) -> list[Floats]:
    """Return the replicates of each statistic, float64[resamples], all computed on the same
    resamples.

    If there are fewer than two numbers or samples to draw from, all resamples are equal, and the
    arrays are empty.
    """
    few = n < 2 or (sample is not None and len(np.unique(sample)) < 2)
    if few or not statistics:
        return [np.empty(0) for _ in statistics]
    collected: list[list[Floats]] = [[] for _ in statistics]
    for weights in resample(n, sample, resamples, seed):
        for values, statistic in zip(collected, statistics, strict=True):
            values.append(statistic(weights))
    return [np.concatenate(values) for values in collected]


def mean_over_seeds(seeds: Sequence[Statistic], stream: int) -> Statistic:
    """Return a statistic that averages the statistics of several seeds.

    Each resample draws the seeds with replacement. ``stream`` is the number of the random stream.
    """
    if len(seeds) == 1:
        return seeds[0]
    generator = np.random.default_rng([stream])

    def statistic(weights: Floats) -> Floats:
        values = np.stack([seed(weights) for seed in seeds])  # [seeds, resamples]
        if not (weights == 1).all():  # a resample; the plain metric takes every seed once
            drawn = generator.integers(0, len(seeds), values.shape)
            values = np.take_along_axis(values, drawn, axis=0)
        return np.asarray(values.mean(axis=0))

    return statistic


LEVEL = 0.95  # of every interval
Z = 1.959963984540054  # normal quantile of such an interval


def interval(values: Floats) -> tuple[float | None, float | None]:
    """Return the 95% percentile interval of ``values`` [r]. Both ends are elements of ``values``.

    An end is None if it is not finite. Both are None if ``values`` is empty.
    """
    if not len(values):
        return None, None
    levels = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    # No interpolation: it is undefined between a number and infinity.
    ends = np.quantile(values, levels, method="inverted_cdf").tolist()
    low, high = (end if np.isfinite(end) else None for end in ends)
    return low, high


def share(hits: int, n: int) -> Figure:
    """Return the fraction ``hits / n`` with Wilson's 95% score interval (1927), which stays valid
    near 0 and 1.

    >>> fraction = share(0, 100)
    >>> fraction.value, fraction.low, round(fraction.high, 3)
    (0.0, 0.0, 0.037)
    """
    return Figure(hits / n, *ends(hits / n, n), n) if n else Figure(None, None, None, 0)


def ends(p: float, n: float) -> tuple[float, float]:
    """Return the ends of Wilson's 95% interval for a fraction ``p`` of ``n`` samples. For a
    weighted mean, ``n`` is the effective sample size, which need not be an integer."""
    z2 = Z * Z / n
    middle = (p + z2 / 2) / (1 + z2)
    half = Z * math.sqrt(p * (1 - p) / n + z2 / (4 * n)) / (1 + z2)
    # At 0 and 1, rounding would leave the end slightly off.
    return 0.0 if p == 0 else max(0.0, middle - half), 1.0 if p == 1 else min(1.0, middle + half)
