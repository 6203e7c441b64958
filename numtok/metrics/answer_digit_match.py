"""answer-digit-match: how many digits of the true answer stand at their place."""

from dataclasses import dataclass

from numtok.metrics._answers import AnswerMetric, Score


@dataclass(frozen=True)
class AnswerDigitMatch(AnswerMetric):
    """NUPA's digit match of whole answers: of each the share of the true digits that are found at
    the same place of the same part, then the mean. Decimals are aligned from the left, whole
    numbers, numerators, denominators and exponents from the right; more digits than the truth has
    cost nothing, and where there is no answer none is matched.

    rule
        How an answer is found in a text: ``published``, ``published-chat`` or ``strict``.

    >>> from numtok.metrics.base import Predictions
    >>> answers = Predictions.of_texts(["1287", "10.5", "7/13"], ["387", "0.15", "17 of 13"])
    >>> AnswerDigitMatch().plain(answers)  # 2 of 4, 1 of 3, and no fraction
    0.27777777777777773
    """

    revision = 2
    better = "higher"
    bounds = (0.0, 1.0)

    def of_score(self, score: Score) -> float:
        return score.digit_match
