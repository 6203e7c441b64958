"""answer-d-length: mean difference in the number of digits between generated and true answers."""

from dataclasses import dataclass

from numtok.metrics._answers import AnswerMetric, Score
from numtok.metrics.base import NOT_NEGATIVE


@dataclass(frozen=True)
class AnswerDLength(AnswerMetric):
    """Mean absolute difference in the number of digits between generated and true answers (NUPA's
    d-length). For a missing answer, the difference is the number of digits of the true answer.

    rule
        How the answer is extracted from the generated text: ``published``, ``published-chat`` or
        ``strict`` (see ``nupa.answers``).
    parts
        If ``no``, all digits are counted together, so one digit too many before the point and one
        too few after it cancel out (as in the published code for language models). If ``yes``, each
        part is compared separately and the differences are added (as in the published code for
        models trained from scratch).

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
