"""answer-exact-match: how many answers are the true one."""

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
class AnswerExactMatch(Metric):
    """NUPA's exact match of whole answers, as texts or as numbers.

    rule
        How an answer is found in what was generated: ``published``, ``published-chat`` or
        ``strict`` (``nupa.answers``).
    by
        ``text``: the digits of all parts are the same, as in the code for language models, so 1.50
        is not 1.5 and 2/4 not 1/2. ``value``: they are the same number, as in the code for models
        trained from scratch.

    >>> answers = Predictions.of_texts(["12", "1/2", "1.5e3"], ["12.5", "2/4", "1.5e-3"])
    >>> [AnswerExactMatch(*of).plain(answers) for of in (("published",), ("strict",))]
    [0.6666666666666666, 0.0]
    >>> AnswerExactMatch(by="value").plain(answers)
    1.0
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "NUPA (Yang et al. 2025)"
    measures: ClassVar[Literal["answers"]] = "answers"
    better: ClassVar[Literal["higher"]] = "higher"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    share: ClassVar[bool] = True
    undefined: ClassVar[str] = "there are no answers"
    needs: ClassVar[tuple[str, ...]] = ("truth_literal", "prediction_literal")
    rule: str = setting("published", choices=RULES)
    by: str = setting("text", choices=("text", "value"))

    def statistic(self, answers: Predictions) -> Statistic:
        found = scores(answers, self.rule)
        same = [one.exact if self.by == "text" else one.equal for one in found]
        return mean(np.array(same, np.float64))
