"""conformal-coverage: fraction of true values inside the conformal 90% interval."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics._intervals import OfIntervals
from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class ConformalCoverage(OfIntervals, ShareMetric):
    """Fraction of true values inside, or at an end of, the 90% interval that was calibrated on rows
    outside the train split. It is 0.9 on average, even for a wrong model, as long as the rows are
    exchangeable with the calibration rows.

    >>> low, high = [0.0, 0.0], [2.0, 1.0]
    >>> answers = Predictions.of([2, 3], [1, 1], interval_low=low, interval_high=high)
    >>> ConformalCoverage().plain(answers)
    0.5
    """

    better = "neither"

    def values(self, answers: Predictions) -> Values:
        low, high = self.ends(answers)
        return np.asarray((low <= answers.truth) & (answers.truth <= high))
