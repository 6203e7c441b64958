"""kendall-tau: rank correlation (Kendall's tau-b) between predictions and true values."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Bools, Floats, Ints
from numtok.metrics._weighted import dot
from numtok.metrics.base import Metric, Predictions, Statistic

_ALL_PAIRS = 500  # up to this many numbers, all pairs are kept in three matrices
_FEW, _BY_CLUSTERS = 64, 1 << 20  # limits on clusters, and numbers x clusters, for exact replicates

Ranks = Ints  # [n] dense, from 0: equal values have equal ranks


def _ranks(values: Floats | Ranks) -> Ranks:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _row_sums(x: Ranks, y: Ranks, among: Bools) -> Floats:
    """Return, for each i, the sum over j ``among`` of sign(x_i - x_j) sign(y_i - y_j).

    Takes O(n log^2 n) time. Two different ranks in x agree in their upper bits and first differ at
    one bit. Each bit splits every block of ranks into a lower and an upper half, so that every pair
    with x_i > x_j occurs once, with i in an upper half and j in the lower half of the same block.
    Bisection in the sorted (block, y) counts how many of those have a smaller and a larger y.
    """
    sums = np.zeros(len(x), np.int64)
    width = int(y.max()) + 1
    for bit in range(int(x.max()).bit_length()):
        upper = (x >> bit) & 1 == 1
        key = (x >> (bit + 1)) * width + y
        for side, sign in ((upper, 1), (~upper, -1)):
            opposite, own = np.sort(key[~side & among]), key[side]
            start = own - y[side]
            smaller = np.searchsorted(opposite, own) - np.searchsorted(opposite, start)
            larger = np.searchsorted(opposite, start + width) - np.searchsorted(
                opposite, own, "right"
            )
            sums[side] += sign * (smaller - larger)
    return sums.astype(np.float64)


def _pair_sums(x: Ranks, y: Ranks, cluster: Ranks | None) -> Statistic:
    """Return the sum over pairs (i, j) of w_i w_j sign(x_i - x_j) sign(y_i - y_j), as a statistic.

    All numbers of a cluster have the same weight.
    """
    if len(x) <= _ALL_PAIRS:
        pairs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y)).astype(float)
        return lambda weights: ((weights @ pairs) * weights).sum(axis=1)  # whole numbers: exact
    most = min(_FEW, _BY_CLUSTERS // len(x))
    if cluster is not None and (count := int(cluster.max()) + 1) <= most:
        rows_of = (_row_sums(x, y, cluster == each) for each in range(count))
        between = np.stack([np.bincount(cluster, rows, count) for rows in rows_of])
        first = np.unique(cluster, return_index=True)[1]
        return lambda weights: ((weights[:, first] @ between) * weights[:, first]).sum(axis=1)
    rows = _row_sums(x, y, np.ones(len(x), np.bool_))
    total = rows.sum()
    return lambda weights: 2 * dot(weights, rows) - total


@dataclass(frozen=True)
class KendallTau(Metric):
    """Kendall's tau-b: number of concordant minus number of discordant pairs, divided by the
    geometric mean of two counts: pairs not tied in the true values, and pairs not tied in the
    predictions.

    The value is exact for any n. Bootstrap replicates are exact for up to 500 numbers, and for up
    to 64 clusters if the number of numbers times the number of clusters is at most 2^20 (about a
    million). For larger inputs, where an exact replicate would take O(n log n) time, replicates are
    approximated by a first-order expansion in the weights around the value (the Hajek projection of
    a U-statistic). For n drawn numbers or clusters, the error of this approximation is of order
    1/n, whereas the width of the interval is of order 1/sqrt(n).

    >>> KendallTau().plain(Predictions.of([1, 2, 3, 4], [1, 3, 2, 4]))  # 5 pairs in order, 1 not
    0.6666666666666666
    """

    revision = 1
    source = "Kendall (1945); Decoding-based Regression, Table 1"
    better = "higher"
    bounds = (-1.0, 1.0)
    undefined = "the true values or the predictions are constant, or a prediction is infinite"

    def statistic(self, answers: Predictions) -> Statistic:
        x, y = _ranks(answers.truth), _ranks(answers.prediction)
        missing = np.isinf(answers.prediction).astype(np.float64)  # it has no rank
        cluster = None if answers.sample is None else _ranks(answers.sample)
        concordance, in_x, in_y = (_pair_sums(*both, cluster) for both in ((x, y), (x, x), (y, y)))

        def tau(weights: Floats) -> Floats:
            untied = np.sqrt(in_x(weights) * in_y(weights))
            ratio = concordance(weights) / np.where(untied > 0, untied, np.nan)
            known = dot(weights, missing) == 0
            clipped: Floats = np.where(known, np.clip(ratio, -1.0, 1.0), np.nan)
            return clipped

        return tau
