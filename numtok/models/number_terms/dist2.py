"""dist2: beside the label, a target that falls with the distance from it."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from numtok.declaration import setting
from numtok.models.number_terms.base import DigitLogits, NumberTerm


@dataclass(frozen=True)
class Dist2(NumberTerm):
    """DIST2Loss (2025): KL(q, p) of the target q = softmax(-d^2 / tau) over the tokens of digits, d
    the distance of their values from the right one; p of the softmax over all tokens. Where ``1``
    and ``01`` are two tokens, q is of those as long as the right one.

    weight
        With which it is added.
    tau
        2 is the target of ``smooth:1``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "DIST2Loss (arXiv 2503.02379)"
    positional: ClassVar[str] = "weight"
    weight: float = setting(0.1, above=0, below=math.inf)
    tau: float = setting(1.0, above=0, below=math.inf)

    def losses(self, said: DigitLogits) -> Tensor:
        q_NT = said.near_NT(self.tau)
        return (torch.xlogy(q_NT, q_NT) - q_NT * said.log_p_NT).sum(dim=1)
