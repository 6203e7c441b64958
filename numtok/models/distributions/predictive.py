"""The interface of all predictive distributions, for every head.

A distribution object covers ``n`` numbers in raw units: the normalization of the training data is
undone, so NLL, CRPS and coverage of different schemes and heads are comparable. Besides a density,
a distribution may have atoms: single values with a probability of their own (zero, NaN, infinity).
The methods treat atoms as follows:

============  =================================================================
log_density   NaN, infinities and overflow have their mass
log_interval  as the cdf, but unconditional: NaN has its mass, overflow is at infinity
sample        NaN, and infinity for an overflow
cdf, quantiles, median    conditional on not being NaN; overflow is at infinity
mean, crps    conditional on being finite
============  =================================================================
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.normalizers.base import Scaling

Floats = NDArray[np.float64]


class Predictive(ABC):
    """Distributions of ``n`` numbers. Subclasses are final frozen dataclasses."""

    @abstractmethod
    def log_density(self, values: Floats) -> Floats:
        """Return float64[n], nats: the log-density at each value of float64[n], or an atom's
        log-mass.

        The density is per raw unit, so in other units it shifts by a constant; a mass does not. NaN
        if there is no density, as for empirical distributions.
        """

    @abstractmethod
    def log_interval(self, low: Floats, high: Floats) -> Floats:
        """Return float64[n], nats: log P(low < X <= high), for ends float64[n].

        This is the likelihood of a number recorded at a resolution, or of an atom, and is
        comparable where densities are not. It is accurate for tiny probabilities; -inf if the
        probability is 0 or low >= high, NaN for NaN and if there is no density.
        """

    @abstractmethod
    def cdf(self, values: Floats) -> Floats:
        """Return float64[n]: P(X <= value) for each value of float64[n]; NaN for NaN."""

    @abstractmethod
    def quantiles(self, levels: Sequence[float]) -> Floats:
        """Return float64[n, q]: for each level the smallest x with P(X <= x) >= level.

        Raises ValueError unless all levels are strictly between 0 and 1.
        """

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Return float64[n, count]: independent samples."""

    @abstractmethod
    def mean(self) -> Floats:
        """Return float64[n]: the expected value."""

    @abstractmethod
    def mode(self) -> Floats:
        """Return float64[n]: the value with the highest density in raw units; NaN if it is NaN.

        For heads that predict tokens or digits: the value of the most probable output.
        """

    @abstractmethod
    def crps(self, values: Floats) -> Floats:
        """Return float64[n], raw units: the continuous ranked probability score; lower is better.

        The integral of (F(x) - 1{x >= value})^2 over the line: Gneiting and Raftery (2007),
        equation 20, with the opposite sign. NaN for NaN, infinite for an infinity.
        """

    def log_recorded(self, values: Floats, half: Floats | float) -> Floats:
        """Return float64[n], nats: ``log_interval`` for values recorded to ``half`` on each side.

        Each side is at least one float64 spacing, so that values such as 0.30000000000000004 and
        0.3 count as equal at any resolution.
        """
        half = np.maximum(half, np.spacing(np.abs(values)))
        return self.log_interval(values - half, values + half)

    def median(self) -> Floats:
        """Return float64[n]: the quantile at level 0.5."""
        return self.quantiles([0.5])[:, 0]


def checked(levels: Sequence[float]) -> Floats:
    """Return the levels as float64[q]; ValueError unless all are valid."""
    array = np.array(levels, np.float64)
    if not ((array > 0) & (array < 1)).all():
        raise ValueError(f"quantile levels must be strictly between 0 and 1 (got {levels})")
    return array


def unscaled(scaling: Scaling, points: Floats) -> Floats:
    """Return normalized values of any shape in raw units."""
    return scaling.inverse(points.ravel()).reshape(points.shape)


def drawn_places(weights: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return int64[n, count]: indices sampled in proportion to weights [n, k]."""
    sums = np.cumsum(weights, axis=1)
    pairs = zip(sums, rng.random((len(sums), count)), strict=True)
    chosen = [np.searchsorted(row / row[-1], shares, "right") for row, shares in pairs]
    return np.array(chosen, np.int64).reshape(len(sums), count)
