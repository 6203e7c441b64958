"""truncated-gaussian: a density on [0, 1] whose histogram error has a closed form."""

from dataclasses import dataclass
from math import erf, exp, log, pi, sqrt
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.data.tasks._draws import normal_quantiles, uniforms
from numtok.data.tasks.base import TableTask, TaskSplit

_MEAN, _DEVIATION = 0.5, 0.25
_CUT = 0.5 / _DEVIATION  # half the width of [0, 1] in standard deviations
_INSIDE = erf(_CUT / sqrt(2))  # probability mass on [0, 1]


@dataclass(frozen=True)
class TruncatedGaussian(TableTask):
    """A normal distribution with mean 0.5 and standard deviation 0.25, truncated to [0, 1].

    The only feature, x, is 0 in every row, so a model learns a single density f. The error of a
    histogram with 2^k bins and N rows is known (Theorem 1 of Decoding-based Regression)::

        integral of (f - histogram)^2
            =  2^-2k / 12 * slope_squared + 2^k / N - squared / N

    up to terms of 2^-4k and 2^-k / N. ``squared`` is the integral of f^2 over [0, 1], a small term
    that the theorem omits, and ``slope_squared`` is the integral of f'^2.

    >>> x, y = TruncatedGaussian().unit(0, TaskSplit("train", 2), 0)
    >>> x.tolist(), y.round(3).tolist()
    ([[0.0], [0.0]], [0.086, 0.163])
    """

    revision = 1
    source = "Decoding-based Regression, section 3.4, Figures 2 and 3"
    unit_rows = 1 << 17
    digest = "b81b4e4783ac4265"
    notes: ClassVar[list[str]] = [
        "the target does not depend on the feature, which is 0 in every row"
    ]

    def unit(self, seed: int, split: TaskSplit, index: int) -> tuple[Floats, Floats]:
        rows = self.rows_of(split, index)
        (share,) = uniforms(seed, split, index, rows, 1)
        quantiles = normal_quantiles(0.5 + _INSIDE * (share - 0.5))
        return np.zeros((rows, 1)), _MEAN + _DEVIATION * quantiles

    def log_density(self, x: Floats, y: Floats) -> Floats:
        """Return the natural logarithm of p(y | x) [n] for x [n, 1] and y [n]; -inf outside [0, 1].

        >>> TruncatedGaussian().log_density(np.zeros((1, 1)), np.array([0.5])).round(4)
        array([0.5139])
        """
        z = (y - _MEAN) / _DEVIATION
        inside = -(z**2) / 2 - log(_DEVIATION * _INSIDE * sqrt(2 * pi))
        return np.where((y >= 0) & (y <= 1), inside, -np.inf)

    @property
    def squared(self) -> float:
        """Integral of f^2 over [0, 1], where f is the density of the target.

        >>> round(TruncatedGaussian().squared, 4)
        1.2327
        """
        return erf(_CUT) / (2 * sqrt(pi) * _DEVIATION * _INSIDE**2)

    @property
    def slope_squared(self) -> float:
        """Integral of f'^2 over [0, 1], where f' is the derivative of the density of the target.

        >>> round(TruncatedGaussian().slope_squared, 4)
        9.4523
        """
        moment = (sqrt(pi) / 2 * erf(_CUT) - _CUT * exp(-(_CUT**2))) / (2 * pi)
        return moment / (_DEVIATION**3 * _INSIDE**2)
