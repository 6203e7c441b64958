"""slope: of the least-squares line of predictions on truths."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats
from numtok.metrics._weighted import dot
from numtok.metrics.base import Metric, Predictions, Statistic


@dataclass(frozen=True)
class Slope(Metric):
    """Cov(truth, prediction) / Var(truth): 1 where predictions follow the truth, 0 where they do
    not move with it.

    >>> Slope().plain(Predictions.of([0, 1, 2], [5, 5.5, 6]))
    0.5
    """

    revision = 1
    source = "xVal, Figure 5, in one number"
    better = "neither"
    undefined = "all truths are the same, or float64 cannot hold their squares"

    def statistic(self, answers: Predictions) -> Statistic:
        # In units of their size, from their middle: little is lost and nothing overflows.
        x, y = answers.truth, answers.prediction
        size_x, size_y = (max(float(np.abs(one).max()), 1e-300) for one in (x, y))
        x, y = x / size_x, y / size_y
        x, y = x - x.mean(), y - y.mean()

        def statistic(weights: Floats) -> Floats:
            total = weights.sum(axis=1)
            mean_x, mean_y = dot(weights, x) / total, dot(weights, y) / total
            both = dot(weights, x * y) / total - mean_x * mean_y
            spread = dot(weights, x * x) / total - mean_x * mean_x
            spread = np.where(spread > 1e-14 * float(np.square(x).max()), spread, np.nan)
            found: Floats = both / spread * (size_y / size_x)
            return found

        return statistic
