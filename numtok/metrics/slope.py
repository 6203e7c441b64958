"""slope: slope of the least-squares line of predictions on true values."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats
from numtok.metrics._squares import power_of_two
from numtok.metrics._weighted import dot
from numtok.metrics.base import Metric, Predictions, Statistic


@dataclass(frozen=True)
class Slope(Metric):
    """Slope of the least-squares line of predictions on true values, Cov(truth, prediction) /
    Var(truth). It is 1 for perfect predictions, and about 0 for predictions that do not depend on
    the true values.

    >>> Slope().plain(Predictions.of([0, 1, 2], [5, 5.5, 6]))
    0.5
    """

    revision = 1
    source = "xVal, Figure 5, summarized as one number"
    better = "neither"
    undefined = "all true values are equal, or float64 cannot hold their squares"

    def statistic(self, answers: Predictions) -> Statistic:
        # Scaled and centered, so that little precision is lost and nothing overflows.
        x, y = answers.truth, answers.prediction
        size_x, size_y = power_of_two(x), power_of_two(y)
        x, y = x / size_x, y / size_y
        x, y = x - x.mean(), y - y.mean()

        def statistic(weights: Floats) -> Floats:
            total = weights.sum(axis=1)
            mean_x, mean_y = dot(weights, x) / total, dot(weights, y) / total
            both = dot(weights, x * y) / total - mean_x * mean_y
            spread = dot(weights, x * x) / total - mean_x * mean_x
            spread = np.where(spread > 1e-14 * float(np.square(x).max()), spread, np.nan)
            slopes: Floats = both / spread * (size_y / size_x)
            return slopes

        return statistic
