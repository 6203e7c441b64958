"""r2: fraction of the variance of the true values that the predictions explain."""

from dataclasses import dataclass

from numtok.metrics._squares import relative_mse
from numtok.metrics.base import UP_TO_ONE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class R2(Metric):
    """Coefficient of determination: 1 - sum (y - prediction)^2 / sum (y - mean y)^2. No line is
    fitted, so bias and scaling errors lower the score, and poor predictions score below 0.

    >>> R2().plain(Predictions.of([1, 3], [1, 4]))
    0.5
    """

    revision = 1
    source = "Kvalseth (1985), the first of its eight definitions"
    better = "higher"
    bounds = UP_TO_ONE
    undefined = "the true values are constant, or their spread is negligible next to the errors"

    def statistic(self, answers: Predictions) -> Statistic:
        unexplained = relative_mse(answers.truth, answers.prediction)
        return lambda weights: 1 - unexplained(weights)
