"""Mean squares and variances in full precision, as functions of weights.

Values are scaled by a power of two before they are squared, and the scale is kept
next to the result, so finite columns neither overflow nor underflow. One fast pass
computes all resamples. Resamples that may have lost digits (because they lack the one
value that dwarfs all others) are recomputed individually.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from numtok.arrays import Floats
from numtok.metrics._bootstrap import Statistic
from numtok.metrics._weighted import dot

_UNDERFLOW = 1e-280  # a mean of squares below this may have lost terms
_CANCELLATION = 1e-4  # a variance this small relative to the mean square has lost digits


class Squares(NamedTuple):
    """Mean squares of r resamples, stored as ``scaled * scale**2`` because they may exceed the
    range of float64."""

    scaled: Floats  # [r]
    scale: Floats  # [r] powers of two

    @property
    def value(self) -> Floats:
        """Mean squares [r]; infinite or 0 if they exceed the range of float64."""
        return self.scaled * self.scale * self.scale

    @property
    def root(self) -> Floats:
        """Root mean squares [r], which always fit into float64."""
        roots: Floats = np.sqrt(self.scaled) * self.scale
        return roots


def power_of_two(values: Floats) -> float:
    """Return a power of two near the largest magnitude of values [n], 1 if all are 0. Dividing by
    it is exact."""
    return 1.0 if not values.any() else float(np.ldexp(1.0, np.frexp(np.abs(values).max())[1] - 1))


def _again(values: Floats, weights: Floats, centre: bool) -> tuple[float, float]:
    """Return the mean square of one resample (about its mean if ``centre``) and its scale."""
    present = weights > 0
    values, weights = values[present], weights[present]
    if centre and values.min() == values.max():  # the mean may be off in the last bit
        return 0.0, 1.0
    if not values.any():
        return 0.0, 1.0
    scale = power_of_two(values)
    values = values / scale
    if centre:
        values = values - np.average(values, weights=weights)
        finer = power_of_two(values)
        scale, values = scale * finer, values / finer
    return float(np.average(np.square(values), weights=weights)), scale


def mean_square(values: Floats) -> Callable[[Floats], Squares]:
    """Return the mean square of float64[n] values as a function of weights.

    >>> mean_square(np.array([1e200, 7e200]))(np.ones((1, 2))).root
    array([5.e+200])
    """
    scale = power_of_two(values)
    squares = np.square(values / scale)

    def statistic(weights: Floats) -> Squares:
        means = dot(weights, squares) / weights.sum(axis=1)
        result = Squares(means, np.full(len(weights), scale))
        if values.any():
            for row in np.flatnonzero(means < _UNDERFLOW):
                result.scaled[row], result.scale[row] = _again(values, weights[row], centre=False)
        return result

    return statistic


def variance(values: Floats) -> Callable[[Floats], Squares]:
    """Return the population variance of float64[n] values as a function of weights; exactly 0 if
    all values are equal.

    >>> variance(np.array([1.0, 1.0, 4.0]))(np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 0.0]])).value
    array([2., 0.])
    """
    constant = values.min() == values.max()
    scale = 1.0 if constant else power_of_two(values)
    centred = values / scale
    centred = np.zeros(len(values)) if constant else centred - centred.mean()
    squares = np.square(centred)

    def statistic(weights: Floats) -> Squares:
        total = weights.sum(axis=1)
        means = dot(weights, squares) / total
        variances = means - np.square(dot(weights, centred) / total)
        result = Squares(variances, np.full(len(weights), scale))
        if not constant:
            lost = (variances < _CANCELLATION * means) | (means < _UNDERFLOW)
            for row in np.flatnonzero(lost):
                result.scaled[row], result.scale[row] = _again(values, weights[row], centre=True)
        return result

    return statistic


def relative_mse(truth: Floats, prediction: Floats) -> Statistic:
    """Return the mean squared error of predictions [n] divided by the variance of the true values
    [n], as a function of weights; NaN if the variance is 0."""
    error, spread = mean_square(prediction - truth), variance(truth)

    def statistic(weights: Floats) -> Floats:
        above, below = error(weights), spread(weights)
        ratio = above.scaled / np.where(below.scaled > 0, below.scaled, np.nan)
        scale = above.scale / below.scale
        relative: Floats = ratio * scale * scale
        return relative

    return statistic
