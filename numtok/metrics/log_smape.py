"""log-smape: mean number of correct leading digits, relative to a float's precision."""

from dataclasses import dataclass

import numpy as np

from numtok.declaration import setting
from numtok.metrics.base import MeanMetric, Predictions, Values

_LEAST = 1e-100


@dataclass(frozen=True)
class LogSmape(MeanMetric):
    """Mean of -log10(|prediction - truth| / (|prediction| + |truth|)) / digits, at most 1: roughly
    the fraction of leading digits that are correct. The score is 0 if the signs differ, if exactly
    one of the two numbers is 0, or if the prediction is invalid. It is 1 if both numbers are 0.

    digits
        Total number of digits: 15 for float64, 6 for float32.

    >>> answers = Predictions.of([1, 1, -68.36, 1, 0, 5], [1.1, 1.0000001, -68.3, -1, 0, 0])
    >>> LogSmape().values(answers).round(4).tolist()
    [0.0881, 0.4867, 0.2238, 0.0, 1.0, 0.0]
    """

    revision = 1
    source = "BitTokens (arXiv 2510.06824), Section 4"
    better = "higher"
    bounds = (0.0, 1.0)
    undefined = "no row is counted"
    digits: int = setting(15, at_least=1, at_most=17)

    def values(self, answers: Predictions) -> Values:
        truth, prediction = answers.truth / 2, answers.prediction / 2  # so that sums are finite
        error = np.abs(prediction - truth) / (np.abs(prediction) + np.abs(truth) + _LEAST)
        right = -np.log10(error + _LEAST) / self.digits
        return np.where(answers.valid, np.clip(right, 0.0, 1.0) + 0.0, 0.0)
