"""ar: predict each token from those before it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.declaration import setting
from numtok.models.batches import Batch
from numtok.models.objectives._leftward import LOSSES, leftward
from numtok.models.objectives.base import Objective, TrainingBatch


@dataclass(frozen=True)
class Ar(Objective):
    """The row is seen moved by one, ``[END]`` first, and ``[END]`` is predicted behind it.

    loss
        ``all``: every token is learnt. ``answer``: those from ``answer_start`` on, of a row without
        one none.

    At inference the token head decides what comes next, and where that is a number with a value
    channel, the number head fills the value in (xVal, Section 2.2).
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2"
    causal: ClassVar[bool] = True
    positional: ClassVar[str] = "loss"
    loss: str = setting("all", choices=LOSSES)

    def requires(self) -> str | None:
        return "answer_start" if self.loss == "answer" else None

    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        return leftward(batch, self.loss)
