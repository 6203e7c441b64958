"""was: the expected distance between the predicted and the true digit (number token loss)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from numtok.declaration import setting
from numtok.models.number_terms.base import DigitLogits, NumberTerm, reweighed


@dataclass(frozen=True)
class Was(NumberTerm):
    """Number token loss, Wasserstein form (Zausinger et al. 2025): sum(p |v - y|).

    The sum is over the digit tokens with values v, y is the true value, and p is the softmax over
    the digit tokens only.

    weight
        Weight of the added loss.
    squash
        Rescale distances so that they range from 1 (the two closest values) to this number (the two
        furthest values), as the ntloss package does. Default: distances are not rescaled.
    reweigh
        Penalize non-digit tokens more than any digit, as ntloss does by default. The paper does not
        do this.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "Number Token Loss (arXiv 2411.02083), Equation 3"
    positional: ClassVar[str] = "weight"
    weight: float = setting(0.3, above=0, below=math.inf)
    squash: float | None = setting(None, above=1, below=math.inf)
    reweigh: bool = False

    def losses(self, digits: DigitLogits) -> Tensor:
        apart_NT, worst = digits.apart_NT.abs(), digits.span
        if self.squash is not None:
            gaps = digits.values_T.diff()
            least = torch.where(gaps > 0, gaps, torch.inf).amin()
            span = (digits.span - least).clamp(min=least / 2)  # 0 for two values
            squashed_NT = 1 + (apart_NT - least) * (self.squash - 1) / span
            apart_NT = torch.where(apart_NT > 0, squashed_NT, 0.0)
            worst = 1 + (worst - least) * (self.squash - 1) / span
        losses_N = (digits.p_NT * apart_NT).sum(dim=1)
        return reweighed(losses_N, digits, worst) if self.reweigh else losses_N
