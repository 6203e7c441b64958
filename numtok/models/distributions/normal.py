"""The standard normal distribution on whole arrays, with its digits kept in both tails.

All of it rests on ``exp(y^2) erfc(y)``, which has no tails: ``erfcx`` of scipy. Its ``ndtr`` and
``log_ndtr`` lose digits far out (a relative error of 2e-13 against 1e-15 and 6e-14 here).
"""

import math

import numpy as np
from scipy.special import erfcx

from numtok.models.distributions.predictive import Floats

_ROOT_2 = math.sqrt(2)
_LOG_ROOT_2_PI = math.log(2 * math.pi) / 2
_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_UNDERFLOW = 40.0  # the tail beyond is less than the least float64
_NARROW = 0.02  # an interval so much narrower than the scale on which the density changes


def cumulative(t: Floats) -> Floats:
    """P(Z <= t), of any shape; relative error below 1e-14, in the lower tail too.

    >>> cumulative(np.array([-10.0, 0.0])).tolist()
    [7.619853024160527e-24, 0.5]
    """
    y = np.minimum(np.abs(t), _UNDERFLOW)
    tail: Floats = erfcx(y / _ROOT_2) * _exp_minus_half_square(y) / 2
    return np.where(t < 0, tail, 1 - tail)


def log_density(t: Floats) -> Floats:
    """The logarithm of the density, of any shape; -inf at the infinities."""
    with np.errstate(over="ignore"):
        logs: Floats = -np.square(t) / 2 - _LOG_ROOT_2_PI
    return logs


def log_cumulative(t: Floats) -> Floats:
    """log P(Z <= t), of any shape, where the probability itself would underflow too.

    >>> log_cumulative(np.array([-1e5])).item()
    -5000000012.431864
    """
    y = np.abs(t) / _ROOT_2
    scaled: Floats = erfcx(y) / 2
    with np.errstate(over="ignore", divide="ignore"):
        below = np.log(scaled) - np.square(t) / 2
        above = np.log1p(-scaled * np.exp(-np.square(t) / 2))
    return np.where(t < 0, below, above)


def log_interval(low: Floats, high: Floats, width: Floats) -> Floats:
    """log P(low < Z <= high), of any shape; -inf for a width that is not positive, NaN for a NaN.

    ``width`` is high - low, which a caller may know to more digits than its ends have.

    Far from zero it is a difference of the tails of one side, across zero what two tails leave
    of 1, and where the interval is narrow its width times the density in the middle, with the
    first two terms by which the density bends:

        1 + w^2 (m^2 - 1) / 24 + w^4 (m^4 - 6 m^2 + 3) / 1920

    >>> low, high = np.array([30.0, 1.0]), np.array([np.inf, 1.0])
    >>> log_interval(low, high, np.array([np.inf, 1e-20])).tolist()
    [-454.3212439563432, -47.47064039308559]
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        upper = low + high > 0  # the more of it lies there
        near, far = np.where(upper, -low, high), np.where(upper, -high, low)
        above, below = log_cumulative(near), log_cumulative(far)
        apart = above + np.log1p(-np.exp(below - above))
        middle = (low + high) / 2  # of two infinities NaN, which is not narrow
        bend = np.square(middle)
        bent = np.square(width) * (bend - 1) / 24
        bent += width**4 * (bend * bend - 6 * bend + 3) / 1920
        slim = np.log(width) + log_density(middle) + np.log1p(bent)
        logs = np.where(width * (1 + np.abs(middle)) < _NARROW, slim, apart)
    return np.where((width > 0) | np.isnan(low) | np.isnan(high), logs, -np.inf)


def mean_distance(t: Floats) -> Floats:
    """The mean of |Z - t|, of any shape: t (2 P(Z <= t) - 1) + 2 times the density at t.

    >>> mean_distance(np.array([0.0, 50.0])).tolist()  # the root of 2 / pi
    [0.7978845608028654, 50.0]
    """
    y = np.abs(t)
    half = np.minimum(y, _UNDERFLOW)
    bell = _exp_minus_half_square(half)
    return np.asarray(y + bell * (_ROOT_2_OVER_PI - half * erfcx(half / _ROOT_2)))


def _exp_minus_half_square(y: Floats) -> Floats:
    """``exp(-y^2 / 2)`` without what rounding y^2 would do to it: its upper half has a square
    that float64 holds."""
    upper = y.astype(np.float32).astype(np.float64)
    return np.exp(-upper * upper / 2) * np.exp((upper - y) * (upper + y) / 2)
