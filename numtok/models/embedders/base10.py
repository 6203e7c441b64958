"""base10: the digits of the number in scientific notation, each as one of ten."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.models.distributions.scientific import EXPONENT, MANTISSA, digits_of
from numtok.models.embedders._exact import ExactEmbedder, ExactModule
from numtok.models.embedders.base import INIT, rescale_linear
from numtok.models.vocabulary import Vocabulary

_FEATURES = 2 + 10 * (EXPONENT + MANTISSA)


@dataclass(frozen=True)
class Base10Embedder(ExactEmbedder):
    """The decimal twin of BitTokens (Kreitner et al. 2025): the sign, three digits of the exponent
    plus 500, seventeen of the mantissa, each one-hot. A learnt map of them is added to the vector
    of ``[NUM]``. (In the public code the sign is one of ten, too, of which two come up.)
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), base-10 encoding; public code"

    def rescale(self, module: nn.Module, times: float) -> None:
        rescale_linear(module, times)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return _Base10(vocabulary, width)


class _Base10(ExactModule):
    def __init__(self, vocabulary: Vocabulary, width: int) -> None:
        super().__init__("base10", vocabulary, width)
        self.linear = nn.Linear(_FEATURES, width, bias=False)
        # Of each number 21 features are 1, and all others 0.
        nn.init.normal_(self.linear.weight, std=INIT / math.sqrt(1 + EXPONENT + MANTISSA))

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        digits = digits_of(np.abs(np.nan_to_num(values)))[:, :, None] == np.arange(10)
        signs = np.signbit(values)[:, None] == np.array([False, True])
        return np.concatenate([signs, digits.reshape(-1, _FEATURES - 2)], axis=1).astype(np.float32)

    def embedded(self, tokens_PD: Tensor, features_PF: Tensor) -> Tensor:
        added_PD: Tensor = self.linear(features_PF)
        return tokens_PD + added_PD
