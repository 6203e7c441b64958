"""answer-d-length: how many digits answers have more or fewer than the true ones."""

from dataclasses import dataclass

from numtok.metrics._answers import AnswerMetric, Score
from numtok.metrics.base import NOT_NEGATIVE


@dataclass(frozen=True)
class AnswerDLength(AnswerMetric):
    """NUPA's d-length of whole answers, a mean; where there is no answer it is all digits of the
    truth.

    rule
        How an answer is found in a text: ``published``, ``published-chat`` or ``strict``.
    parts
        ``no``, as in the code for language models: of all digits together, so that one too many
        before the point and one too few behind it cancel. ``yes``, as in the code for models
        trained from scratch: of each part by itself, then summed.

    >>> from numtok.metrics.base import Predictions
    >>> answers = Predictions.of_texts(["10.5", "12"], ["1.25", "no"])
    >>> AnswerDLength().plain(answers), AnswerDLength(parts=True).plain(answers)
    (1.0, 2.0)
    """

    revision = 2
    better = "lower"
    bounds = NOT_NEGATIVE
    parts: bool = False

    def of_score(self, score: Score) -> float:
        return score.d_length_parts if self.parts else score.d_length
