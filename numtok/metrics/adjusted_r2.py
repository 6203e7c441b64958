"""adjusted-r2: R2 with a penalty for the number of predictors."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats
from numtok.declaration import setting
from numtok.metrics._squares import relative_mse
from numtok.metrics.base import UP_TO_ONE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class AdjustedR2(Metric):
    """Adjusted R2: 1 - (1 - R2) (n - 1) / (n - p - 1).

    p
        Number of predictors. xVal's Table 2 reports "adjusted R2" without stating this number. The
        default of 1 corresponds to a regression of the true values on the predictions. With more
        than a few thousand numbers, p hardly affects the result.

    >>> AdjustedR2().plain(Predictions.of([1, 3, 5, 7], [1, 3, 5, 8]))  # R2 is 0.95
    0.925
    """

    revision = 1
    source = "xVal, Table 2"
    better = "higher"
    bounds = UP_TO_ONE
    undefined = (
        "the true values are constant, their spread is negligible next to the errors, or there are "
        "fewer than p + 2 numbers"
    )
    p: int = setting(1, at_least=1)

    def statistic(self, answers: Predictions) -> Statistic:
        unexplained = relative_mse(answers.truth, answers.prediction)

        def adjusted(weights: Floats) -> Floats:
            n = weights.sum(axis=1)
            freedom = np.where(n > self.p + 1, n - self.p - 1, np.nan)
            penalty: Floats = (n - 1) / freedom
            return 1 - unexplained(weights) * penalty

        return adjusted
