"""One figure for several seeds: mean, deviation, Student's t interval of the mean, and t-test.

With one seed it is that report's figure and its interval over samples, which says
nothing of other seeds; :attr:`SeedStatistics.interval` tells the two apart.
"""

import math
import statistics
from collections.abc import Sequence

import msgspec
from scipy.special import stdtr, stdtrit

from numtok.reports import Figure

LEVEL = 0.95  # of every interval


class SeedStatistics(msgspec.Struct, frozen=True):
    """A figure over seeds; ``interval`` is "seeds", "bootstrap" (one seed), "share" (Wilson's, of
    a share that is 0 or 1 with every seed), or None: undefined."""

    value: float | None
    low: float | None
    high: float | None
    deviation: float | None
    interval: str | None
    seeds: int
    n: int


def seed_statistics(
    figures: Sequence[Figure],
    bounds: tuple[float, float] = (-math.inf, math.inf),
    *,
    share: bool = False,
) -> SeedStatistics:
    """The mean of one figure a seed, undefined where one of them is.

    The interval is mean +- t s / sqrt(seeds), with the 97.5% point t of
    Student's distribution for seeds - 1 degrees of freedom: of 1, 2 and 3 it is
    2 +- 4.303 * 1 / sqrt(3). It ends at the metric's ``bounds``: nothing that the
    mean can be lies beyond. Of a ``share`` that is 0 with every seed, or 1, seeds say nothing;
    there it is that of the samples, which are the same ones.
    """
    first, seeds = figures[0], len(figures)
    values = [figure.value for figure in figures if figure.value is not None]
    if len(values) < seeds:
        return SeedStatistics(None, None, None, None, None, seeds, first.n)
    low, high = first.low, first.high
    if share and low != high and set(values) in ({0.0}, {1.0}):
        deviation = None if seeds == 1 else 0.0
        return SeedStatistics(values[0], low, high, deviation, "share", seeds, first.n)
    if seeds == 1:
        kind = "bootstrap" if first.low is not None else None
        return SeedStatistics(first.value, first.low, first.high, None, kind, 1, first.n)
    if not all(map(math.isfinite, values)):
        return SeedStatistics(sum(values), None, None, None, None, seeds, first.n)
    # Exact: seeds that are alike have no deviation, and squares do not overflow.
    mean, deviation = statistics.mean(values), statistics.stdev(values)
    half = float(stdtrit(seeds - 1, (1 + LEVEL) / 2)) * deviation / math.sqrt(seeds)
    low, high = max(mean - half, bounds[0]), min(mean + half, bounds[1])
    return SeedStatistics(mean, low, high, deviation, "seeds", seeds, first.n)


def t_test(first: SeedStatistics, second: SeedStatistics) -> float | None:
    """The p of Student's t-test of two means over seeds: two-sided, unpaired, equal variances.

    t = (m1 - m2) / sqrt(s^2 (1/n1 + 1/n2)) with n1 + n2 - 2 degrees of freedom and the pooled
    variance s^2. Of seeds 1, 2, 3 and 2, 3, 4 it is -1.22, so p is 0.288. None where one of the
    two has one seed or no figure, or no seed differs from another.
    """
    one, other = first.deviation, second.deviation
    if first.value is None or second.value is None or one is None or other is None:
        return None
    freedom = first.seeds + second.seeds - 2
    if (largest := max(one, other)) == 0:
        return None
    one, other = one / largest, other / largest  # whose squares do not overflow
    pooled = ((first.seeds - 1) * one**2 + (second.seeds - 1) * other**2) / freedom
    error = largest * math.sqrt(pooled * (1 / first.seeds + 1 / second.seeds))
    return 2 * float(stdtr(freedom, -abs(first.value - second.value) / error))


class FoldStatistics(msgspec.Struct, frozen=True):
    """One metric over several folds or data sets: the mean and the standard deviation, as papers
    have it. None where one of them is undefined, or there is one alone.

    What stands for a fold is the mean over the seeds. There is no interval, because folds share
    most of what they learnt from, and nobody draws data sets at random.
    """

    mean: float | None
    deviation: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float | None]) -> "FoldStatistics":
        """
        >>> FoldStatistics.of([1.0, 3.0])
        FoldStatistics(mean=2.0, deviation=1.4142135623730951, count=2)
        """
        known = [value for value in values if value is not None]
        if len(known) < max(2, len(values)):
            return cls(None, None, len(values))
        return cls(statistics.mean(known), statistics.stdev(known), len(known))
