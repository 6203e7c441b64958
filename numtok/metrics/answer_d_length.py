"""answer-d-length: how many digits answers have more or fewer than the true ones."""

import math
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
class AnswerDLength(Metric):
    """NUPA's d-length of whole answers, a mean; where there is no answer it is all digits of the
    truth.

    rule
        How an answer is found in a text: ``published``, ``published-chat`` or ``strict``.
    parts
        ``no``, as in the code for language models: of all digits together, so that one too many
        before the point and one too few behind it cancel. ``yes``, as in the code for models
        trained from scratch: of each part by itself, then summed.

    >>> answers = Predictions.of_texts(["10.5", "12"], ["1.25", "no"])
    >>> AnswerDLength().plain(answers), AnswerDLength(parts=True).plain(answers)
    (1.0, 2.0)
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "NUPA (Yang et al. 2025)"
    measures: ClassVar[Literal["answers"]] = "answers"
    better: ClassVar[Literal["lower"]] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    undefined: ClassVar[str] = "there are no answers"
    needs: ClassVar[tuple[str, ...]] = ("truth_literal", "prediction_literal")
    rule: str = setting("published", choices=RULES)
    parts: bool = False

    def statistic(self, answers: Predictions) -> Statistic:
        found = scores(answers, self.rule)
        off = [one.d_length_parts if self.parts else one.d_length for one in found]
        return mean(np.array(off, np.float64))
