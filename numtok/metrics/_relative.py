"""The relative error, |prediction - truth| / |truth|."""

import numpy as np

from numtok.arrays import Floats
from numtok.metrics.base import Predictions


def relative_errors(answers: Predictions) -> Floats:
    """float64[n]; where the truth is 0, 0 if the prediction is 0 as well and infinity if not."""
    truth, prediction = answers.truth, answers.prediction
    errors = np.abs(prediction - truth)
    relative = errors / np.abs(truth)
    # Two huge numbers of opposite sign: their difference overflows, their ratio does not.
    relative = np.where(np.isinf(errors), np.abs(prediction / truth) + 1, relative)
    return np.where(prediction == truth, 0.0, relative)
