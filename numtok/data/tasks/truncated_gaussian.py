"""truncated-gaussian: one density on [0, 1], whose histogram error is known in closed form."""

from dataclasses import dataclass
from math import erf, exp, log, pi, sqrt
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.data.tasks._draws import normal_quantiles, uniforms
from numtok.data.tasks.base import TableTask, TaskSplit

_MEAN, _DEVIATION = 0.5, 0.25
_CUT = 0.5 / _DEVIATION  # where [0, 1] ends, in deviations from the mean
_INSIDE = erf(_CUT / sqrt(2))  # the mass that is left


@dataclass(frozen=True)
class TruncatedGaussian(TableTask):
    """A normal distribution of mean 0.5 and deviation 0.25, cut off outside of [0, 1].

    The target does not depend on the one feature, x, which is 0 in every row. So what is learnt
    is one density f, and the error of a histogram of 2^k bins and N rows is known (Theorem 1)::

        integral of (f - histogram)^2
            =  2^-2k / 12 * slope_squared + 2^k / N - squared / N

    but for terms of 2^-4k and 2^-k / N, with the integrals over [0, 1] of f^2 (``squared``, the
    small term that the theorem leaves out) and of f'^2 (``slope_squared``).

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
        (place,) = uniforms(seed, split, index, rows, 1)
        quantiles = normal_quantiles(0.5 + _INSIDE * (place - 0.5))
        return np.zeros((rows, 1)), _MEAN + _DEVIATION * quantiles

    def log_density(self, x: Floats, y: Floats) -> Floats:
        """The natural logarithm of p(y | x) [n], x [n, 1]; -inf outside of [0, 1].

        >>> TruncatedGaussian().log_density(np.zeros((1, 1)), np.array([0.5])).round(4)
        array([0.5139])
        """
        z = (y - _MEAN) / _DEVIATION
        inside = -(z**2) / 2 - log(_DEVIATION * _INSIDE * sqrt(2 * pi))
        return np.where((y >= 0) & (y <= 1), inside, -np.inf)

    @property
    def squared(self) -> float:
        """The integral of f^2 over [0, 1].

        >>> round(TruncatedGaussian().squared, 4)
        1.2327
        """
        return erf(_CUT) / (2 * sqrt(pi) * _DEVIATION * _INSIDE**2)

    @property
    def slope_squared(self) -> float:
        """The integral of f'^2 over [0, 1].

        >>> round(TruncatedGaussian().slope_squared, 4)
        9.4523
        """
        moment = (sqrt(pi) / 2 * erf(_CUT) - _CUT * exp(-(_CUT**2))) / (2 * pi)
        return moment / (_DEVIATION**3 * _INSIDE**2)
