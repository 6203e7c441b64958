"""relative-error-over: fraction of predictions with a relative error above a limit."""

from dataclasses import dataclass

import numpy as np

from numtok.declaration import setting
from numtok.metrics._weighted import relative_errors
from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class RelativeErrorOver(ShareMetric):
    """Fraction of numbers with |prediction - truth| / |truth| above ``limit``. If the true value is
    0, any prediction other than 0 is above the limit.

    limit
        Relative error above which a prediction counts as wrong.

    >>> RelativeErrorOver().plain(Predictions.of([1, 2], [1.05, 3]))
    0.5
    """

    revision = 1
    source = "xVal, Section 3.1, its definition of outliers"
    better = "lower"
    limit: float = setting(0.1, at_least=0, below=np.inf)

    def values(self, answers: Predictions) -> Values:
        return relative_errors(answers.truth, answers.prediction) > self.limit
