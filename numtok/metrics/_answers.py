"""What the metrics of whole answers share."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from numtok.data.nupa.answers import RULES, score
from numtok.data.nupa.answers import Score as Score
from numtok.declaration import setting
from numtok.metrics.base import MeanMetric, Predictions, Values


@dataclass(frozen=True)
class AnswerMetric(MeanMetric):
    """The mean of a figure of each answer (``nupa.answers`` says what each is); what is not valid
    was not generated. ``rule`` says how an answer is found in a text."""

    source = "NUPA (Yang et al. 2025)"
    measures = "answers"
    undefined = "there are no answers"
    needs = ("truth_literal", "prediction_literal")
    rule: str = setting("published", choices=RULES)

    @abstractmethod
    def of_score(self, score: Score) -> float:
        """The figure of one answer."""

    @final
    def values(self, answers: Predictions) -> Values:
        scores = (score(truth, text, self.rule) for truth, text in answers.literals())
        return np.array([self.of_score(one) for one in scores], np.float64)
