"""Base class for metrics on whole answers."""

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
    """Base class for metrics that are the mean of one score per answer (see ``nupa.answers``). An
    invalid prediction counts as a missing answer. ``rule`` sets how the answer is extracted from
    the generated text."""

    source = "NUPA (Yang et al. 2025)"
    measures = "answers"
    undefined = "there are no answers"
    needs = ("truth_literal", "prediction_literal")
    rule: str = setting("published", choices=RULES)

    @abstractmethod
    def of_score(self, score: Score) -> float:
        """Return the score of one answer."""

    @final
    def values(self, answers: Predictions) -> Values:
        scores = (score(truth, text, self.rule) for truth, text in answers.literals())
        return np.array([self.of_score(answer_score) for answer_score in scores], np.float64)
