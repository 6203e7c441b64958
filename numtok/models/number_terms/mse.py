"""mse: the squared error of the expected digit (number token loss)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from numtok.declaration import setting
from numtok.models.number_terms.base import DigitLogits, NumberTerm, reweighed


@dataclass(frozen=True)
class SquaredTerm(NumberTerm):
    """Number token loss, squared form (Zausinger et al. 2025): (sum(p v) - y)^2.

    The sum is over the digit tokens with values v, y is the true value, and p is the softmax over
    the digit tokens only. Distributions with the same mean have the same loss: equal probabilities
    of 0 and 6 have the same loss as certainty about 3.

    weight
        Weight of the added loss.
    reweigh
        Penalize non-digit tokens more than any digit, as in ``was``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Number Token Loss (arXiv 2411.02083), Equation 2"
    positional: ClassVar[str] = "weight"
    weight: float = setting(0.3, above=0, below=math.inf)
    reweigh: bool = False

    def losses(self, digits: DigitLogits) -> Tensor:
        expected_N = (digits.p_NT * digits.values_T).sum(dim=1)
        losses_N = (expected_N - digits.truth_N).square()
        return reweighed(losses_N, digits, digits.span.square()) if self.reweigh else losses_N
