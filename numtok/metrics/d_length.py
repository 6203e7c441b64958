"""d-length: how far the prediction's number of digits is from that of the truth."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics._literals import Parts, parts
from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class DLength(MeanMetric):
    """NUPA's d-length: the mean difference in the number of digits. What is not valid is off by
    all digits of the truth. It is of single numbers, whatever their notation; ``answer-d-length``
    is of whole answers as published.

    parts
        There are two published readings. ``no`` is that of the code for language models: the
        difference of all digits, so that a digit too many before the point and one too few
        behind it cancel. ``yes`` is that of the code for models trained from scratch: integer,
        decimals and exponent each by itself, then summed.

    >>> literals = {"truth_literal": ["10.5"], "prediction_literal": ["1.25"]}
    >>> answers = Predictions.of([10.5], [1.25], **literals)
    >>> DLength().plain(answers), DLength(parts=True).plain(answers)
    (0.0, 2.0)
    """

    revision = 2
    source = "NUPA (Yang et al. 2025)"
    better = "lower"
    bounds = NOT_NEGATIVE
    undefined = "there are no numbers"
    needs = ("truth_literal", "prediction_literal")
    parts: bool = False

    def values(self, answers: Predictions) -> Values:
        return np.array([self._distance(*pair) for pair in parts(answers)], np.float64)

    def _distance(self, truth: Parts, prediction: Parts | None) -> int:
        if prediction is None:
            return sum(map(len, truth))
        differences = [len(a) - len(b) for a, b in zip(prediction, truth, strict=True)]
        return sum(map(abs, differences)) if self.parts else abs(sum(differences))
