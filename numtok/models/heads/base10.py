"""base10: predicts each digit of a number in scientific notation, with one linear layer
(BitTokens)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from numtok.declaration import setting
from numtok.models.common_heads import ClassesHead, ClassesReader
from numtok.models.distributions.scientific import (
    EXPONENT,
    MANTISSA,
    IndependentScientific,
    digits_of,
    sizes_of,
)
from numtok.models.heads.base import ValueReader

_PLACES = EXPONENT + MANTISSA
_LARGEST = float(np.nextafter(1e308, 0.0))


@dataclass(frozen=True)
class Base10Head(ClassesHead):
    """The head of BitTokens' decimal variant (Kreitner et al. 2025): one softmax per digit.

    A linear layer computes logits for the sign, the three digits of (exponent + 500), and the
    17 digits of the mantissa. The loss is ``weight`` times the sum of their cross-entropies. (In
    the public code the sign has ten logits.)

    A predicted mantissa that starts with 0 means zero. Predictions of 1e308 or more are infinite
    and count as invalid.

    weight
        Weight of the loss relative to the cross-entropy of tokens. The public code uses 10.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), base-10 encoding; public code"
    weight: float = setting(1.0, above=0, below=float("inf"))

    def describe(self) -> str:
        return "independent digits in scientific notation"

    def representable(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.abs(values) <= _LARGEST

    @property
    def sizes(self) -> Sequence[int]:
        return (2, *[10] * _PLACES)

    def classes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return int64[N, 21]: the classes of each value. The first is 1 for a minus sign and 0
        otherwise; the others are the 20 digits of exponent and mantissa."""
        clipped = np.clip(values, -_LARGEST, _LARGEST)
        return np.concatenate([np.signbit(clipped)[:, None], digits_of(clipped)], axis=1)

    def numbers(self, classes: NDArray[np.int64]) -> NDArray[np.float64]:
        sizes = sizes_of(classes[:, 1:])
        return np.where((classes[:, 0] > 0) & (sizes > 0), -sizes, sizes)

    def distribution(self, logs: Sequence[NDArray[np.float64]]) -> IndependentScientific:
        [signs, digits] = logs
        return IndependentScientific(signs[:, 0], digits)

    def build(self, width: int) -> ValueReader:
        return _Base10Reader(self, width)


class _Base10Reader(ClassesReader):
    """Sums the cross-entropies instead of averaging them."""

    head: Base10Head

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.head.weight * self.summed_losses(parameters_NP, targets_NW)
