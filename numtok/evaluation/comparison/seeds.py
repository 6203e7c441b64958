"""One metric over several seeds: mean, standard deviation, interval of the mean, and t-test.

Metrics of predictions have the interval of a bootstrap over samples and seeds, for any number of
seeds, so that the rows of a table are comparable. Values without predictions, such as the tokens
until a level is reached, have Student's t interval.
"""

import math
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from scipy.special import stdtr, stdtrit

from numtok.evaluation.report_files import Evaluation, ReportPredictions
from numtok.metrics.base import Metric, Predictions, figures, figures_over_seeds
from numtok.registry import spec_of
from numtok.reports import Figure

LEVEL = 0.95  # of every interval


class SeedStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A metric over seeds. ``interval`` is "bootstrap" (over samples and seeds), "share" (Wilson's,
    for a fraction that is 0 or 1 with every seed), "seeds" (Student's t), or None: undefined."""

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
    made = partial(SeedStatistics, seeds=seeds, n=first.n)
    unknown: dict[str, Any] = dict.fromkeys(("low", "high", "deviation", "interval"))
    values = [figure.value for figure in figures if figure.value is not None]
    if len(values) < seeds:
        return made(value=None, **unknown)
    low, high = first.low, first.high
    if share and low != high and set(values) in ({0.0}, {1.0}):
        deviation = None if seeds == 1 else 0.0
        return made(value=values[0], low=low, high=high, deviation=deviation, interval="share")
    if seeds == 1:
        kind = "bootstrap" if low is not None else None
        return made(value=first.value, low=low, high=high, deviation=None, interval=kind)
    if not all(map(math.isfinite, values)):
        return made(value=sum(values), **unknown)
    # Exact: seeds that are alike have no deviation, and squares do not overflow.
    mean, deviation = statistics.mean(values), statistics.stdev(values)
    half = float(stdtrit(seeds - 1, (1 + LEVEL) / 2)) * deviation / math.sqrt(seeds)
    low, high = max(mean - half, bounds[0]), min(mean + half, bounds[1])
    return made(value=mean, low=low, high=high, deviation=deviation, interval="seeds")


def answers_of_seeds(evaluations: Sequence[Evaluation]) -> list[Predictions]:
    """Read the predictions of the seeds of one experiment; DataError for different test rows."""
    first, *others = map(ReportPredictions.read, evaluations)
    for other in others:
        first.check_pairs(other)
    return [one.answers for one in (first, *others)]


def bootstrapped(
    metrics: Sequence[Metric], seeds: Sequence[Predictions]
) -> dict[str, SeedStatistics]:
    """Compute each metric, by its spec, over the seeds of one experiment, with the interval of a
    bootstrap over samples and seeds."""
    each = [figures(metrics, one, resamples=1) for one in seeds]
    intervals = figures_over_seeds(metrics, seeds, level=LEVEL)
    return {
        spec_of(metric): _with_interval(
            seed_statistics([one[spec_of(metric)] for one in each]),
            intervals[spec_of(metric)],
            share=metric.share,
        )
        for metric in metrics
    }


def _with_interval(mean: SeedStatistics, found: Figure, *, share: bool) -> SeedStatistics:
    kind = None
    if found.low is not None or found.high is not None:
        kind = "share" if share and found.value in (0.0, 1.0) else "bootstrap"
    return msgspec.structs.replace(mean, low=found.low, high=found.high, interval=kind)


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
