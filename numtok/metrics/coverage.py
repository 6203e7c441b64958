"""coverage: how often the predicted interval holds the truth."""

from dataclasses import dataclass

import numpy as np

from numtok.errors import UsageError
from numtok.metrics.base import Predictions, ShareMetric, Values
from numtok.reports import QUANTILES

# The central intervals between two quantiles that are kept: 0.9 and 0.5.
_LEVELS = {
    round(high - low, 12): (index, len(QUANTILES) - 1 - index)
    for index, (low, high) in enumerate(zip(QUANTILES, reversed(QUANTILES), strict=True))
    if low < high
}


@dataclass(frozen=True)
class Coverage(ShareMetric):
    """The share of truths in the central interval of the predictive distribution, its ends
    included. Calibrated is a share of ``level``: more is too cautious, less too bold.

    level
        0.9, from the quantile 0.05 to 0.95, or 0.5, from 0.25 to 0.75.

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
                f"coverage: level={self.level} is not possible; allowed are "
                f"{' and '.join(map(str, sorted(_LEVELS)))}, whose quantiles are kept"
            )

    def values(self, answers: Predictions) -> Values:
        assert answers.quantiles is not None
        low, high = answers.quantiles[:, _LEVELS[self.level]].T
        return np.asarray((low <= answers.truth) & (answers.truth <= high))
