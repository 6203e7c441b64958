"""exponent-accuracy: fraction of predictions with the true sign and order of magnitude."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.metrics.base import Predictions, ShareMetric, Values

_POWERS = np.array([float(f"1e{power}") for power in range(-323, 309)])


def _exponents(values: Floats) -> Ints:
    """Return floor(log10 |x|) of float64[n], exactly, up to a constant; 0 for 0."""
    return np.searchsorted(_POWERS, np.abs(values), side="right").astype(np.int64)


@dataclass(frozen=True)
class ExponentAccuracy(ShareMetric):
    """Fraction of predictions with floor(log10 |prediction|) = floor(log10 |y|) and the right sign.

    The paper's numbers are positive. Here a wrong sign, or a 0 in place of another number, is an
    error. 9.99 and 10.01 have different exponents, however close they are.

    >>> ExponentAccuracy().plain(Predictions.of([1000, 9.99], [1999, 10.01]))
    0.5
    """

    revision = 1
    source = "NumGPT, equation 14"
    better = "higher"

    def values(self, answers: Predictions) -> Values:
        truth, prediction = answers.truth, answers.prediction
        right = _exponents(truth) == _exponents(prediction)
        return np.asarray(right & (np.sign(truth) == np.sign(prediction)))
