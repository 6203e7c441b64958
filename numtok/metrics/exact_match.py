"""exact-match: fraction of predictions equal to the true value as decimal numbers."""

from dataclasses import dataclass

import numpy as np

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.metrics._literals import Exact, Numeral, numerals
from numtok.metrics.base import Predictions, ShareMetric, Values


@dataclass(frozen=True)
class ExactMatch(ShareMetric):
    """Fraction of predictions whose literal denotes exactly the same decimal number as the true
    value: 1.50 equals 1.5 and 15e-1, but not 1.5000000000000001. (NUPA compares strings, where 1.50
    differs from 1.5; see ``answer-exact-match``.) An invalid prediction is not a match.

    digits
        Round both numbers to this many significant digits (ties to even) before comparing them.
        This is useful for schemes that keep few digits. 0 means no rounding.
    places
        Round both numbers to this many decimals (ties to even) before comparing them. 0 rounds to
        integers, which is useful for heads that predict values such as 1301.98. Default: no
        rounding.

    >>> literals = {"truth_literal": ["1.50", "12.34"], "prediction_literal": ["15e-1", "12.3"]}
    >>> answers = Predictions.of([1.5, 12.34], [1.5, 12.3], **literals)
    >>> ExactMatch().plain(answers), ExactMatch(digits=3).plain(answers)
    (0.5, 1.0)
    >>> ExactMatch(places=0).plain(answers), ExactMatch(places=1).plain(answers)
    (1.0, 1.0)
    """

    revision = 1
    source = "NUPA (Yang et al. 2025), by value instead of by string"
    better = "higher"
    needs = ("truth_literal", "prediction_literal")
    digits: int = setting(0, at_least=0)
    places: int | None = setting(None, at_least=0, at_most=400)

    def __post_init__(self) -> None:
        if self.digits and self.places is not None:
            raise UsageError(
                f"exact-match: digits and places cannot be combined (got digits={self.digits},"
                f"places={self.places}). Choose one"
            )

    def values(self, answers: Predictions) -> Values:
        matches = (
            prediction is not None and self._compared(prediction) == self._compared(truth)
            for truth, prediction in numerals(answers)
        )
        return np.fromiter(matches, np.bool_)

    def _compared(self, number: Numeral) -> Exact:
        if self.places is None:
            return number.exact(self.digits)
        return number.rounded(-self.places)
