"""What every predictive distribution answers, whatever head it comes from.

A distribution speaks of ``n`` numbers at once, in raw units: the normalisation
of the training data is undone, so NLL, CRPS and coverage of different schemes
and heads compare on the same numbers. Next to a density on the line it may have
atoms, single values with a probability of their own (zero, NaN, an infinity).
What each answer makes of them:

============  =================================================================
log_density   NaN, infinities and overflow have their mass
log_interval  as the cdf, but not given anything: NaN has its mass, overflow lies at infinity
sample        NaN, and an infinity for an overflow
cdf, quantiles, median    given that it is a number, so without NaN; overflow lies at infinity
mean, crps    given that it is a finite number
============  =================================================================
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.normalizers.base import Scaling

Floats = NDArray[np.float64]


class Predictive(ABC):
    """The distribution of each of ``n`` numbers. Subclasses are final frozen dataclasses."""

    @abstractmethod
    def log_density(self, values: Floats) -> Floats:
        """float64[n], nats: of the density at each value of float64[n], or of an atom's mass.

        The density is per raw unit, so in other units it shifts by a constant; a mass does not.
        NaN where there is no density, as of numbers that were drawn.
        """

    @abstractmethod
    def log_interval(self, low: Floats, high: Floats) -> Floats:
        """float64[n], nats: log P(low < X <= high), for ends of float64[n].

        The likelihood of a number that was recorded at a resolution, or is an atom, which
        compares where densities do not. It keeps its digits where the probability is tiny; -inf
        where it is 0 and where low >= high, NaN for a NaN and where there is no density.
        """

    @abstractmethod
    def cdf(self, values: Floats) -> Floats:
        """float64[n]: P(X <= value) for each value of float64[n]; NaN for NaN."""

    @abstractmethod
    def quantiles(self, levels: Sequence[float]) -> Floats:
        """float64[n, q]: for each level the smallest x with P(X <= x) >= level.

        Raises ValueError unless the levels lie between 0 and 1, both excluded.
        """

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """float64[n, count]: independent draws."""

    @abstractmethod
    def mean(self) -> Floats:
        """float64[n]: the expected value."""

    @abstractmethod
    def mode(self) -> Floats:
        """float64[n]: the value with the highest density in raw units; NaN if it is not a number.

        For a head that writes tokens or digits: the value of its most probable output.
        """

    @abstractmethod
    def crps(self, values: Floats) -> Floats:
        """float64[n], raw units: the continuous ranked probability score, lower is better.

        The integral of (F(x) - 1{x >= value})^2 over the line, Gneiting and Raftery (2007),
        equation 20, with the opposite sign. NaN for NaN, infinite for an infinity.
        """

    def log_recorded(self, values: Floats, half: Floats | float) -> Floats:
        """float64[n], nats: ``log_interval`` of values that were recorded to ``half`` on each side.

        To each side it is one spacing of float64 at least: values that are nearer to each other
        are the same, whatever resolution they were written at (0.30000000000000004).
        """
        half = np.maximum(half, np.spacing(np.abs(values)))
        return self.log_interval(values - half, values + half)

    def median(self) -> Floats:
        """float64[n]: the quantile of level 0.5."""
        return self.quantiles([0.5])[:, 0]


def checked(levels: Sequence[float]) -> Floats:
    """float64[q]; ValueError unless all are levels of quantiles."""
    array = np.array(levels, np.float64)
    if not ((array > 0) & (array < 1)).all():
        raise ValueError(f"levels of quantiles lie between 0 and 1, both excluded; got {levels}")
    return array


def unscaled(scaling: Scaling, points: Floats) -> Floats:
    """Normalised values of any shape in raw units."""
    return scaling.inverse(points.ravel()).reshape(points.shape)


def drawn_places(weights: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """int64[n, count]: places among weights [n, k], drawn by them."""
    sums = np.cumsum(weights, axis=1)
    pairs = zip(sums, rng.random((len(sums), count)), strict=True)
    chosen = [np.searchsorted(row / row[-1], shares, "right") for row, shares in pairs]
    return np.array(chosen, np.int64).reshape(len(sums), count)
