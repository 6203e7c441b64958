"""What the number of its tokens tells of a number, where a scheme's numbers have several lengths.

A masked number has as many masks as tokens, so a model that fills them in knows so much before it
knows anything (xVal, Appendix B.3).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints


@dataclass(frozen=True)
class OfLength:
    """The numbers of one length: their share of all, their mean and standard deviation."""

    tokens: int
    share: float
    mean: float
    deviation: float


@dataclass(frozen=True)
class LengthLeakage:
    """What the lengths of some numbers tell.

    numbers
        How many of them were looked at.
    groups
        By length, the shortest numbers first.
    variance
        The share of the variance of the values that the mean by length explains: R2, adjusted for
        as many means as there are lengths (Theil 1961), because few numbers lie close to means of
        their own whatever their length; 0 where it would be less. None where the values do not
        vary, or there are no more of them than lengths.
    bits
        Mutual information of length and number: the entropy of the lengths, because a number as
        written has one length.
    """

    numbers: int
    groups: tuple[OfLength, ...]
    variance: float | None
    bits: float


def length_leakage(
    values: Floats, lengths: NDArray[np.int32], weights: Ints
) -> LengthLeakage | None:
    """Of numbers [n] with their tokens, each standing for ``weights`` equal ones; those that are
    not finite are left out. None without any.

    >>> one = length_leakage(np.array([1.0, 3.0, 12.0]), np.array([1, 1, 2]), np.array([1, 1, 2]))
    >>> [(of.tokens, of.share, of.mean, of.deviation) for of in one.groups]
    [(1, 0.5, 2.0, 1.0), (2, 0.5, 12.0, 0.0)]
    >>> one.bits, round(one.variance, 3)  # of 25.5, 0.5 is left; 3 numbers, 2 means
    (1.0, 0.961)
    """
    finite = np.isfinite(values) & (weights > 0)
    if not finite.any():
        return None
    values, lengths, weights = values[finite], lengths[finite], weights[finite]
    size = float(np.abs(values).max()) or 1.0  # squares of scaled values stay within float64
    groups, within = [], 0.0
    for tokens in np.unique(lengths).tolist():
        of = lengths == tokens
        mean, variance = _moments(values[of] / size, weights[of])
        share = float(weights[of].sum() / weights.sum())
        groups.append(OfLength(tokens, share, mean * size, float(np.sqrt(variance)) * size))
        within += share * variance
    _, whole = _moments(values / size, weights)
    shares = np.array([of.share for of in groups])
    numbers, means = len(values), len(groups)
    explained = None
    if whole > 0 and numbers > means:
        explained = max(0.0, 1 - within / whole * (numbers - 1) / (numbers - means))
    return LengthLeakage(
        numbers,
        tuple(groups),
        explained,
        float(-(shares * np.log2(shares)).sum()) + 0.0,
    )


def _moments(values: Floats, weights: Ints) -> tuple[float, float]:
    """Mean and variance."""
    mean = float(np.average(values, weights=weights))
    return mean, float(np.average(np.square(values - mean), weights=weights))
