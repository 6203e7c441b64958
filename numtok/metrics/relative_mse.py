"""relative-mse: mean squared error divided by the variance of the true values."""

from dataclasses import dataclass

from numtok.metrics._squares import relative_mse
from numtok.metrics.base import NOT_NEGATIVE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class RelativeMse(Metric):
    """MSE / Var(y), where Var(y) is the population variance of the evaluated true values. It equals
    1 - R2. Predicting the mean of the true values scores 1.

    >>> RelativeMse().plain(Predictions.of([1, 3], [1, 4]))
    0.5
    """

    revision = 1
    source = "Decoding-based Regression, Figures 6 and 9 (no formula is given there)"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "the true values are constant, or their spread is negligible next to the errors"

    def statistic(self, answers: Predictions) -> Statistic:
        return relative_mse(answers.truth, answers.prediction)
