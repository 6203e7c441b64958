"""accuracy: fraction of labels predicted correctly."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class Accuracy(ShareMetric):
    """Fraction of rows whose predicted label equals the true label.

    >>> Accuracy().plain(Predictions.of_labels(["a", "b", "b"], ["a", "b", "a"]))
    0.6666666666666666
    """

    revision = 1
    source = "NumGPT, Table 1"
    measures = "labels"
    better = "higher"

    def values(self, answers: Predictions) -> Values:
        return np.asarray(answers.truth == answers.prediction)
