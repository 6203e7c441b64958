"""mse: mean squared error."""

from dataclasses import dataclass

from numtok.metrics._squares import mean_square
from numtok.metrics.base import NOT_NEGATIVE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class Mse(Metric):
    """Mean of (prediction - truth)^2, in squared units of the numbers.

    >>> Mse().plain(Predictions.of([1, 2], [1, 5]))
    4.5
    """

    revision = 1
    source = "Hyndman & Koehler (2006), Section 2.1"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "a squared error is larger than float64 can hold; try rmse"

    def statistic(self, answers: Predictions) -> Statistic:
        squares = mean_square(answers.prediction - answers.truth)
        return lambda weights: squares(weights).value
