"""coverage: fraction of true values inside the predicted interval."""

from dataclasses import dataclass

import numpy as np

from numtok.errors import UsageError
from numtok.metrics.base import Predictions, ShareMetric, Values
from numtok.reports import QUANTILES

# The central intervals between stored quantiles: 0.9 and 0.5.
_LEVELS = {
    round(high - low, 12): (index, len(QUANTILES) - 1 - index)
    for index, (low, high) in enumerate(zip(QUANTILES, reversed(QUANTILES), strict=True))
    if low < high
}


@dataclass(frozen=True)
class Coverage(ShareMetric):
    """Fraction of true values inside, or at an end of, the central interval of the predictive
    distribution. For a calibrated model, the coverage equals ``level``. A higher coverage means
    that the model is underconfident, a lower one that it is overconfident.

    level
        Probability of the interval: 0.9 (quantiles 0.05 to 0.95) or 0.5 (quantiles 0.25 to 0.75).

    >>> quantiles = [[-2, -1, 0, 1, 2], [-2, -1, 0, 1, 2]]
    >>> answers = Predictions.of([1.5, 0.5], [0, 0], quantiles=quantiles)
    >>> Coverage().plain(answers), Coverage(level=0.5).plain(answers)
    (1.0, 0.5)
    """

    revision = 1
    source = "Gneiting, Balabdaoui & Raftery (2007)"
    better = "neither"
    needs = ("quantiles",)
    level: float = 0.9

    def __post_init__(self) -> None:
        if self.level not in _LEVELS:
            raise UsageError(
                f"coverage: level must be {' or '.join(map(str, sorted(_LEVELS)))}, whose "
                f"quantiles are stored (got {self.level})"
            )

    def values(self, answers: Predictions) -> Values:
        assert answers.quantiles is not None
        low, high = answers.quantiles[:, _LEVELS[self.level]].T
        return np.asarray((low <= answers.truth) & (answers.truth <= high))
