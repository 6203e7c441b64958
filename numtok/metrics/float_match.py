"""float-match: how many predictions are the truth to fourteen digits."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics.base import Predictions, ShareMetric, Values

_DIGITS = 14  # behind the first
_LEAST = 1e-100


@dataclass(frozen=True)
class FloatMatch(ShareMetric):
    """The share of predictions less than one unit of the fourteenth digit from the truth, as
    BitTokens' benchmark counts exact ones: |prediction - truth| < 10^-d, d = 14 - ceil(log10
    |truth|), but 0 to 14. So up to 1 it is 1e-14 whatever the truth, and above 1e13 it is 1. A
    prediction that is not valid is no match.

    >>> answers = Predictions.of([3, 3, 2e-15, 123], [3 + 9e-14, 3 + 2e-13, 9e-15, 123 + 9e-12])
    >>> FloatMatch().values(answers).tolist()
    [True, False, True, True]
    """

    revision = 1
    source = "BitTokens (arXiv 2510.06824), public code"
    better = "higher"

    def values(self, answers: Predictions) -> Values:
        decades = np.ceil(np.log10(np.abs(answers.truth) + _LEAST))
        decimals = np.clip(_DIGITS - decades, 0, _DIGITS)
        near: Values = np.abs(answers.prediction - answers.truth) < 10.0**-decimals
        return np.where(answers.valid, near, False)
