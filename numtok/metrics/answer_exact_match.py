"""answer-exact-match: fraction of answers equal to the true answer."""

from dataclasses import dataclass

from numtok.declaration import setting
from numtok.metrics._answers import AnswerMetric, Score


@dataclass(frozen=True)
class AnswerExactMatch(AnswerMetric):
    """Fraction of generated answers that equal the true answer, compared as text or as numbers
    (NUPA's exact match).

    rule
        How the answer is extracted from the generated text: ``published``, ``published-chat`` or
        ``strict`` (see ``nupa.answers``).
    by
        If ``text``, the digits of all parts must be equal: 1.50 does not match 1.5, and 2/4 does
        not match 1/2 (as in the published code for language models). If ``value``, the numbers must
        be equal (as in the published code for models trained from scratch).

    >>> from numtok.metrics.base import Predictions
    >>> answers = Predictions.of_texts(["12", "1/2", "1.5e3"], ["12.5", "2/4", "1.5e-3"])
    >>> [AnswerExactMatch(*of).plain(answers) for of in (("published",), ("strict",))]
    [0.6666666666666666, 0.0]
    >>> AnswerExactMatch(by="value").plain(answers)
    1.0
    """

    revision = 2
    better = "higher"
    bounds = (0.0, 1.0)
    share = True
    by: str = setting("text", choices=("text", "value"))

    def of_score(self, score: Score) -> float:
        return score.exact if self.by == "text" else score.equal
