"""digit-match: how many digits of the truth stand at their place in the prediction."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics._literals import Parts, parts
from numtok.metrics.base import MeanMetric, Predictions, Values


def _matched(truth: Parts, prediction: Parts | None) -> float:
    """The share of the truth's digits that are matched."""
    if prediction is None:
        return 0.0
    whole, decimals, exponent = (
        sum(a == b for a, b in zip(*sides, strict=False))  # what hangs over matches nothing
        for sides in (
            (truth[0][::-1], prediction[0][::-1]),  # units under units
            (truth[1], prediction[1]),
            (truth[2][::-1], prediction[2][::-1]),
        )
    )
    return (whole + decimals + exponent) / sum(map(len, truth))


@dataclass(frozen=True)
class DigitMatch(MeanMetric):
    """NUPA's digit match: of each truth, the share of its digits that the prediction has at the
    same place (integers and exponents from the right, decimals from the left), then the mean.
    More digits than the truth has cost nothing; what is not valid matches none. It is of single
    numbers, whatever their notation; ``answer-digit-match`` is of whole answers as published.

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
