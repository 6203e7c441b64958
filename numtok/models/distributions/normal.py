"""The standard normal distribution on whole arrays, with its digits kept in both tails.

All of it rests on ``exp(y^2) erfc(y)``, which has no tails: with ``(1 + 2 y)`` in front it is a
smooth function of ``u = (y - 3) / (y + 3)`` from -1 to 1, and one polynomial in ``u`` serves the
whole line. This way of reducing it is that of Shepherd and Laframboise (1981); the coefficients
are the Chebyshev series of degree 24, worked out with 60 digits and rearranged into powers.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROOT_2 = math.sqrt(2)
_LOG_ROOT_2_PI = math.log(2 * math.pi) / 2
_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_CENTER = 3.0
# fmt: off
_POWERS = np.array(
    [
        1.2530080582697296, -0.13562110612458117, -0.0475622943534492, 0.1296451587027594,
        -0.11927366341538638, 0.0683080273440099, -0.02377051491717134,
        0.0025293918156939696, 0.0018886903449991718, -0.0007798322696543306,
        -0.00010515971958448065, 0.0001250993424583729, 4.949196649968345e-06,
        -2.0100542268525612e-05, -7.308281468783614e-07, 3.472370944977168e-06,
        3.5576086684080595e-07, -6.166011460398726e-07, -1.4047654315428462e-07,
        1.0183620603842736e-07, 4.1064013667940355e-08, -1.3312919661038687e-08,
        -8.217595058711455e-09, 9.862533510345587e-10, 8.393734858690877e-10,
    ]
)
# fmt: on
_UNDERFLOW = 40.0  # the tail beyond is less than the least float64
_NARROW = 0.02  # an interval so much narrower than the scale on which the density changes


def scaled_erfc(y: Floats) -> Floats:
    """``exp(y^2) erfc(y)`` for y >= 0, of any shape; relative error below 1e-15.

    >>> scaled_erfc(np.array([0.0, 1.0, 1e200])).tolist()
    [1.0, 0.42758357615580694, 5.641895835477563e-201]
    """
    y = np.minimum(y, 1e300)  # so that infinity over infinity is 1
    u = (y - _CENTER) / (y + _CENTER)
    total = np.full_like(u, _POWERS[-1])
    for power in _POWERS[-2::-1]:
        total *= u
        total += power
    total /= 1 + 2 * y
    return total


def cumulative(t: Floats) -> Floats:
    """P(Z <= t), of any shape; relative error below 1e-14, in the lower tail too.

    >>> cumulative(np.array([-10.0, 0.0])).tolist()
    [7.619853024160527e-24, 0.5]
    """
    y = np.minimum(np.abs(t), _UNDERFLOW)
    tail = scaled_erfc(y / _ROOT_2) * _exp_minus_half_square(y) / 2
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
    scaled = scaled_erfc(y) / 2
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
    distances: Floats = y + bell * (_ROOT_2_OVER_PI - half * scaled_erfc(half / _ROOT_2))
    return distances


def _exp_minus_half_square(y: Floats) -> Floats:
    """``exp(-y^2 / 2)`` without what rounding y^2 would do to it: its upper half has a square
    that float64 holds."""
    upper = y.astype(np.float32).astype(np.float64)
    result: Floats = np.exp(-upper * upper / 2) * np.exp((upper - y) * (upper + y) / 2)
    return result
