"""r2: the share of the variance of the truth that the predictions explain."""

from dataclasses import dataclass

from numtok.metrics._squares import relative_mse
from numtok.metrics.base import UP_TO_ONE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class R2(Metric):
    """1 - sum (y - prediction)^2 / sum (y - mean y)^2. No line is fitted: a prediction that is
    biased or scaled loses by it, and a bad one is below 0.

    >>> R2().plain(Predictions.of([1, 3], [1, 4]))
    0.5
    """

    revision = 1
    source = "Kvalseth (1985), the first of its eight definitions"
    better = "higher"
    bounds = UP_TO_ONE
    undefined = "the truth is constant, or its spread is nothing next to the errors"

    def statistic(self, answers: Predictions) -> Statistic:
        unexplained = relative_mse(answers.truth, answers.prediction)
        return lambda weights: 1 - unexplained(weights)
