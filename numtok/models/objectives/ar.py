"""ar: predict each token from the tokens before it (autoregressive)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.declaration import setting
from numtok.models.batches import Batch
from numtok.models.number_terms.base import NumberTerm
from numtok.models.objectives.base import Objective, built_term
from numtok.models.training_batch import LOSSES, TrainingBatch, leftward


@dataclass(frozen=True)
class Ar(Objective):
    """Next-token prediction: the input is the row shifted by one, after ``[END]``.

    The model also predicts ``[END]`` after the last token.

    loss
        ``all``: every token contributes to the loss. ``answer``: only tokens from ``answer_start``
        onwards do; rows without an answer do not contribute.
    number_loss
        An additional number loss, such as ``was:0.3``. Default: none.

    At inference, the token head predicts the next token. If this token stands for a number with a
    value channel, the value head predicts the value (xVal, Section 2.2).
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2"
    causal: ClassVar[bool] = True
    positional: ClassVar[str] = "loss"
    loss: str = setting("all", choices=LOSSES)

    number_loss: str | None = None

    def __post_init__(self) -> None:
        built_term(self.number_loss)  # rejects invalid specs

    @property
    def number_term(self) -> NumberTerm | None:
        return built_term(self.number_loss)

    def requires(self) -> str | None:
        return "answer_start" if self.loss == "answer" else None

    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        return leftward(batch, self.loss)
