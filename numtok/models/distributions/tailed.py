"""Tailed: a distribution within a range, and a stated probability of lying outside of it.

A histogram or a normalised decoder gives no probability at all to what lies outside the range of
its train split, so one such number makes its likelihood infinitely bad. How likely that is can be
said beforehand, the same for every model: with it the likelihoods of all compare.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from numtok.models.distributions.predictive import Floats, Predictive, checked

_ROUNDING = 1e-9  # of the range, that the ends of the distribution inside may be off by


@dataclass(frozen=True, eq=False)
class Tailed(Predictive):
    """``inside`` with probability 1 - ``mass``; else beyond ``low`` or ``high``, half on each side.

    There the distance ``d`` from the range is exponential, its scale the width of the range:

        density(y) = mass / 2 * exp(-d / width) / width    outside,
                     (1 - mass) * density of ``inside``    within.

    Of n + 1 numbers in any order the last is the least or the greatest with probability
    2 / (n + 1), so with n in the train split a mass of that order is an honest one; reports take
    1 / (n + 1). ``inside`` has no atoms for NaN or infinities, and lies in the range.

    >>> from numtok.models.distributions.intervals import Intervals
    >>> ends = {"low": np.array([0.0]), "high": np.array([2.0])}
    >>> inside = Intervals(**ends, values=np.array([1.0]), log_mass=np.zeros((1, 1)))
    >>> one = Tailed(inside, 0.0, 2.0, 0.1)
    >>> np.exp(one.log_density(np.array([2.0]))), np.exp(one.log_density(np.array([4.0])))
    (array([0.45]), array([0.00919699]))

    Raises ValueError for an empty or endless range, a mass outside [0, 1), or if ``inside`` does
    not lie in the range.
    """

    inside: Predictive
    low: float
    high: float
    mass: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.low, self.high]).all() and self.low < self.high):
            raise ValueError(f"a range has two ends that differ; got {self.low} and {self.high}")
        if not 0 <= self.mass < 1:
            raise ValueError(f"a mass of tails lies between 0 and 1; got {self.mass}")
        count = len(self._mean)
        margin = _ROUNDING * self.width
        below = self.inside.cdf(np.full(count, self.low - margin))
        through = self.inside.cdf(np.full(count, self.high + margin))
        if (below > _ROUNDING).any() or (through < 1 - _ROUNDING).any():
            raise ValueError(
                f"a distribution with stated tails lies in its range, {self.low} to {self.high}"
            )

    @property
    def width(self) -> float:
        """Of the range, and the scale of the tails."""
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
        # Where nothing is known inside, as of draws, those outside alone would say too much.
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
            # At its very ends the level inside would be 0 or 1.
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
        """That of the distribution inside, which is the model's own."""
        return self.inside.mode()

    def crps(self, values: Floats) -> Floats:
        """See the base: E|X - y| - E|X - X'| / 2, put together from those inside and outside.

        The score inside tells both parts: at the upper end of the range E|X - y| is the distance
        of the mean, and what the score lacks of it is E|X - X'| / 2.
        """
        finite = np.isfinite(values)
        y = np.where(finite, values, 0.0)
        share, mass, width = 1 - self.mass, self.mass, self.width
        top = np.full(len(y), self.high)
        half_apart = top - self._mean - self.inside.crps(top)
        away = self.inside.crps(y) + half_apart
        # From a value in the range to a draw outside, on average, and between two such draws.
        across, apart = width / 2 + width, width / 2 + (width + 2 * width) / 2
        distance = np.maximum(np.maximum(self.low - y, y - self.high), 0.0)
        # In a tail: half the draws are there, |E - d| = d - s + 2 s exp(-d / s); half beyond the
        # range.
        near = distance - width + 2 * width * np.exp(-distance / width)
        outer = np.where(distance > 0, near / 2 + (distance + 2 * width) / 2, across)
        between = share**2 * half_apart + share * mass * across + mass**2 * apart / 2
        return np.where(finite, share * away + mass * outer - between, np.abs(values))

    def _away(self, values: Floats) -> Floats:
        """float64[n]: how far outside the range, in units of its width; 0 within."""
        beyond: Floats = np.maximum(self.low - values, values - self.high) / self.width
        return np.maximum(beyond, 0.0)


def _exponential(near: Floats, far: Floats, scale: float) -> Floats:
    """float64[n]: log P(near < D <= far) of an exponential distance D; -inf if there is none."""
    near, far = np.maximum(near, 0.0) / scale, np.maximum(far, 0.0) / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(-np.expm1(near - far)) - near
    return np.where(near < far, logs, -np.inf)
