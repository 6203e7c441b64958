"""rmse: root mean squared error."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from numtok.metrics._squares import mean_square
from numtok.metrics.base import NOT_NEGATIVE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class Rmse(Metric):
    """The square root of the mean squared error, in the units of the numbers.

    >>> Rmse().plain(Predictions.of([1, 2], [2, 9]))
    5.0
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Hyndman & Koehler (2006), Section 2.1"
    better: ClassVar[Literal["lower"]] = "lower"
    bounds: ClassVar[tuple[float, float]] = NOT_NEGATIVE
    undefined: ClassVar[str] = "an error is larger than float64 can hold"

    def statistic(self, answers: Predictions) -> Statistic:
        squares = mean_square(answers.prediction - answers.truth)
        return lambda weights: squares(weights).root
