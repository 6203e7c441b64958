"""d-length: mean difference in the number of digits between prediction and true value."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics._literals import Parts, parts
from numtok.metrics.base import NOT_NEGATIVE, MeanMetric, Predictions, Values


@dataclass(frozen=True)
class DLength(MeanMetric):
    """Mean absolute difference in the number of digits between prediction and true value (NUPA's
    d-length). For an invalid prediction, the difference is the number of digits of the true value.
    This metric is for individual numbers in any notation; ``answer-d-length`` is for whole answers.

    parts
        If ``no``, all digits are counted together, so one digit too many before the point and one
        too few after it cancel out (as in the published code for language models). If ``yes``,
        integer part, decimals and exponent are compared separately and the differences are added
        (as in the published code for models trained from scratch).

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
