"""micro-f1: the F1 of all labels pooled."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class MicroF1(ShareMetric):
    """2 hits / (2 hits + false positives + false negatives), each summed over all labels. A row
    has one label and is predicted one: what is wrong is a false positive of one label and a false
    negative of another, so this is the accuracy. It is there because papers print it.

    >>> MicroF1().plain(Predictions.of_labels(["a", "b", "b"], ["a", "b", "a"]))
    0.6666666666666666
    """

    revision = 1
    source = "van Rijsbergen (1979), Chapter 7; NumGPT, Table 2"
    measures = "labels"
    better = "higher"

    def values(self, answers: Predictions) -> Values:
        return np.asarray(answers.truth == answers.prediction)
