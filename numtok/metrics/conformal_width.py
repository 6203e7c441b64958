"""conformal-width: mean width of the conformal 90% interval."""

from dataclasses import dataclass

from numtok.metrics._intervals import OfIntervals
from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class ConformalWidth(OfIntervals, MeanMetric):
    """Mean width of the 90% interval that was calibrated on rows outside the train split, in the
    units of the numbers. Of two models with the same coverage, the one with narrower intervals
    is better.

    >>> low, high = [0.0, 0.0], [2.0, 1.0]
    >>> answers = Predictions.of([2, 3], [1, 1], interval_low=low, interval_high=high)
    >>> ConformalWidth().plain(answers)
    1.5
    """

    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "an interval is infinite: there are too few calibration rows"

    def values(self, answers: Predictions) -> Values:
        low, high = self.ends(answers)
        return high - low
