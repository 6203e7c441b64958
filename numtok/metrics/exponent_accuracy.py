"""exponent-accuracy: how many predictions have the truth's order of magnitude."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from numtok.metrics._bootstrap import Statistic
from numtok.metrics._weighted import Floats, mean
from numtok.metrics.base import Metric, Predictions

_POWERS = np.array([float(f"1e{power}") for power in range(-323, 309)])


def _exponents(values: Floats) -> Floats:
    """floor(log10 |x|) of float64[n], exactly, less a constant; 0 for 0."""
    return np.searchsorted(_POWERS, np.abs(values), side="right").astype(np.float64)


@dataclass(frozen=True)
class ExponentAccuracy(Metric):
    """The share of predictions with floor(log10 |prediction|) = floor(log10 |y|) and the same
    sign. The paper's numbers are positive; here a wrong sign, or a 0 for another number, is an
    error. 9.99 and 10.01 have different exponents, however close they are.

    >>> ExponentAccuracy().plain(Predictions.of([1000, 9.99], [1999, 10.01]))
    0.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, equation 14"
    better: ClassVar[Literal["higher"]] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    share: ClassVar[bool] = True
    undefined: ClassVar[str] = "there are no numbers"

    def statistic(self, answers: Predictions) -> Statistic:
        truth, prediction = answers.truth, answers.prediction
        right = _exponents(truth) == _exponents(prediction)
        return mean((right & (np.sign(truth) == np.sign(prediction))).astype(np.float64))
