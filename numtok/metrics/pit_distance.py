"""pit-distance: how far the predicted probabilities of lying below the truth are from uniform."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats
from numtok.metrics.base import NOT_NEGATIVE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class PitDistance(Metric):
    """The distance by which probability integral transforms must be moved, on average, to be
    uniform: of u_i = P(X <= y_i) in order, the integral over q from 0 to 1 of |u(q) - q|, where
    u(q) is the smallest u_i that a share q of all does not exceed (Wasserstein's distance).

    Calibrated is 0, up to chance: of n numbers some 0.3 / sqrt(n) is left. All truths in the
    middle (spreads too wide) give 0.25, half of them at either end (too narrow) likewise, and all
    at one end 0.5. That is so of distributions that are continuous. One that has atoms (a token for
    zero, few different draws) puts its truths at their upper ends: it has more than 0 though it be
    calibrated, up to 0.5 where it is sure and right.

    >>> PitDistance().plain(Predictions.of([0, 0], [0, 0], pit=[0.5, 0.5]))
    0.25
    """

    revision = 1
    source = "Dawid (1984); Gneiting, Balabdaoui & Raftery (2007), Section 3.1"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "the distribution function at a truth is not known"
    needs = ("pit",)

    def statistic(self, answers: Predictions) -> Statistic:
        assert answers.pit is not None
        order = np.argsort(answers.pit)
        ordered = answers.pit[order]

        def distance(weights: Floats) -> Floats:
            counts = np.take(weights, order, axis=1)
            ends = np.cumsum(counts, axis=1)
            total = ends[:, -1:]
            last, first = ends / total, (ends - counts) / total
            # From first to last of the shares u is this one; that splits them at most in two.
            split = np.clip(ordered, first, last)
            apart = (np.square(split - first) + np.square(last - split)) / 2
            apart += np.abs(ordered - split) * (last - first)
            distances: Floats = apart.sum(axis=1)
            return distances

        return distance
