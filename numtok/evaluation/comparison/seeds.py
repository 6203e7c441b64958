"""Statistics of one metric over several seeds: mean, standard deviation, interval and t-test.

Metrics that are computed from predictions have a bootstrap interval over samples and seeds, for any
number of seeds, so that experiments with different numbers of seeds are comparable. Other values,
such as the number of tokens until a level is reached, have an interval from Student's
t-distribution.
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


class SeedStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a metric over seeds.

    value
        Mean over the seeds; None if the metric is undefined for any seed.
    low, high
        Ends of the interval.
    deviation
        Standard deviation over the seeds.
    interval
        Kind of interval: "bootstrap" (over samples and seeds), "share" (Wilson's, for a fraction
        that is 0 for every seed or 1 for every seed), "seeds" (Student's t), or None if there is no
        interval.
    seeds, n
        Number of seeds, and number of predictions for each seed.
    """

    value: float | None
    low: float | None
    high: float | None
    deviation: float | None
    interval: str | None
    seeds: int
    n: int


def seed_statistics(figures: Sequence[Figure], *, share: bool = False) -> SeedStatistics:
    """Return the statistics of a metric, given its value for each seed. The mean is undefined if
    any value is undefined.

    The interval is mean +- t s / sqrt(seeds), where s is the standard deviation and t is the 97.5%
    quantile of Student's distribution with seeds - 1 degrees of freedom. For the values 1, 2 and 3,
    it is 2 +- 4.303 * 1 / sqrt(3). It begins at 0 or above, because it is used for costs. A single
    seed keeps its own interval; ``share`` states whether its metric is a fraction.
    """
    first, seeds = figures[0], len(figures)
    build = partial(SeedStatistics, seeds=seeds, n=first.n)
    unknown: dict[str, Any] = dict.fromkeys(("low", "high", "deviation", "interval"))
    values = [figure.value for figure in figures if figure.value is not None]
    if len(values) < seeds:
        return build(value=None, **unknown)
    if seeds == 1:
        return _with_interval(build(value=first.value, **unknown), first, share=share)
    if not all(map(math.isfinite, values)):
        return build(value=sum(values), **unknown)
    # The module statistics is exact: equal seeds give 0, and squares do not overflow.
    mean, deviation = statistics.mean(values), statistics.stdev(values)
    half = float(stdtrit(seeds - 1, 0.975)) * deviation / math.sqrt(seeds)
    return build(
        value=mean,
        low=max(mean - half, 0.0),
        high=mean + half,
        deviation=deviation,
        interval="seeds",
    )


def answers_of_seeds(evaluations: Sequence[Evaluation]) -> list[Predictions]:
    """Return the predictions of one experiment, one element per seed. Raises DataError if the seeds
    have different test rows."""
    first, *rest = map(ReportPredictions.read, evaluations)
    for other in rest:
        first.check_pairs(other)
    return [predictions.answers for predictions in (first, *rest)]


def bootstrapped(
    metrics: Sequence[Metric], seeds: Sequence[Predictions]
) -> dict[str, SeedStatistics]:
    """Return the statistics of each metric over the seeds of one experiment, keyed by metric spec.

    Intervals are computed by a bootstrap over samples and seeds.
    """
    each = [figures(metrics, answers, resamples=1) for answers in seeds]
    intervals = figures_over_seeds(metrics, seeds)
    return {
        spec_of(metric): _with_interval(
            seed_statistics([values[spec_of(metric)] for values in each]),
            intervals[spec_of(metric)],
            share=metric.share,
        )
        for metric in metrics
    }


def _with_interval(mean: SeedStatistics, figure: Figure, *, share: bool) -> SeedStatistics:
    kind = None
    if figure.low is not None or figure.high is not None:
        kind = "share" if share and figure.value in (0.0, 1.0) else "bootstrap"
    return msgspec.structs.replace(mean, low=figure.low, high=figure.high, interval=kind)


def t_test(first: SeedStatistics, second: SeedStatistics) -> float | None:
    """Return the p-value of Student's t-test for two means (two-sided, unpaired, equal variances).

    t = (m1 - m2) / sqrt(s^2 (1/n1 + 1/n2)) with n1 + n2 - 2 degrees of freedom and the pooled
    variance s^2. For the values 1, 2, 3 and 2, 3, 4, t is -1.22 and p is 0.288. Returns None if
    either mean is undefined or from a single seed, or if both standard deviations are 0.
    """
    first_deviation, second_deviation = first.deviation, second.deviation
    if (
        first.value is None
        or second.value is None
        or first_deviation is None
        or second_deviation is None
    ):
        return None
    freedom = first.seeds + second.seeds - 2
    if (largest := max(first_deviation, second_deviation)) == 0:
        return None
    first_deviation, second_deviation = (
        first_deviation / largest,
        second_deviation / largest,
    )  # so that squares do not overflow
    pooled = (
        (first.seeds - 1) * first_deviation**2 + (second.seeds - 1) * second_deviation**2
    ) / freedom
    error = largest * math.sqrt(pooled * (1 / first.seeds + 1 / second.seeds))
    return 2 * float(stdtr(freedom, -abs(first.value - second.value) / error))


class FoldStatistics(msgspec.Struct, frozen=True):
    """Mean and standard deviation of one metric over folds or data sets, as papers report them.

    Both are None if a value is undefined or there is only one value. The value of a fold is its
    mean over the seeds. Intervals are not computed, because folds share most of their training data
    and data sets are not a random sample.
    """

    mean: float | None
    deviation: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float | None]) -> "FoldStatistics":
        """Compute the statistics from one value per fold or data set.

        >>> FoldStatistics.of([1.0, 3.0])
        FoldStatistics(mean=2.0, deviation=1.4142135623730951, count=2)
        """
        defined = [value for value in values if value is not None]
        if len(defined) < max(2, len(values)):
            return cls(None, None, len(values))
        return cls(statistics.mean(defined), statistics.stdev(defined), len(defined))
