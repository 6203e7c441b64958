"""answer-digit-match: how many digits of the true answer stand at their place."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from numtok.data.nupa.answers import RULES
from numtok.declaration import setting
from numtok.metrics._answers import scores
from numtok.metrics._bootstrap import Statistic
from numtok.metrics._weighted import mean
from numtok.metrics.base import Metric, Predictions


@dataclass(frozen=True)
class AnswerDigitMatch(Metric):
    """NUPA's digit match of whole answers: of each the share of the true digits that are found at
    the same place of the same part, then the mean. Decimals are aligned from the left, whole
    numbers, numerators, denominators and exponents from the right; more digits than the truth has
    cost nothing, and where there is no answer none is matched.

    rule
        How an answer is found in a text: ``published``, ``published-chat`` or ``strict``.

    >>> answers = Predictions.of_texts(["1287", "10.5", "7/13"], ["387", "0.15", "17 of 13"])
    >>> AnswerDigitMatch().plain(answers)  # 2 of 4, 1 of 3, and no fraction
    0.27777777777777773
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "NUPA (Yang et al. 2025)"
    measures: ClassVar[Literal["answers"]] = "answers"
    better: ClassVar[Literal["higher"]] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    undefined: ClassVar[str] = "there are no answers"
    needs: ClassVar[tuple[str, ...]] = ("truth_literal", "prediction_literal")
    rule: str = setting("published", choices=RULES)

    def statistic(self, answers: Predictions) -> Statistic:
        return mean(np.array([one.digit_match for one in scores(answers, self.rule)]))
