"""median-relative-error: median absolute error, relative to the true value."""

from dataclasses import dataclass

from numtok.metrics._weighted import median, relative_errors
from numtok.metrics.base import NOT_NEGATIVE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class MedianRelativeError(Metric):
    """Median of |prediction - truth| / |truth|. If the true value is 0, any prediction other than 0
    has an infinite error.

    >>> MedianRelativeError().plain(Predictions.of([1, 2, 0], [1.5, 2, 1]))
    0.5
    """

    revision = 1
    source = "Hyndman & Koehler (2006), Section 2.2, without its factor of 100"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "half of the relative errors are infinite (true values of 0 or close to it)"

    def statistic(self, answers: Predictions) -> Statistic:
        return median(relative_errors(answers.truth, answers.prediction))
