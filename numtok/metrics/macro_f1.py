"""macro-f1: the mean over labels of each one's F1, rare labels as heavy as frequent ones."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.metrics.base import Metric, Predictions, Statistic


@dataclass(frozen=True)
class MacroF1(Metric):
    """The mean of 2 hits / (true + predicted) over the labels that some row has or is predicted;
    a label that is never predicted, or never right, has 0. (There is another macro-F1, of the mean
    precision and the mean recall; Opitz & Burst (2019) compare them.)

    >>> MacroF1().plain(Predictions.of_labels(["a", "b", "b", "b"], ["a", "b", "b", "a"]))
    0.7333333333333334
    """

    revision = 1
    source = "Opitz & Burst (2019), the averaged F1; NumGPT, Table 2"
    measures = "labels"
    better = "higher"
    bounds = (0.0, 1.0)
    undefined = "there are no labels"

    def statistic(self, answers: Predictions) -> Statistic:
        right = answers.truth == answers.prediction
        both = np.concatenate([answers.truth, answers.prediction])
        codes = np.unique(both, return_inverse=True)[1].astype(np.int64)
        true, predicted = np.split(codes, 2)
        labels = int(codes.max()) + 1

        def macro(weights: Floats) -> Floats:
            there = _counts(weights, true, labels) + _counts(weights, predicted, labels)
            f1 = 2 * _counts(weights * right, true, labels) / np.where(there > 0, there, 1)
            mean: Floats = f1.sum(axis=1) / np.count_nonzero(there, axis=1)
            return mean

        return macro


def _counts(weights: Floats, codes: Ints, labels: int) -> Floats:
    """float64[r, labels]: for each of float64[r, n] weights how often each label is there.

    ``codes`` int64[n] are from 0 to ``labels`` - 1. Sums of whole numbers, so they are exact.

    >>> _counts(np.array([[1.0, 2.0, 1.0]]), np.array([2, 0, 2]), 3)
    array([[2., 0., 2.]])
    """
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(labels), side="right")
    sums = np.cumsum(np.take(weights, order, axis=1), axis=1)
    upto: Floats = np.where(ends > 0, sums[:, ends - 1], 0.0)
    return np.diff(upto, prepend=0.0, axis=1)
