"""base10: each digit of a number in scientific notation, by a linear map."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from numtok.declaration import setting
from numtok.models.distributions.scientific import (
    EXPONENT,
    MANTISSA,
    IndependentScientific,
    digits_of,
)
from numtok.models.heads._exact import ExactHead, LinearReader, log_signs, signed_losses
from numtok.models.heads.base import ValueReader
from numtok.models.precision import in_float64, on_host

_PLACES = EXPONENT + MANTISSA
_LARGEST = float(np.nextafter(1e308, 0.0))


@dataclass(frozen=True)
class Base10Head(ExactHead):
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

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """int64[N, 21]: whether there is a minus, and the digits, of what is not finite those of
        0."""
        known = np.clip(np.where(np.isfinite(values), values, 0.0), -_LARGEST, _LARGEST)
        return np.concatenate([np.signbit(known)[:, None], digits_of(known)], axis=1)

    def build(self, width: int) -> ValueReader:
        return _Base10Reader(width, 1 + 10 * _PLACES, self.weight)


class _Base10Reader(LinearReader):
    """Parameters are the logit of a minus, and those of the digits, the highest place first."""

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.weight * signed_losses(*_parts(parameters_NP), targets_NW)

    def said(self, parameters_NP: Tensor) -> IndependentScientific:
        logits_NKJ, minus_N = _parts(in_float64(parameters_NP))
        log_digits = on_host(logits_NKJ.log_softmax(dim=2))
        return IndependentScientific(log_signs(minus_N), log_digits)


def _parts(parameters_NP: Tensor) -> tuple[Tensor, Tensor]:
    """[N, K, 10] logits of digits and [N] of a minus."""
    return parameters_NP[:, 1:].reshape(-1, _PLACES, 10), parameters_NP[:, 0]
