"""digit-entropy: binary cross-entropy per digit, weighted by the digit's position."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from numtok.declaration import setting
from numtok.models.number_terms.base import DigitLogits, NumberTerm


@dataclass(frozen=True)
class DigitEntropy(NumberTerm):
    """Digit entropy loss (2026): the mean over digits j of p_j BCE(z_j, [j = y]), multiplied by a
    position weight.

    z_j is the logit of digit j, y is the true digit, [j = y] is 1 if j is the true digit and 0
    otherwise, and p is the softmax over the digits only. The position weight of a digit before the
    point is twice its position, counted from the point (``123``: 6, 4, 2). After the point, the
    position weights are 1.02^-2, 1.02^-3 and so on.

    The loss depends on logits, not only on probabilities: adding 5 to all logits changes it.

    The public code counts the decimal point as an eleventh class; here it is not a digit, and its
    token has no loss of this kind.

    weight
        Weight of the added loss. The public code uses 0.1 for CodeLlama and Mistral, and 0.01 for
        Qwen and DeepSeek.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Digit entropy loss (arXiv 2605.20369); public code"
    positional: ClassVar[str] = "weight"
    weight: float = setting(0.1, above=0, below=math.inf)

    def losses(self, digits: DigitLogits) -> Tensor:
        right_NT = F.one_hot(digits.right_N, len(digits.values_T)).to(digits.logits_NT.dtype)
        each_NT = F.binary_cross_entropy_with_logits(digits.logits_NT, right_NT, reduction="none")
        place_N = digits.places_N.to(each_NT.dtype)
        weight_N = torch.where(place_N > 0, 2 * place_N, 1.02 ** (place_N - 2))
        return (digits.p_NT * each_NT).mean(dim=1) * weight_N
