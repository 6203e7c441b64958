"""float-match: fraction of predictions equal to the true value to fourteen digits."""

from dataclasses import dataclass

import numpy as np

from numtok.metrics.base import Predictions, ShareMetric, Values

_DIGITS = 14  # after the first
_LEAST = 1e-100


@dataclass(frozen=True)
class FloatMatch(ShareMetric):
    """Fraction of predictions that agree with the true value to about fourteen digits (fourteen
    decimals for values up to 1), by the rule for exact matches in the BitTokens benchmark:
    |prediction - truth| < 10^-d, where d = 14 - ceil(log10 |truth|) is clipped to 0..14. The
    tolerance is therefore 1e-14 for true values up to 1, and 1 for true values above 1e13. An
    invalid prediction is not a match.

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
