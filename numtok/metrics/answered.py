"""answered: fraction of generated texts that contain an answer in the requested form."""

from dataclasses import dataclass

from numtok.metrics._answers import AnswerMetric, Score


@dataclass(frozen=True)
class Answered(AnswerMetric):
    """Fraction of generated texts that contain an answer, right or wrong. The other answer metrics
    never skip a text without an answer; they count it as wrong.

    rule
        How the answer is extracted from the generated text: ``published``, ``published-chat`` or
        ``strict`` (see ``nupa.answers``).

    >>> from numtok.metrics.base import Predictions
    >>> answers = Predictions.of_texts(["12", "10.4"], ["12.5", "10"])
    >>> Answered().plain(answers), Answered(rule="strict").plain(answers)
    (0.5, 0.0)
    """

    revision = 2
    better = "higher"
    bounds = (0.0, 1.0)
    share = True

    def of_score(self, score: Score) -> float:
        return score.valid
