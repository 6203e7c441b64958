"""The Harrell-Davis estimator: a quantile from draws, as a weighted mean of all of them in order.

It is the expected value of the order statistic that the quantile stands for, over bootstrap
resamples, and varies less from draw to draw than the draw in the middle. Decoding-based
Regression (Section 3.3) reads a median off sampled decodings with it.
"""

from functools import lru_cache

import numpy as np
from scipy.special import betainc

from numtok.models.distributions.predictive import Floats, checked

_NEGLIGIBLE = 2.0**-53  # a weight below it is none: what float64 rounds away of the sum of all


def harrell_davis(values: Floats, level: float = 0.5) -> Floats:
    """float64[n]: the quantile of each row of draws, float64[n, s].

    Of ``s`` draws in order the i-th has the weight I(i / s) - I((i - 1) / s), where I is the
    distribution function of Beta((s + 1) level, (s + 1) (1 - level)) (Harrell and Davis 1982).
    A weight below 2^-53 counts as 0, so that one absurd draw far out in the tail does not carry
    the estimate away. NaN draws are left out, row by row; NaN where no draw is left.

    Raises ValueError unless the level lies between 0 and 1.

    >>> harrell_davis(np.array([[3.0, 1.0, 2.0, 9.0], [4.0, np.nan, 6.0, np.nan]])).round(6)
    array([3.132925, 5.      ])
    """
    [level] = checked([level]).tolist()
    ordered = np.sort(values, axis=1)  # NaN last
    counts = np.count_nonzero(~np.isnan(values), axis=1)
    found = np.full(len(values), np.nan)
    for count in np.unique(counts[counts > 0]).tolist():
        rows, weights = counts == count, _weights(count, level)
        counting = np.flatnonzero(weights)  # 0 times infinity is no number
        with np.errstate(invalid="ignore"):  # of both infinities the sum is NaN
            # Not BLAS: the same bits, however many threads it would take.
            found[rows] = np.einsum("ns,s->n", ordered[rows][:, counting], weights[counting])
    return found


@lru_cache(maxsize=64)
def _weights(count: int, level: float) -> Floats:
    """float64[count], their sum 1."""
    a, b = (count + 1) * level, (count + 1) * (1 - level)
    weights: Floats = np.diff(betainc(a, b, np.linspace(0, 1, count + 1)))
    weights[weights < _NEGLIGIBLE] = 0.0
    weights /= weights.sum()
    weights.flags.writeable = False  # it is kept for the next call
    return weights
