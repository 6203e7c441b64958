"""base10: each digit of a number in scientific notation, by a linear map."""

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
    """The head of BitTokens' decimal twin (Kreitner et al. 2025): logits of the sign, of three
    digits of the exponent plus 500 and of seventeen of the mantissa. The loss is the sum of their
    cross-entropies, times ``weight``. (In the public code the sign has ten logits.)

    What begins with the digit 0 is read as zero; from 1e308 on a number is infinite, and not valid.

    weight
        Of the loss beside that of the tokens.
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
        """int64[N, 21]: whether there is a minus, and the digits."""
        known = np.clip(values, -_LARGEST, _LARGEST)
        return np.concatenate([np.signbit(known)[:, None], digits_of(known)], axis=1)

    def numbers(self, classes: NDArray[np.int64]) -> NDArray[np.float64]:
        sizes = sizes_of(classes[:, 1:])
        return np.where((classes[:, 0] > 0) & (sizes > 0), -sizes, sizes)

    def distribution(self, logs: Sequence[NDArray[np.float64]]) -> IndependentScientific:
        [signs, digits] = logs
        return IndependentScientific(signs[:, 0], digits)

    def build(self, width: int) -> ValueReader:
        return _Base10Reader(self, width)


class _Base10Reader(ClassesReader):
    """The loss is a sum, not a mean."""

    head: Base10Head

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.head.weight * self.summed_losses(parameters_NP, targets_NW)
