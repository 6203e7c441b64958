"""pit-distance: distance of the probability integral transforms (PIT) from uniform."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats
from numtok.metrics.base import NOT_NEGATIVE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class PitDistance(Metric):
    """Wasserstein distance between the probability integral transforms u_i = P(X <= y_i) and a
    uniform distribution: the integral of |u(q) - q| over q from 0 to 1, where u(q) is the
    q-quantile of the u_i. It is the average distance by which the u_i must be moved to be uniformly
    distributed.

    A calibrated model scores 0 except for random variation of about 0.3 / sqrt(n) for n numbers.
    The score is 0.25 if all true values lie in the middle of their predictive distributions (which
    are too wide) or half of them at each end (too narrow), and 0.5 if all lie at the same end.
    These values assume continuous distributions. A distribution with atoms (a token for zero, few
    distinct samples) puts its true values at the upper ends of the atoms, so it scores above 0 even
    if it is calibrated, and up to 0.5 if it is certain and correct.

    >>> PitDistance().plain(Predictions.of([0, 0], [0, 0], pit=[0.5, 0.5]))
    0.25
    """

    revision = 1
    source = "Dawid (1984); Gneiting, Balabdaoui & Raftery (2007), Section 3.1"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "the distribution function at a true value is unknown"
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
            # Between the quantiles first and last, u(q) is constant; it splits them at most once.
            split = np.clip(ordered, first, last)
            apart = (np.square(split - first) + np.square(last - split)) / 2
            apart += np.abs(ordered - split) * (last - first)
            distances: Floats = apart.sum(axis=1)
            return distances

        return distance
