"""Samples: a distribution known by numbers drawn from it, as autoregressive decoding gives them."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from numtok.models.distributions.predictive import Floats, Predictive, checked

_DRAWS = 512  # that stand for a distribution


@dataclass(frozen=True, eq=False)
class Empirical(Predictive):
    """``n`` empirical distributions of ``s`` draws each, in raw units.

    A draw that is no number (NaN, or nothing that can be read) is NaN, one that overflows is an
    infinity. There is no density: :meth:`log_density` and :meth:`log_interval` are NaN.

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
        """int64[n]: draws that are numbers."""
        numbers: NDArray[np.int64] = np.count_nonzero(~np.isnan(self.values), axis=1)
        return numbers

    def log_density(self, values: Floats) -> Floats:
        return np.full(len(values), np.nan)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        return np.full(len(low), np.nan)

    def cdf(self, values: Floats) -> Floats:
        below = np.count_nonzero(self.values <= values[:, None], axis=1)
        known = (self._numbers > 0) & ~np.isnan(values)
        return np.where(known, below / np.maximum(self._numbers, 1), np.nan)

    def quantiles(self, levels: Sequence[float]) -> Floats:
        """See the base: always one of the draws; NaN where none is a number."""
        shares = np.round(checked(levels) * self._numbers[:, None], 9)  # 0.07 of 100 is 7
        places = np.ceil(shares).astype(np.int64) - 1
        # Without numbers the first of the sorted draws is NaN.
        return np.take_along_axis(self._sorted, np.maximum(places, 0), axis=1)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        chosen = rng.integers(0, self.values.shape[1], (len(self.values), count))
        return np.take_along_axis(self.values, chosen, axis=1)

    def mean(self) -> Floats:
        """See the base; NaN where no draw is finite."""
        count = self._finite.sum(axis=1)
        total = np.where(self._finite, self._sorted, 0.0).sum(axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def mode(self) -> Floats:
        """The most frequent draw, of several the smallest; NaN where NaN is the most frequent."""
        modes = np.empty(len(self.values))
        for row, draws in enumerate(self.values):
            distinct, counts = np.unique(draws, return_counts=True)
            modes[row] = distinct[counts.argmax()]
        return modes

    def crps(self, values: Floats) -> Floats:
        """See the base. The fair estimator (Ferro 2014), from the finite draws.

        mean |x_i - y| - sum over pairs |x_i - x_j| / (s (s - 1)): on average it is the score of
        the distribution that was drawn from, for any number of draws, so it compares with exact
        ones. NaN where fewer than two draws are finite.
        """
        count = self._finite.sum(axis=1)
        draws = np.where(self._finite, self._sorted, 0.0)
        away = np.where(self._finite, np.abs(draws - values[:, None]), 0.0).sum(axis=1)
        # The finite draws stand together. In order, the k-th of s is above k and below s - 1 - k.
        rank = np.cumsum(self._finite, axis=1) - 1
        apart = (draws * (2 * rank - count[:, None] + 1)).sum(axis=1)
        enough = count > 1
        score = away / np.maximum(count, 1) - apart / np.maximum(count * (count - 1), 1)
        return np.where(enough, score, np.nan)


class SampledPredictive(Predictive):
    """A distribution that is known by how it is sampled; leaves answer exactly what they can.

    Everything else comes from 512 draws, the same each time; densities are NaN.
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
