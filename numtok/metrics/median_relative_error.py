"""median-relative-error: half of the predictions are closer than this, relative to the truth."""

from dataclasses import dataclass

from numtok.metrics._weighted import median, relative_errors
from numtok.metrics.base import NOT_NEGATIVE, Metric, Predictions, Statistic


@dataclass(frozen=True)
class MedianRelativeError(Metric):
    """The median of |prediction - truth| / |truth|. A truth of 0 counts as infinitely wrong
    unless 0 is predicted.

    >>> MedianRelativeError().plain(Predictions.of([1, 2, 0], [1.5, 2, 1]))
    0.5
    """

    revision = 1
    source = "Hyndman & Koehler (2006), Section 2.2, without its factor of 100"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "half of the errors are infinite, their truth being 0 or tiny"

    def statistic(self, answers: Predictions) -> Statistic:
        return median(relative_errors(answers.truth, answers.prediction))
