"""smooth: Gaussian label smoothing over neighboring digits."""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from numtok.declaration import setting
from numtok.models.number_terms.base import DigitLogits, NumberTerm


@dataclass(frozen=True)
class Smooth(NumberTerm):
    """Gaussian label smoothing, which replaces the cross-entropy of digits.

    The target probability of a digit token with value v is proportional to exp(-(v - y)^2 / (2
    sigma^2)), where y is the true value. If several tokens have the same value, such as ``1`` and
    ``01``, only tokens of the same length as the true token have a probability above 0.

    sigma
        Standard deviation of the target, in units of the tokens' values.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Number Token Loss (arXiv 2411.02083), baseline"
    weight: ClassVar[None] = None
    positional: ClassVar[str] = "sigma"
    sigma: float = setting(1.0, above=0, below=math.inf)

    def losses(self, digits: DigitLogits) -> Tensor:
        return -(digits.near_NT(2 * self.sigma**2) * digits.log_p_NT).sum(dim=1)
