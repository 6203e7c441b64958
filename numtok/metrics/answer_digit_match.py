"""answer-digit-match: mean fraction of the true answer's digits at the right digit position."""

from dataclasses import dataclass

from numtok.metrics._answers import AnswerMetric, Score


@dataclass(frozen=True)
class AnswerDigitMatch(AnswerMetric):
    """Mean fraction of the true answer's digits that the generated answer has at the same position
    in the same part (NUPA's digit match). Decimals are aligned from the left; integer parts,
    numerators, denominators and exponents are aligned from the right. Extra digits are not
    penalized. A missing answer matches no digit.

    rule
        How the answer is extracted from the generated text: ``published``, ``published-chat`` or
        ``strict`` (see ``nupa.answers``).

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
