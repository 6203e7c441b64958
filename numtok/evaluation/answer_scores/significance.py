"""Significance of paired differences: a permutation test, Holm's correction and the minimal
detectable difference."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr, ndtr, ndtri

from numtok.arrays import Floats, Ints

_DRAWS = 9999  # random swaps in a permutation test; 10,000 with the observed assignment
_FEW = 12  # most clusters for which all swaps are enumerated
_MANY = 2000  # fewest clusters for which the normal approximation is used
POWER, LEVEL = 0.8, 0.05


def permutation_test(differences: Floats, clusters: Ints | None = None) -> float:
    """Return the two-sided p-value of a paired permutation test of a mean difference.

    differences
        float64[n]: score of the first model minus that of the second, for each row.
    clusters
        int64[n]: cluster of each row; None if each row is its own cluster.

    If the models do not differ, their answers can be swapped in any set of clusters. The p-value is
    the fraction of such swaps for which the total difference is at least as large, in absolute
    value, as the observed one. If all nonzero differences have the same absolute value, as for
    right and wrong answers without clusters, this is McNemar's exact test (1947).

    The p-value is exact in that case, and if at most 12 clusters have a nonzero difference. For
    2,000 or more such clusters, it is computed from the normal distribution with the same variance;
    otherwise, it is estimated from 10,000 random swaps.

    In this example, nine rows are right only for the first model, and one only for the second:

    >>> permutation_test(np.array([1.0] * 9 + [-1.0] + [0.0] * 90))
    0.021484375
    """
    totals = _totals(differences, clusters)
    totals = totals[totals != 0]
    n, observed = len(totals), abs(float(totals.sum()))
    if not n:
        return 1.0
    sizes = np.abs(totals)
    if np.ptp(sizes) <= 1e-12 * sizes.max():
        fewer = min(int((totals > 0).sum()), int((totals < 0).sum()))
        return min(1.0, 2 * float(bdtr(fewer, n, 0.5)))
    if n >= _MANY:
        return 2 * float(ndtr(-observed / math.sqrt(float(np.square(totals).sum()))))
    enough = observed - 1e-12 * float(sizes.sum())  # sums that differ by rounding are equal
    if n <= _FEW:
        signs = (np.arange(1 << n)[:, None] >> np.arange(n)) % 2 * 2.0 - 1
        return float((np.abs(np.einsum("rn,n->r", signs, totals)) >= enough).mean())
    generator = np.random.default_rng(0)
    at_least = 1  # the observed assignment itself
    for _ in range(0, _DRAWS, 1111):
        signs = generator.integers(0, 2, (1111, n)) * 2.0 - 1
        at_least += int((np.abs(np.einsum("rn,n->r", signs, totals)) >= enough).sum())
    return at_least / (_DRAWS + 1)


def detectable_difference(differences: Floats, clusters: Ints | None = None) -> float | None:
    """Return the minimal detectable difference: the smallest true mean difference that a two-sided
    test at the 5% level detects with a probability of 80%.

    It is (1.960 + 0.842) times the standard error of the mean of ``differences`` [n], which takes
    the ``clusters`` [n] of rows into account. Returns None if the differences do not vary, or if
    there are fewer than two clusters.

    >>> detectable_difference(np.array([1.0, 0.0, 0.0, -1.0] * 25))
    0.19909...
    """
    residuals = _totals(differences - differences.mean(), clusters)
    count = len(residuals)
    if count < 2:
        return None
    variance = float(np.square(residuals).sum()) * count / (count - 1)
    error = math.sqrt(variance) / len(differences)
    return float(ndtri(1 - LEVEL / 2) + ndtri(POWER)) * error or None


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for multiple comparisons by Holm's method (1979). None stays None.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        adjusted[index] = largest
    return adjusted


def _totals(values: Floats, clusters: Ints | None) -> Floats:
    """Return the sum of the values of each cluster."""
    if clusters is None:
        return values
    members = np.unique(clusters, return_inverse=True)[1]
    totals: Floats = np.bincount(members, values).astype(np.float64)
    return totals
