"""raft: the squared error of the expected value; non-digit tokens count as 0 (RAFT)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from numtok.declaration import setting
from numtok.models.number_terms.base import DigitLogits, NumberTerm


@dataclass(frozen=True)
class Raft(NumberTerm):
    """Regression-aware fine-tuning (Lukasik et al. 2025), added to cross-entropy as in TRACT.

    The loss is (sum(p v) - y)^2, where v are the values of the digit tokens, y is the true value,
    and p is the softmax over the whole vocabulary. The loss is intended for answers of a single
    token. Predict with the mean (``eval --point mean``).

    weight
        Weight of the added loss.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "RAFT (ICLR 2025); TRACT's public code"
    positional: ClassVar[str] = "weight"
    weight: float = setting(1.0, above=0, below=math.inf)

    def losses(self, digits: DigitLogits) -> Tensor:
        return ((digits.log_p_NT.exp() * digits.values_T).sum(dim=1) - digits.truth_N).square()
