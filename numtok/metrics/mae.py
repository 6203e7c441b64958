"""mae: mean absolute error."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class Mae(MeanMetric):
    """Mean of |prediction - truth|, in the units of the numbers.

    >>> Mae().plain(Predictions.of([1, 2], [1, 5]))
    1.5
    """

    revision = 1
    source = "Hyndman & Koehler (2006), Section 2.1"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "an error is larger than float64 can hold"

    def values(self, answers: Predictions) -> Values:
        return np.abs(answers.prediction - answers.truth)
