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
    """Fraction of predictions with the sign and the order of magnitude, floor(log10 |y|), of the
    true value y.

    In the NumGPT paper, all numbers are positive. Here, a prediction with the wrong sign is an
    error, and so is a prediction of 0 unless the true value is 0. 9.99 and 10.01 have different
    exponents although they are close.

    >>> ExponentAccuracy().plain(Predictions.of([1000, 9.99], [1999, 10.01]))
    0.5
    """

    revision = 1
    source = "NumGPT, equation 14"
    better = "higher"

    def values(self, answers: Predictions) -> Values:
        truth, prediction = answers.truth, answers.prediction
        right = (_exponents(truth) == _exponents(prediction)) & np.isfinite(prediction)
        return np.asarray(right & (np.sign(truth) == np.sign(prediction)))
