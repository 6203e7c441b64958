"""ar: predict each token from those before it."""

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
    """The row is seen moved by one, ``[END]`` first, and ``[END]`` is predicted behind it.

    loss
        ``all``: every token is learnt. ``answer``: those from ``answer_start`` on, of a row without
        one none.

    number_loss
        A number loss that is learnt, too, such as ``was:0.3``. Default: none.

    At inference the token head decides what comes next, and where that is a number with a value
    channel, the number head fills the value in (xVal, Section 2.2).
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2"
    causal: ClassVar[bool] = True
    positional: ClassVar[str] = "loss"
    loss: str = setting("all", choices=LOSSES)

    number_loss: str | None = None

    def __post_init__(self) -> None:
        built_term(self.number_loss)  # refuses what is none

    @property
    def number_term(self) -> NumberTerm | None:
        return built_term(self.number_loss)

    def requires(self) -> str | None:
        return "answer_start" if self.loss == "answer" else None

    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        return leftward(batch, self.loss)
