"""Means and medians of a column, as functions of weights.

Each function takes float64[n] values and returns a statistic, a function from
float64[r, n] weights to float64[r].
"""

import numpy as np

from numtok.arrays import Floats
from numtok.metrics._bootstrap import Statistic


def dot(weights: Floats, values: Floats) -> Floats:
    """Return ``weights @ values``, identical to the last bit for any number of threads.

    The digests of reports require identical bits, which BLAS libraries do not guarantee.
    """
    product: Floats = np.einsum("rn,n->r", weights, values)
    return product


def mean(values: Floats) -> Statistic:
    """Return the weighted mean as a statistic. It is NaN for resamples that contain a value that is
    not finite.

    >>> mean(np.array([1.0, 4.0]))(np.array([[2.0, 1.0]]))
    array([2.])
    """
    infinite = ~np.isfinite(values)
    finite = np.where(infinite, 0.0, values)
    # Sums of the largest values would overflow. Only these are scaled: small ones would lose
    # digits.
    scale = 2.0**64 if np.abs(finite).max() > 2.0**950 else 1.0
    scaled = finite / scale

    def statistic(weights: Floats) -> Floats:
        means: Floats = dot(weights, scaled) / weights.sum(axis=1) * scale
        if infinite.any():
            means[dot(weights, infinite.astype(np.float64)) > 0] = np.nan
        return means

    return statistic


def median(values: Floats) -> Statistic:
    """Return the weighted median as a statistic. For an even count, it is the mean of the two
    middle values.

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
    """Return |prediction - truth| / |truth|, float64[n]. For a true value of 0, the error is 0 if
    the prediction is 0, and infinity otherwise."""
    errors = np.abs(prediction - truth)
    relative = errors / np.abs(truth)
    # The difference of two huge numbers of opposite sign overflows; their ratio does not.
    relative = np.where(np.isinf(errors), np.abs(prediction / truth) + 1, relative)
    return np.where(prediction == truth, 0.0, relative)
