"""mlm: predicts masked tokens and numbers from the context on both sides (masked LM)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.declaration import setting
from numtok.models.batches import Batch
from numtok.models.number_terms.base import NumberTerm
from numtok.models.objectives.base import Objective, built_term
from numtok.models.training_batch import TrainingBatch, masked_batch

_WHAT = ("numbers", "tokens", "targets")


@dataclass(frozen=True)
class Mlm(Objective):
    """Masked prediction: every masked token becomes ``[MASK]``, as in xVal, and its value becomes
    1.

    mask
        ``numbers``: each text token and each complete number is masked with probability ``rate``.
        ``tokens``: each token is masked independently, as in the xVal paper (Section 2.1), so other
        digits of the same number stay visible. ``targets``: only the targets are masked, as in the
        paper's arithmetic tables (Section 3.1).
    rate
        Masking probability, 0.3 as in the paper's public code; unused with ``targets``.
    number_loss
        An additional number loss, such as ``was:0.3``. Default: none.

    With ``mlm:targets``, the model sees ``(2 * 3) = 6`` as ``(2 * 3) = [MASK]``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2"
    causal: ClassVar[bool] = False
    positional: ClassVar[str] = "mask"
    mask: str = setting("numbers", choices=_WHAT)
    rate: float = setting(0.3, above=0, at_most=1)

    number_loss: str | None = None

    def __post_init__(self) -> None:
        built_term(self.number_loss)  # rejects invalid specs

    @property
    def number_term(self) -> NumberTerm | None:
        return built_term(self.number_loss)

    def requires(self) -> str | None:
        return "targets" if self.mask == "targets" else None

    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        if self.mask == "targets":
            return masked_batch(batch, batch.number_tokens(batch.is_target))
        # Not ``batch.real``: in an empty row it includes one pad, which would be masked and
        # predicted.
        inside = np.arange(batch.tokens.shape[1]) < batch.lengths[:, None]
        hidden = (random.random(batch.tokens.shape) < self.rate) & inside
        if self.mask == "numbers":
            chosen = random.random(len(batch.number)) < self.rate
            hidden[batch.number_tokens(np.ones(len(chosen), np.bool_))] = False
            hidden |= batch.number_tokens(chosen)
        return masked_batch(batch, hidden)
