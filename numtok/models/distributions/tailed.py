"""Distributions within a range, with a fixed probability of values outside the range.

A histogram or a normalized decoder assigns no probability to values outside the training range, so
a single such number makes its log-likelihood -inf. A fixed probability of such values, chosen
beforehand and the same for every model, makes all likelihoods comparable.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from numtok.models.distributions.predictive import Floats, Predictive, checked

_ROUNDING = 1e-9  # tolerance for the ends of the inner distribution, as a fraction of the range


@dataclass(frozen=True, eq=False)
class Tailed(Predictive):
    """Mixture of a distribution ``inside`` a range and, with probability ``mass``, two tails.

    The tails below ``low`` and above ``high`` are equally probable. In a tail, the distance ``d``
    from the range is exponentially distributed, with the width of the range as its scale:

        density(y) = mass / 2 * exp(-d / width) / width    outside,
                     (1 - mass) * density of ``inside``    within.

    The last of n + 1 exchangeable numbers is the smallest or the largest with probability
    2 / (n + 1). With n training values, a mass of this order is therefore calibrated; reports use
    1 / (n + 1). ``inside`` must not have atoms at NaN or infinities, and must lie within the range.

    >>> from numtok.models.distributions.intervals import Intervals
    >>> ends = {"low": np.array([0.0]), "high": np.array([2.0])}
    >>> inside = Intervals(**ends, values=np.array([1.0]), log_mass=np.zeros((1, 1)))
    >>> one = Tailed(inside, 0.0, 2.0, 0.1)
    >>> np.exp(one.log_density(np.array([2.0]))), np.exp(one.log_density(np.array([4.0])))
    (array([0.45]), array([0.00919699]))

    Raises ValueError if the range is empty or unbounded, if the mass is not in [0, 1), or if
    ``inside`` is not within the range.
    """

    inside: Predictive
    low: float
    high: float
    mass: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.low, self.high]).all() and self.low < self.high):
            raise ValueError(f"a range needs two different ends (got {self.low} and {self.high})")
        if not 0 <= self.mass < 1:
            raise ValueError(f"the mass of tails must be in [0, 1) (got {self.mass})")
        count = len(self._mean)
        margin = _ROUNDING * self.width
        below = self.inside.cdf(np.full(count, self.low - margin))
        through = self.inside.cdf(np.full(count, self.high + margin))
        if (below > _ROUNDING).any() or (through < 1 - _ROUNDING).any():
            raise ValueError(
                f"a distribution with tails must lie within its range, {self.low} to {self.high}"
            )

    @property
    def width(self) -> float:
        """Width of the range, which is also the scale of the tails."""
        return self.high - self.low

    @cached_property
    def _mean(self) -> Floats:
        return self.inside.mean()

    # --- probabilities ---------------------------------------------------------------------------

    def log_density(self, values: Floats) -> Floats:
        outside = (values < self.low) | (values > self.high)
        with np.errstate(divide="ignore"):
            tail = np.log(self.mass / 2 / self.width) - self._away(values)
        within: Floats = np.log1p(-self.mass) + self.inside.log_density(values)
        # If the density inside is unknown, as for samples, one for the outside would be misleading.
        return np.where(outside & ~np.isnan(within), tail, within)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        within = np.log1p(-self.mass) + self.inside.log_interval(low, high)
        left = _exponential(self.low - high, self.low - low, self.width)
        right = _exponential(low - self.high, high - self.high, self.width)
        with np.errstate(divide="ignore", invalid="ignore"):  # a mass of 0, an end of NaN
            tails = np.log(self.mass / 2) + np.logaddexp(left, right)
            return np.asarray(np.logaddexp(within, tails), np.float64)

    def cdf(self, values: Floats) -> Floats:
        half = self.mass / 2
        tail = half * np.exp(-self._away(values))
        within = half + (1 - self.mass) * self.inside.cdf(values)
        return np.where(values < self.low, tail, np.where(values > self.high, 1 - tail, within))

    def quantiles(self, levels: Sequence[float]) -> Floats:
        array, half = checked(levels), self.mass / 2
        points = np.empty((len(self._mean), len(array)))
        left, right = array < half, 1 - array < half
        points[:, left] = self.low + self.width * np.log(array[left] / half)
        points[:, right] = self.high - self.width * np.log((1 - array[right]) / half)
        middle = ~(left | right)
        if middle.any():
            # At the exact ends, the level inside would be 0 or 1.
            least = np.finfo(np.float64).eps
            shares = np.clip((array[middle] - half) / (1 - self.mass), least, 1 - least)
            points[:, middle] = self.inside.quantiles(shares.tolist())
        return points

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        draws = self.inside.sample(count, rng)
        side = rng.random(draws.shape) / self.mass if self.mass else np.ones(draws.shape)
        away = self.width * rng.standard_exponential(draws.shape)
        outer = np.where(side < 0.5, self.low - away, self.high + away)
        return np.where(side < 1, outer, draws)

    # --- point estimates and scores --------------------------------------------------------------

    def mean(self) -> Floats:
        return (1 - self.mass) * self._mean + self.mass * (self.low / 2 + self.high / 2)

    def mode(self) -> Floats:
        """Return float64[n]: the mode of ``inside``, the distribution that the model predicts."""
        return self.inside.mode()

    def crps(self, values: Floats) -> Floats:
        """Return float64[n]: the CRPS, E|X - y| - E|X - X'| / 2, combined from ``inside`` and the
        tails.

        Both expectations for ``inside`` are derived from its CRPS. At the upper end of the range,
        E|X - y| is the distance from the mean, and this distance minus the CRPS is
        E|X - X'| / 2.
        """
        finite = np.isfinite(values)
        y = np.where(finite, values, 0.0)
        share, mass, width = 1 - self.mass, self.mass, self.width
        top = np.full(len(y), self.high)
        half_apart = top - self._mean - self.inside.crps(top)
        away = self.inside.crps(y) + half_apart
        # Mean distance of a value in the range to a sample outside, and between two such samples.
        across, apart = width / 2 + width, width / 2 + (width + 2 * width) / 2
        distance = np.maximum(np.maximum(self.low - y, y - self.high), 0.0)
        # In a tail: half of the samples are in the same tail, |E - d| = d - s + 2 s exp(-d / s);
        # half are beyond the range.
        near = distance - width + 2 * width * np.exp(-distance / width)
        outer = np.where(distance > 0, near / 2 + (distance + 2 * width) / 2, across)
        between = share**2 * half_apart + share * mass * across + mass**2 * apart / 2
        return np.where(finite, share * away + mass * outer - between, np.abs(values))

    def _away(self, values: Floats) -> Floats:
        """Return float64[n]: the distance from the range, in units of its width; 0 within."""
        beyond: Floats = np.maximum(self.low - values, values - self.high) / self.width
        return np.maximum(beyond, 0.0)


def _exponential(near: Floats, far: Floats, scale: float) -> Floats:
    """Return float64[n]: log P(near < D <= far) of an exponential distance D; -inf for none."""
    near, far = np.maximum(near, 0.0) / scale, np.maximum(far, 0.0) / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(-np.expm1(near - far)) - near
    return np.where(near < far, logs, -np.inf)
