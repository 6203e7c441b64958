"""bits: each of the 64 bits of a number, by a linear map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from numtok.declaration import setting
from numtok.models.distributions.bits import IndependentBits, bits_of
from numtok.models.heads._exact import ExactHead, LinearReader
from numtok.models.heads.base import ValueReader
from numtok.models.precision import in_float64, on_host

_BITS = 64


@dataclass(frozen=True)
class BitsHead(ExactHead):
    """BitTokens' head (Kreitner et al. 2025, Section 3): a logit for each bit of the float64, sign,
    exponent, significand. The loss is the mean of their cross-entropies, all alike, times
    ``weight``.

    What is said can be infinite or no number, by an exponent of ones: it is then not valid.

    weight
        Of the loss beside that of the tokens.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), Section 3"
    weight: float = setting(10.0, above=0, below=float("inf"))

    def describe(self) -> str:
        return "independent bits of a float64"

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """float32[N, 64]: the bits, of what is not finite those of 0."""
        return bits_of(np.where(np.isfinite(values), values, 0.0)).astype(np.float32)

    def build(self, width: int) -> ValueReader:
        return _BitsReader(width, _BITS, self.weight)


class _BitsReader(LinearReader):
    """Parameters are the logits of ones, the highest bit first."""

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        each_NP = F.binary_cross_entropy_with_logits(parameters_NP, targets_NW, reduction="none")
        return self.weight * each_NP.mean(dim=1)

    def said(self, parameters_NP: Tensor) -> IndependentBits:
        logits_NP = in_float64(parameters_NP)
        return IndependentBits(on_host(F.logsigmoid(torch.stack([-logits_NP, logits_NP], dim=2))))
