"""answered: how many questions got an answer of the form that was asked for."""

from dataclasses import dataclass

from numtok.metrics._answers import AnswerMetric, Score


@dataclass(frozen=True)
class Answered(AnswerMetric):
    """The share of generated texts in which an answer is found, right or wrong; the others are
    wrong in all other metrics, and never left out.

    rule
        How an answer is found in a text: ``published``, ``published-chat`` or ``strict``.

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
