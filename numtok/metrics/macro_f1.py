"""macro-f1: mean F1 over all labels, each label weighted equally."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.metrics.base import Metric, Predictions, Statistic


@dataclass(frozen=True)
class MacroF1(Metric):
    """Unweighted mean of the F1 scores, 2 hits / (true + predicted), of all labels that occur or
    are predicted. A label that is never predicted, or never correctly, scores 0. (Another
    definition of macro-F1 uses the mean precision and the mean recall; Opitz & Burst (2019) compare
    them.)

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
            total = _counts(weights, true, labels) + _counts(weights, predicted, labels)
            f1 = 2 * _counts(weights * right, true, labels) / np.where(total > 0, total, 1)
            mean: Floats = f1.sum(axis=1) / np.count_nonzero(total, axis=1)
            return mean

        return macro


def _counts(weights: Floats, codes: Ints, labels: int) -> Floats:
    """Count the labels under float64[r, n] weights: float64[r, labels].

    ``codes``, int64[n], are label indices from 0 to ``labels`` - 1. Sums of whole numbers are
    exact.

    >>> _counts(np.array([[1.0, 2.0, 1.0]]), np.array([2, 0, 2]), 3)
    array([[2., 0., 2.]])
    """
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(labels), side="right")
    sums = np.cumsum(np.take(weights, order, axis=1), axis=1)
    upto: Floats = np.where(ends > 0, sums[:, ends - 1], 0.0)
    return np.diff(upto, prepend=0.0, axis=1)
