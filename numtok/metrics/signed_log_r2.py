"""signed-log-r2: R2 of signed logarithms, for numbers that span many orders of magnitude."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats
from numtok.metrics._squares import relative_mse
from numtok.metrics.base import UP_TO_ONE, Metric, Predictions, Statistic


def _signed_log(values: Floats) -> Floats:
    logarithms: Floats = np.copysign(np.log1p(np.abs(values)) / np.log(10), values)
    return logarithms


@dataclass(frozen=True)
class SignedLogR2(Metric):
    """R2 after applying sign(x) log10(1 + |x|) to true values and predictions. Plain R2 is
    dominated by the largest numbers; here each order of magnitude above 1 counts equally. Below 1
    the transform is linear, so small numbers count little.

    >>> round(SignedLogR2().plain(Predictions.of([0, 99], [9, 99])), 12)
    0.5
    """

    revision = 1
    source = "numtok; the transform is that of the normalizer signed-log"
    better = "higher"
    bounds = UP_TO_ONE
    undefined = "the true values are constant"

    def statistic(self, answers: Predictions) -> Statistic:
        unexplained = relative_mse(_signed_log(answers.truth), _signed_log(answers.prediction))
        return lambda weights: 1 - unexplained(weights)
