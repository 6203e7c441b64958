"""Gaussian: a normal distribution in the value channel, as a scalar head with a spread gives it.

The channel holds normalised values, so in raw units the distribution is that of
``inverse(Z)`` with Z normal: normal again where the normalisation is linear,
something skew under ``signed-log``.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from numtok.encoding.normalizers.base import Scaling, width_between
from numtok.models.distributions import normal, piecewise
from numtok.models.distributions.peaks import raw_peaks
from numtok.models.distributions.predictive import Floats, Predictive, checked, unscaled

# Corners for what has no closed form, in deviations. Its error falls with the square of the step.
_GRID = np.linspace(-12, 12, 4801)
_HEIGHTS = normal.cumulative(_GRID)
_HEIGHTS[[0, -1]] = 0.0, 1.0


@dataclass(frozen=True, eq=False)
class Gaussian(Predictive):
    """``n`` normal distributions of normalised values; answers are in raw units, without atoms.

    >>> one = Gaussian(np.array([1.0]), 0.5, FittedNormalizer(Scale(5), {"factor": 0.01}))
    >>> one.mean(), one.quantiles([0.975])  # 1 and 1.97998 in the channel
    (array([100.]), array([[197.99819923]]))

    Raises ValueError unless every deviation is positive.
    """

    center: Floats  # [n], normalised
    deviation: Floats | float  # [n], or one for all; normalised
    normalizer: Scaling

    def __post_init__(self) -> None:
        if not (np.asarray(self.deviation) > 0).all():
            raise ValueError("a deviation must be positive")

    def log_density(self, values: Floats) -> Floats:
        finite = np.isfinite(values)
        inside = np.where(finite, values, 0.0)
        logs = normal.log_density(self._standardised(inside)) - np.log(self.deviation)
        return np.where(finite, logs + self.normalizer.log_slope(inside), -np.inf)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        ends = self._standardised(low), self._standardised(high)
        return normal.log_interval(
            *ends, width_between(self.normalizer, low, high) / self.deviation
        )

    def cdf(self, values: Floats) -> Floats:
        return normal.cumulative(self._standardised(values))

    def quantiles(self, levels: Sequence[float]) -> Floats:
        standard = NormalDist()
        return self._raw(np.array([standard.inv_cdf(level) for level in checked(levels).tolist()]))

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        return self._raw(rng.standard_normal((len(self.center), count)))

    def mean(self) -> Floats:
        """See the base. Exact under a linear normalisation.

        Else numerical, to some 1e-5 of the spread, from the 12 deviations around the center; not
        finite where these leave the range of float64.
        """
        if self.normalizer.linear:
            return self.normalizer.inverse(self.center)
        return piecewise.means(self._corners())

    def mode(self) -> Floats:
        """See the base: the center, unless the normalization is not linear."""
        if self.normalizer.linear:
            return self.normalizer.inverse(self.center)
        deviations = np.broadcast_to(self.deviation, self.center.shape)
        return raw_peaks(self, self.normalizer, self.center[:, None], deviations[:, None])

    def crps(self, values: Floats) -> Floats:
        """See the base. Closed form (Gneiting and Raftery 2007, equation 21) where linear.

        Else numerical, as :meth:`mean`.
        """
        if not self.normalizer.linear:
            return piecewise.scores(self._corners(), values)
        unit = np.exp(-self.normalizer.log_slope(np.zeros(len(values))))  # raw, of 1 normalised
        t = self._standardised(values)
        score = normal.mean_distance(t) - 1 / math.sqrt(math.pi)
        return np.asarray(unit * self.deviation * score, np.float64)

    def _standardised(self, values: Floats) -> Floats:
        """float64[n]: raw values in deviations from the center."""
        return (self.normalizer.forward(values) - self.center) / self.deviation

    def _raw(self, deviations: Floats) -> Floats:
        """float64[n, q]: what lies so many deviations (float64[q] or [n, q]) from each center."""
        spread = np.reshape(self.deviation, (-1, 1)) * deviations
        points = self.center[:, None] + spread
        return unscaled(self.normalizer, points)

    def _corners(self) -> Iterator[tuple[Floats, Floats]]:
        """float64[4801] each, for each of the ``n``: raw values and the distribution function, at
        :data:`_GRID`."""
        deviations = np.broadcast_to(self.deviation, self.center.shape)
        for center, deviation in zip(self.center, deviations, strict=True):
            yield self.normalizer.inverse(center + deviation * _GRID), _HEIGHTS
