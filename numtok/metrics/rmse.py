"""rmse: root mean squared error."""

from dataclasses import dataclass

from numtok.metrics._squares import mean_square
from numtok.metrics.base import NOT_NEGATIVE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class Rmse(Metric):
    """Square root of the mean squared error, in the units of the numbers.

    >>> Rmse().plain(Predictions.of([1, 2], [2, 9]))
    5.0
    """

    revision = 1
    source = "Hyndman & Koehler (2006), Section 2.1"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "an error is larger than float64 can hold"

    def statistic(self, answers: Predictions) -> Statistic:
        squares = mean_square(answers.prediction - answers.truth)
        return lambda weights: squares(weights).root
