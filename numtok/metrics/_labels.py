"""Labels, as columns of numbers that stand for them."""

import numpy as np
from numpy.typing import NDArray

from numtok.metrics._weighted import Floats
from numtok.metrics.base import Predictions


def hits(answers: Predictions) -> Floats:
    """float64[n]: 1 where the label is right.

    >>> hits(Predictions.of_labels(["a", "b"], ["a", "a"]))
    array([1., 0.])
    """
    return np.asarray(answers.truth == answers.prediction, np.float64)


def counts(weights: Floats, codes: NDArray[np.int64], labels: int) -> Floats:
    """float64[r, labels]: for each of float64[r, n] weights how often each label is there.

    ``codes`` int64[n] are from 0 to ``labels`` - 1. Sums of whole numbers, so they are exact.

    >>> counts(np.array([[1.0, 2.0, 1.0]]), np.array([2, 0, 2]), 3)
    array([[2., 0., 2.]])
    """
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(labels), side="right")
    sums = np.cumsum(np.take(weights, order, axis=1), axis=1)
    upto: Floats = np.where(ends > 0, sums[:, ends - 1], 0.0)
    return np.diff(upto, prepend=0.0, axis=1)
