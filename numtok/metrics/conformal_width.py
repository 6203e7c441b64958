"""conformal-width: mean width of the conformal 90% interval."""

from dataclasses import dataclass

from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class ConformalWidth(MeanMetric):
    """Mean width of the 90% interval that was calibrated on rows outside the train split, in the
    units of the numbers. Of two models with the same coverage, the one with narrower intervals
    is better.

    >>> low, high = [0.0, 0.0], [2.0, 1.0]
    >>> answers = Predictions.of([2, 3], [1, 1], interval_low=low, interval_high=high)
    >>> ConformalWidth().plain(answers)
    1.5
    """

    revision = 1
    source = "Romano, Patterson & Candès (2019), Conformalized quantile regression"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "an interval is infinite: there are too few calibration rows"
    needs = ("interval_low", "interval_high")

    def values(self, answers: Predictions) -> Values:
        assert answers.interval_low is not None and answers.interval_high is not None
        return answers.interval_high - answers.interval_low
