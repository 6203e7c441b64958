"""Highest point of a density in raw units, for normalizations that are not linear.

A nonlinear normalization moves the peak: where raw values lie close together after it, the raw
density is low. Under ``signed-log`` the raw density of a wide Gaussian peaks near 0.
"""

import numpy as np

from numtok.encoding.normalizers.base import Scaling
from numtok.models.distributions.predictive import Floats, Predictive

_OFFSETS = np.linspace(-12, 12, 97)  # standard deviations around each start
_REFINEMENTS = 45  # each leaves two thirds of the bracket


def raw_peaks(one: Predictive, scaling: Scaling, starts: Floats, deviations: Floats) -> Floats:
    """Return the raw value with the highest density for each distribution, float64[n].

    A grid of 12 standard deviations to each side of the starts is searched, and the best grid point
    is refined. The normalized value of 0 is always a start, because slopes peak there.

    starts, deviations
        float64[n, s], normalized: centers of components, and their standard deviations.
    """
    zero = np.broadcast_to(scaling.forward(np.zeros(1)), (len(starts), 1))
    starts = np.concatenate([starts, zero], axis=1)
    deviations = np.concatenate([deviations, deviations.min(axis=1, keepdims=True)], axis=1)

    def height(points: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return one.log_density(scaling.inverse(points))

    best, step = starts[:, 0].copy(), deviations[:, 0].copy()
    highest = height(best)
    for center, deviation in zip(starts.T, deviations.T, strict=True):
        for offset in _OFFSETS.tolist():
            points = center + deviation * offset
            heights = height(points)
            better = heights > highest
            best[better], step[better] = points[better], deviation[better]
            highest[better] = heights[better]
    step = step * (_OFFSETS[1] - _OFFSETS[0])
    low, high = best - step, best + step
    for _ in range(_REFINEMENTS):
        third = (high - low) / 3
        rises = height(low + third) < height(high - third)
        low, high = np.where(rises, low + third, low), np.where(rises, high, high - third)
    refined = low / 2 + high / 2
    return scaling.inverse(np.where(height(refined) > highest, refined, best))
