"""answer-exact-match: how many answers are the true one."""

from dataclasses import dataclass

from numtok.declaration import setting
from numtok.metrics._answers import AnswerMetric, Score


@dataclass(frozen=True)
class AnswerExactMatch(AnswerMetric):
    """NUPA's exact match of whole answers, as texts or as numbers.

    rule
        How an answer is found in what was generated: ``published``, ``published-chat`` or
        ``strict`` (``nupa.answers``).
    by
        ``text``: the digits of all parts are the same, as in the code for language models, so 1.50
        is not 1.5 and 2/4 not 1/2. ``value``: they are the same number, as in the code for models
        trained from scratch.

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
