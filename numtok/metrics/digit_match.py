"""digit-match: mean fraction of the true value's digits predicted at the right digit position."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics._literals import Parts, parts
from numtok.metrics.base import MeanMetric, Predictions, Values


def _matched(truth: Parts, prediction: Parts | None) -> float:
    """Return the fraction of the true value's digits that are matched."""
    if prediction is None:
        return 0.0
    whole, decimals, exponent = (
        sum(a == b for a, b in zip(*sides, strict=False))  # excess digits match nothing
        for sides in (
            (truth[0][::-1], prediction[0][::-1]),  # units under units
            (truth[1], prediction[1]),
            (truth[2][::-1], prediction[2][::-1]),
        )
    )
    return (whole + decimals + exponent) / sum(map(len, truth))


@dataclass(frozen=True)
class DigitMatch(MeanMetric):
    """Mean fraction of the true value's digits that the prediction has at the same position (NUPA's
    digit match). Integer parts and exponents are aligned from the right, decimals from the left.
    Extra digits are not penalized. An invalid prediction matches no digit. This metric is for
    individual numbers in any notation; ``answer-digit-match`` is for whole answers.

    >>> literals = {"truth_literal": ["1287", "10.5"], "prediction_literal": ["1387", "0.15"]}
    >>> DigitMatch().plain(Predictions.of([1287, 10.5], [1387, 0.15], **literals))  # 3 of 4, 1 of 3
    0.5416666666666666
    """

    revision = 2
    source = "NUPA (Yang et al. 2025)"
    better = "higher"
    bounds = (0.0, 1.0)
    undefined = "there are no numbers"
    needs = ("truth_literal", "prediction_literal")

    def values(self, answers: Predictions) -> Values:
        return np.array([_matched(*pair) for pair in parts(answers)])
