"""relative-error-over: how many predictions are far off."""

from dataclasses import dataclass

import numpy as np

from numtok.declaration import setting
from numtok.metrics._weighted import relative_errors
from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class RelativeErrorOver(ShareMetric):
    """The share of numbers with |prediction - truth| / |truth| above ``limit``. A truth of 0
    is above any limit unless 0 is predicted.

    limit
        The relative error from which on a number counts as wrong.

    >>> RelativeErrorOver().plain(Predictions.of([1, 2], [1.05, 3]))
    0.5
    """

    revision = 1
    source = "xVal, Section 3.1, of its outliers"
    better = "lower"
    limit: float = setting(0.1, at_least=0, below=np.inf)

    def values(self, answers: Predictions) -> Values:
        return relative_errors(answers.truth, answers.prediction) > self.limit
