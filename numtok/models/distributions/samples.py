"""Distributions represented by samples, for example from autoregressive decoding."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from numtok.models.distributions.predictive import Floats, Predictive, checked, drawn_places
from numtok.models.distributions.prefix_tree import Symbols

_DRAWS = 512  # samples that represent a distribution
_NEGLIGIBLE = 2.0**-53  # smaller weights count as 0: float64 rounds them away in the sum


@dataclass(frozen=True, eq=False)
class Empirical(Predictive):
    """Empirical distributions of ``n`` numbers, each given by ``s`` samples in raw units.

    Samples that are not numbers, such as unreadable text, are NaN; overflows are infinite. There is
    no density, so :meth:`log_density` and :meth:`log_interval` return NaN.

    >>> Empirical(np.array([[3.0, 1.0, 2.0, np.nan]])).quantiles([0.5, 0.9])
    array([[2., 3.]])
    """

    values: Floats  # [n, s]

    @cached_property
    def _sorted(self) -> Floats:
        return np.sort(self.values, axis=1)  # NaN last

    @cached_property
    def _finite(self) -> NDArray[np.bool_]:
        return np.isfinite(self._sorted)

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """int64[n]: the number of samples that are not NaN."""
        return np.asarray(np.count_nonzero(~np.isnan(self.values), axis=1))

    def log_density(self, values: Floats) -> Floats:
        return np.full(len(values), np.nan)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        return np.full(len(low), np.nan)

    def cdf(self, values: Floats) -> Floats:
        below = np.count_nonzero(self.values <= values[:, None], axis=1)
        defined = (self._numbers > 0) & ~np.isnan(values)
        return np.where(defined, below / np.maximum(self._numbers, 1), np.nan)

    def quantiles(self, levels: Sequence[float]) -> Floats:
        """Return float64[n, q]: quantiles, each of which is one of the samples; NaN if all samples
        are NaN."""
        shares = np.round(checked(levels) * self._numbers[:, None], 9)  # 0.07 of 100 is 7
        places = np.ceil(shares).astype(np.int64) - 1
        # If all samples are NaN, so is the first.
        return np.take_along_axis(self._sorted, np.maximum(places, 0), axis=1)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        chosen = rng.integers(0, self.values.shape[1], (len(self.values), count))
        return np.take_along_axis(self.values, chosen, axis=1)

    def mean(self) -> Floats:
        """Return float64[n]: the mean of the finite samples; NaN if no sample is finite."""
        count = self._finite.sum(axis=1)
        total = np.where(self._finite, self._sorted, 0.0).sum(axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def mode(self) -> Floats:
        """Return float64[n]: the most frequent sample, or the smallest of several equally frequent
        ones.

        It is NaN if NaN is the most frequent sample.
        """
        modes = np.empty(len(self.values))
        for row, draws in enumerate(self.values):
            distinct, counts = np.unique(draws, return_counts=True)
            modes[row] = distinct[counts.argmax()]
        return modes

    def crps(self, values: Floats) -> Floats:
        """Return float64[n]: the fair estimator of the CRPS (Ferro 2014), from the finite samples.

        It is mean |x_i - y| - sum over pairs |x_i - x_j| / (s (s - 1)), where s is the number of
        finite samples and each pair is counted once. For any number of samples, its expected value
        is the CRPS of the distribution from which the samples were drawn, so the estimate can be
        compared with exact scores. It is NaN if fewer than two samples are finite.
        """
        count = self._finite.sum(axis=1)
        draws = np.where(self._finite, self._sorted, 0.0)
        away = np.where(self._finite, np.abs(draws - values[:, None]), 0.0).sum(axis=1)
        # Finite samples are contiguous. In order, the k-th of s is above k and below s - 1 - k
        # others.
        rank = np.cumsum(self._finite, axis=1) - 1
        apart = (draws * (2 * rank - count[:, None] + 1)).sum(axis=1)
        enough = count > 1
        score = away / np.maximum(count, 1) - apart / np.maximum(count * (count - 1), 1)
        return np.where(enough, score, np.nan)


class SampledPredictive(Predictive):
    """Base class for distributions that can be sampled.

    Results are computed from 512 samples with a fixed seed, except those that a subclass computes
    exactly. Densities are NaN by default.
    """

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> Floats: ...

    @cached_property
    def _drawn(self) -> Empirical:
        return Empirical(self.sample(_DRAWS, np.random.default_rng(0)))

    def log_density(self, values: Floats) -> Floats:
        return self._drawn.log_density(values)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        return self._drawn.log_interval(low, high)

    def cdf(self, values: Floats) -> Floats:
        return self._drawn.cdf(values)

    def quantiles(self, levels: Sequence[float]) -> Floats:
        return self._drawn.quantiles(levels)

    def mean(self) -> Floats:
        return self._drawn.mean()

    def mode(self) -> Floats:
        return self._drawn.mode()

    def crps(self, values: Floats) -> Floats:
        return self._drawn.crps(values)


@dataclass(frozen=True, eq=False)
class IndependentClasses(SampledPredictive):
    """Distributions of ``n`` numbers, each of which is determined by K independent class variables.

    Every number is an atom. Densities and modes are exact; all other results are computed from
    samples.

    logs
        For each class variable, the log-probabilities of its classes, float64[n, size].
    classes, numbers
        Functions that convert numbers float64[m] to classes int64[m, K], and back.

    >>> logs = [np.log([[0.9, 0.1]]), np.log([[0.2, 0.8]])]
    >>> def bits(values):
    ...     return np.stack([values // 2 % 2, values % 2], axis=1).astype(np.int64)
    >>> one = IndependentClasses(logs, bits, lambda classes: classes @ np.array([2.0, 1.0]))
    >>> one.mode().tolist(), np.exp(one.log_density(np.array([3.0]))).round(2).tolist()
    ([1.0], [0.08])
    """

    logs: Sequence[Floats]
    classes: Callable[[Floats], Symbols]
    numbers: Callable[[Symbols], Floats]

    def log_density(self, values: Floats) -> Floats:
        """Return float64[n]: the log-probability of the classes of each value.

        It is -inf if the classes cannot represent the value exactly.
        """
        finite = np.where(np.isfinite(values), values, 0.0)
        classes, rows = self.classes(finite), np.arange(len(values))
        total: Floats = sum(
            (log[rows, own] for log, own in zip(self.logs, classes.T, strict=True)),
            start=np.zeros(len(values)),
        )
        return np.where(self.numbers(classes) == values, total, -np.inf)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        drawn = [drawn_places(np.exp(log), count, rng).ravel() for log in self.logs]
        return self.numbers(np.stack(drawn, axis=1)).reshape(-1, count)

    def mode(self) -> Floats:
        """Return float64[n]: the number with the most probable classes."""
        return self.numbers(np.stack([log.argmax(axis=1) for log in self.logs], axis=1))


def harrell_davis(values: Floats, level: float = 0.5) -> Floats:
    """Return float64[n]: the Harrell-Davis quantile estimate of each row of samples, float64[n, s].

    It is a weighted mean of all ordered samples: the expected order statistic over bootstrap
    resamples. It varies less than the sample quantile. Decoding-based Regression (Section 3.3) uses
    it for the median of sampled decodings.

    The i-th of ``s`` ordered samples has the weight I(i / s) - I((i - 1) / s), where I is the
    distribution function of Beta((s + 1) level, (s + 1) (1 - level)) (Harrell and Davis 1982).
    Weights below 2^-53 count as 0, so that one extreme outlier does not dominate the estimate. NaN
    samples are ignored; the estimate is NaN if all samples of a row are NaN.

    Raises ValueError unless the level is strictly between 0 and 1.

    >>> harrell_davis(np.array([[3.0, 1.0, 2.0, 9.0], [4.0, np.nan, 6.0, np.nan]])).round(6)
    array([3.132925, 5.      ])
    """
    [level] = checked([level]).tolist()
    ordered = np.sort(values, axis=1)  # NaN last
    counts = np.count_nonzero(~np.isnan(values), axis=1)
    estimates = np.full(len(values), np.nan)
    for count in np.unique(counts[counts > 0]).tolist():
        rows, weights = counts == count, _weights(count, level)
        counting = np.flatnonzero(weights)  # 0 times infinity would be NaN
        with np.errstate(invalid="ignore"):  # the sum of both infinities is NaN
            # Not BLAS: results must not depend on the number of threads.
            estimates[rows] = np.einsum("ns,s->n", ordered[rows][:, counting], weights[counting])
    return estimates


@lru_cache(maxsize=64)
def _weights(count: int, level: float) -> Floats:
    """Return float64[count]: the weights, which sum to 1."""
    from scipy.special import betainc  # slow to import, and not needed to train

    a, b = (count + 1) * level, (count + 1) * (1 - level)
    weights: Floats = np.diff(betainc(a, b, np.linspace(0, 1, count + 1)))
    weights[weights < _NEGLIGIBLE] = 0.0
    weights /= weights.sum()
    weights.flags.writeable = False  # the array is cached
    return weights
