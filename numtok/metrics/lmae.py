"""lmae: mean absolute error of the logarithm, in orders of magnitude."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Bools
from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class Lmae(MeanMetric):
    """Mean of |log10 |y| - log10 |prediction||, where y is the true value; 1 corresponds to a
    factor of ten. Two negative numbers are compared by their magnitudes, and two zeros are equal.
    For all other sign combinations the logarithms cannot be compared, and a single such number
    makes the metric undefined.

    skip
        Leave out numbers whose logarithms cannot be compared, and invalid predictions. Report how
        many there are, because they may be the worst.

    >>> Lmae().plain(Predictions.of([1, -5], [100, -5]))
    1.0
    >>> Lmae(skip=True).plain(Predictions.of([1, -5, 3], [100, 5, 3]))
    1.0
    """

    revision = 1
    source = "NumGPT, equation 13"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "a prediction is 0 and its true value is not, or vice versa, or their signs differ"
    skip: bool = False

    def counted(self, answers: Predictions) -> Bools:
        counted = self.is_known(answers)
        if self.skip:
            counted &= answers.valid & (np.sign(answers.truth) == np.sign(answers.prediction))
        return counted

    def values(self, answers: Predictions) -> Values:
        truth, prediction = answers.truth, answers.prediction
        distances = np.abs(np.log10(np.abs(prediction)) - np.log10(np.abs(truth)))
        distances = np.where(np.sign(truth) == np.sign(prediction), distances, np.inf)
        return np.where(truth == prediction, 0.0, distances)
