"""Means and medians of a column, as functions of weights.

Each function takes float64[n] values and returns a statistic: float64[r, n]
weights to float64[r].
"""

import numpy as np

from numtok.arrays import Floats
from numtok.metrics._bootstrap import Statistic


def dot(weights: Floats, values: Floats) -> Floats:
    """``weights @ values``, but the same to the last bit with any number of threads: a report
    has a digest, and a BLAS does not promise that."""
    product: Floats = np.einsum("rn,n->r", weights, values)
    return product


def mean(values: Floats) -> Statistic:
    """The weighted mean; NaN for a resample with a value that is not finite.

    >>> mean(np.array([1.0, 4.0]))(np.array([[2.0, 1.0]]))
    array([2.])
    """
    infinite = ~np.isfinite(values)
    finite = np.where(infinite, 0.0, values)
    # The sum of the largest would overflow. Only for these: small ones would lose digits.
    scale = 2.0**64 if np.abs(finite).max() > 2.0**950 else 1.0
    scaled = finite / scale

    def statistic(weights: Floats) -> Floats:
        means: Floats = dot(weights, scaled) / weights.sum(axis=1) * scale
        if infinite.any():
            means[dot(weights, infinite.astype(np.float64)) > 0] = np.nan
        return means

    return statistic


def median(values: Floats) -> Statistic:
    """The weighted median; of an even number, the mean of the two in the middle.

    >>> median(np.array([5.0, 1.0, 3.0]))(np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 1.0]]))
    array([3., 2.])
    """
    order = np.argsort(values)
    ordered = values[order]

    def statistic(weights: Floats) -> Floats:
        counts = np.cumsum(np.take(weights, order, axis=1), axis=1)
        total = counts[:, -1]
        ranks = (total + 1) // 2, total // 2 + 1  # equal if total is odd
        low, high = (ordered[(counts < rank[:, None]).sum(axis=1)] for rank in ranks)
        middle: Floats = np.where(low == high, low, low / 2 + high / 2)
        return middle

    return statistic


def relative_errors(truth: Floats, prediction: Floats) -> Floats:
    """|prediction - truth| / |truth|, float64[n]; where the truth is 0, 0 if the prediction is 0 as
    well and infinity if not."""
    errors = np.abs(prediction - truth)
    relative = errors / np.abs(truth)
    # Two huge numbers of opposite sign: their difference overflows, their ratio does not.
    relative = np.where(np.isinf(errors), np.abs(prediction / truth) + 1, relative)
    return np.where(prediction == truth, 0.0, relative)
