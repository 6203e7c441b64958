"""answered: how many questions got an answer of the form that was asked for."""

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
class Answered(Metric):
    """The share of generated texts in which an answer is found, right or wrong; the others are
    wrong in all other metrics, and never left out.

    rule
        How an answer is found in a text: ``published``, ``published-chat`` or ``strict``.

    >>> answers = Predictions.of_texts(["12", "10.4"], ["12.5", "10"])
    >>> Answered().plain(answers), Answered(rule="strict").plain(answers)
    (0.5, 0.0)
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

    def statistic(self, answers: Predictions) -> Statistic:
        return mean(np.array([one.valid for one in scores(answers, self.rule)], np.float64))
