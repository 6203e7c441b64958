"""The interface of all predictive distributions.

A distribution object describes ``n`` numbers in raw units: the normalization of the training data
is undone, so NLL, CRPS and coverage of different schemes and heads are comparable. Besides a
density, a distribution may have atoms: individual values with a positive probability (zero, NaN,
infinity). The methods treat atoms as follows:

log_density
    For NaN, infinities and overflows, the result is the log-mass.
log_interval
    Probabilities are not conditional; NaN belongs to no interval. Overflows are at infinity.
sample
    Samples can be NaN. Overflows are infinite.
cdf, quantiles, median
    Results are conditional on not being NaN. Overflows are at infinity.
mean, crps
    Results are conditional on being finite.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.normalizers.base import Scaling

Floats = NDArray[np.float64]


class Predictive(ABC):
    """Base class for predictive distributions of ``n`` numbers, in raw units.

    Subclasses are final frozen dataclasses.
    """

    @abstractmethod
    def log_density(self, values: Floats) -> Floats:
        """Return float64[n], in nats: the log-density at each value (float64[n]), or the log-mass
        of an atom.

        The density is per raw unit, so a change of units shifts its log by a constant; masses are
        unaffected. Distributions without a density, such as empirical ones, return NaN.
        """

    @abstractmethod
    def log_interval(self, low: Floats, high: Floats) -> Floats:
        """Return float64[n], in nats: log P(low < X <= high), for ends float64[n].

        This is the likelihood of a number that was recorded at a certain resolution, or of an atom.
        It is comparable even where densities are not, and accurate for tiny probabilities. It is
        -inf if the probability is 0 or low >= high. It is NaN if an end is NaN, and for
        distributions without a density.
        """

    @abstractmethod
    def cdf(self, values: Floats) -> Floats:
        """Return float64[n]: P(X <= value) for each value (float64[n]); NaN if the value is NaN."""

    @abstractmethod
    def quantiles(self, levels: Sequence[float]) -> Floats:
        """Return float64[n, q]: for each level, the smallest x with P(X <= x) >= level.

        Raises ValueError unless all levels are strictly between 0 and 1.
        """

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Return float64[n, count]: ``count`` independent samples from each distribution."""

    @abstractmethod
    def mean(self) -> Floats:
        """Return float64[n]: the expected value of each number."""

    @abstractmethod
    def mode(self) -> Floats:
        """Return float64[n]: the value, in raw units, with the highest density. It can be NaN.

        Distributions over tokens or digits return the value of the most probable output instead.
        """

    @abstractmethod
    def crps(self, values: Floats) -> Floats:
        """Return float64[n], in raw units: the continuous ranked probability score of each value.

        Lower scores are better. The score is the integral of (F(x) - 1{x >= value})^2 over the real
        line: equation 20 of Gneiting and Raftery (2007) with the opposite sign. It is NaN if the
        value is NaN, and infinite if the value is infinite.
        """

    def log_recorded(self, values: Floats, half: Floats | float) -> Floats:
        """Return float64[n], in nats: the log-probability of a number within ``half`` of each
        value.

        ``half`` is half the resolution at which the values were recorded. It is raised to one
        float64 spacing if it is smaller, so that values such as 0.30000000000000004 and 0.3 count
        as equal at any resolution.
        """
        half = np.maximum(half, np.spacing(np.abs(values)))
        return self.log_interval(values - half, values + half)

    def median(self) -> Floats:
        """Return float64[n]: the median of each distribution, which is its quantile at level
        0.5."""
        return self.quantiles([0.5])[:, 0]


def checked(levels: Sequence[float]) -> Floats:
    """Return quantile levels as float64[q]. Raises ValueError unless all are strictly between 0 and
    1."""
    array = np.array(levels, np.float64)
    if not ((array > 0) & (array < 1)).all():
        raise ValueError(f"quantile levels must be strictly between 0 and 1 (got {levels})")
    return array


def unscaled(scaling: Scaling, points: Floats) -> Floats:
    """Convert normalized values of any shape to raw units."""
    return scaling.inverse(points.ravel()).reshape(points.shape)


def drawn_places(weights: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return int64[n, count]: column indices, sampled in proportion to the weights [n, k] of each
    row."""
    sums = np.cumsum(weights, axis=1)
    pairs = zip(sums, rng.random((len(sums), count)), strict=True)
    chosen = [np.searchsorted(row / row[-1], shares, "right") for row, shares in pairs]
    return np.array(chosen, np.int64).reshape(len(sums), count)
