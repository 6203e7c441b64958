"""smooth: the labels of digits are spread over their neighbours."""

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from numtok.declaration import setting
from numtok.models.number_terms.base import DigitLogits, NumberTerm


@dataclass(frozen=True)
class Smooth(NumberTerm):
    """Gaussian label smoothing, in place of the cross-entropy of digits: that of the target
    q ~ exp(-(v - y)^2 / 2 sigma^2) over the tokens of digits; where ``1`` and ``01`` are two, those
    as long as the right one.

    sigma
        In units of the values of tokens.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Number Token Loss (arXiv 2411.02083), baseline"
    weight: ClassVar[None] = None
    positional: ClassVar[str] = "sigma"
    sigma: float = setting(1.0, above=0, below=math.inf)

    def losses(self, said: DigitLogits) -> Tensor:
        return -(said.near_NT(2 * self.sigma**2) * said.log_p_NT).sum(dim=1)
