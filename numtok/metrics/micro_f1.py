"""micro-f1: F1 of all labels pooled, which equals the accuracy."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class MicroF1(ShareMetric):
    """Pooled F1: 2 hits / (2 hits + false positives + false negatives), each summed over all
    labels. Every row has one true and one predicted label, so each error is a false positive of one
    label and a false negative of another, and the metric equals the accuracy. It is provided
    because papers report it.

    >>> MicroF1().plain(Predictions.of_labels(["a", "b", "b"], ["a", "b", "a"]))
    0.6666666666666666
    """

    revision = 1
    source = "van Rijsbergen (1979), Chapter 7; NumGPT, Table 2"
    measures = "labels"
    better = "higher"

    def values(self, answers: Predictions) -> Values:
        return np.asarray(answers.truth == answers.prediction)
