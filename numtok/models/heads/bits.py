"""bits: predicts the 64 bits of a float64 independently, with one linear layer (BitTokens)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from numtok.declaration import setting
from numtok.models.common_heads import ClassesHead, ClassesReader
from numtok.models.distributions.bits import IndependentBits, bits_of, values_of
from numtok.models.heads.base import ValueReader

_BITS = 64


@dataclass(frozen=True)
class BitsHead(ClassesHead):
    """BitTokens' head (Kreitner et al. 2025, Section 3): one logit per bit of a float64.

    The bits represent sign, exponent and significand. The loss is ``weight`` times the mean
    cross-entropy over the bits, all weighted equally. If all bits of the exponent are predicted as
    1, the prediction is infinite or NaN and counts as invalid.

    weight
        Weight of the loss relative to the cross-entropy of tokens.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), Section 3"
    weight: float = setting(10.0, above=0, below=float("inf"))

    def describe(self) -> str:
        return "independent bits of a float64"

    @property
    def sizes(self) -> Sequence[int]:
        return [2] * _BITS

    def classes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return bits_of(values)

    def numbers(self, classes: NDArray[np.int64]) -> NDArray[np.float64]:
        return values_of(classes)

    def distribution(self, logs: Sequence[NDArray[np.float64]]) -> IndependentBits:
        return IndependentBits(logs[0])

    def build(self, width: int) -> ValueReader:
        return _BitsReader(self, width)


class _BitsReader(ClassesReader):
    """Parameters are the logits of each bit being 1, highest bit first."""

    head: BitsHead

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.head.weight * super().losses(parameters_NP, targets_NW)
