"""Mean and CRPS of distribution functions that consist of straight lines and jumps."""

from collections.abc import Iterable

import numpy as np

from numtok.models.distributions.predictive import Floats

#: The corners of distribution functions: points and heights, as passed to :func:`crps`.
Corners = Iterable[tuple[Floats, Floats]]


def means(functions: Corners) -> Floats:
    """Return float64[n]: the mean of each distribution, given its distribution function.

    It is not finite if a corner is infinite or the sum overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        integrals = [np.sum(np.diff(f) * (x[1:] / 2 + x[:-1] / 2)) for x, f in functions]
    return np.array(integrals, np.float64)


def scores(functions: Corners, values: Floats) -> Floats:
    """Return float64[n]: the CRPS of each distribution function for its value in ``values``."""
    with np.errstate(over="ignore", invalid="ignore"):
        pairs = zip(functions, values.tolist(), strict=True)
        return np.array([crps(x, f, value) for (x, f), value in pairs], np.float64)


def crps(x: Floats, f: Floats, value: float) -> float:
    """Return the exact CRPS of a distribution function F: the integral of (F(t) - 1{t >= value})^2.

    x, f
        float64[k]: points and heights of the corners of F. Both are ascending, and f rises from 0
        to 1. Two corners with the same x form a jump.

    On a line segment of width w from height a to height b, the integral of the square is
    w (a^2 + a b + b^2) / 3. F is used to the left of the value, and 1 - F to its right.

    >>> crps(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 1.5)  # uniform: 1/3, then 1/2 more
    0.8333333333333333
    """
    if not np.isfinite(value):
        return abs(value)
    inside = min(max(value, x[0]), x[-1])
    first, last = np.searchsorted(x, inside, "left"), np.searchsorted(x, inside, "right")
    if first < last:  # on a corner, or on both corners of a jump
        before, after = f[first], f[last - 1]
    else:
        before = after = np.interp(inside, x[first - 1 : first + 1], f[first - 1 : first + 1])
    left = _squared(np.append(x[:first], inside), np.append(f[:first], before))
    right = _squared(np.append(inside, x[last:]), 1 - np.append(after, f[last:]))
    return float(abs(value - inside) + left + right)


def _squared(x: Floats, f: Floats) -> float:
    """Return the integral of the square of the line through the corners."""
    a, b = f[:-1], f[1:]
    return float(np.sum(np.diff(x) * (a * a + a * b + b * b))) / 3
