"""dist2: KL divergence from target probabilities that decrease with the distance from the true
digit (DIST2Loss)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from numtok.declaration import setting
from numtok.models.number_terms.base import DigitLogits, NumberTerm


@dataclass(frozen=True)
class Dist2(NumberTerm):
    """DIST2Loss (2025): KL(q, p) with the target q = softmax(-d^2 / tau) over the digit tokens.

    d is the distance of a token's value from the value of the true token, and p is the softmax over
    all tokens. If several tokens have the same value, such as ``1`` and ``01``, q covers only
    tokens of the same length as the true token.

    The version of DIST2Loss in the code of the digit entropy loss differs: there p is the softmax
    over the digits only, and each digit is weighted by its position.

    weight
        Weight of the added loss.
    tau
        Temperature of the target; 2 gives the target of ``smooth:1``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "DIST2Loss (arXiv 2503.02379)"
    positional: ClassVar[str] = "weight"
    weight: float = setting(0.1, above=0, below=math.inf)
    tau: float = setting(1.0, above=0, below=math.inf)

    def losses(self, digits: DigitLogits) -> Tensor:
        q_NT = digits.near_NT(self.tau)
        return (torch.xlogy(q_NT, q_NT) - q_NT * digits.log_p_NT).sum(dim=1)
