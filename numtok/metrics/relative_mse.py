"""relative-mse: mean squared error over the variance of the truth."""

from dataclasses import dataclass

from numtok.metrics._squares import relative_mse
from numtok.metrics.base import NOT_NEGATIVE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class RelativeMse(Metric):
    """MSE / Var(y), the variance being that of these truths as a population: 1 - R2. To predict
    the mean of the truths gives 1.

    >>> RelativeMse().plain(Predictions.of([1, 3], [1, 4]))
    0.5
    """

    revision = 1
    source = "Decoding-based Regression, Figures 6 and 9 (no formula is given there)"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "the truth is constant, or its spread is nothing next to the errors"

    def statistic(self, answers: Predictions) -> Statistic:
        return relative_mse(answers.truth, answers.prediction)
