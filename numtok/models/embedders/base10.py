"""base10: embeds a number by its one-hot digits in scientific notation (BitTokens)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.models.distributions.scientific import EXPONENT, MANTISSA, digits_of
from numtok.models.embedders._shared import Padded
from numtok.models.embedders.base import FeatureEmbedder
from numtok.models.vocabulary import Vocabulary

_CLASSES = 10
_PADDED = _CLASSES * (1 + EXPONENT + MANTISSA)  # features of the published code, for one number
_COMBINE = ("linear", "pad", "sum")


@dataclass(frozen=True)
class Base10Embedder(FeatureEmbedder):
    """The input encoding of BitTokens' decimal variant (Kreitner et al. 2025).

    The features are the sign, the three digits of (exponent + 500), and the 17 digits of the
    mantissa, each as a one-hot vector. The published runs use ``base10:pad,reciprocal=yes`` and the
    head ``base10,weight=10``.

    combine
        ``linear``: a learned linear map of the features, which are 0 or 1, is added to the vector
        of ``[NUM]``. ``pad``, as in the public code: the features are 1 or -1, and the sign has ten
        of them like a digit, 1 for plus and 0 for minus. Multiplied by sqrt(width / 210), they fill
        the first coordinates and zeros fill the others; the result replaces the vector of
        ``[NUM]``. ``sum``: the same result is added to the vector of ``[NUM]``.
    reciprocal
        Include the digits of 1 / x. For 0 they are those of 1e308; in the public code they are
        undefined.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), base-10 encoding; public code"
    positional: ClassVar[str] = "combine"
    combine: str = setting("linear", choices=_COMBINE)
    reciprocal: bool = False

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        known = np.nan_to_num(values)
        parts = [self._features(known)]
        if self.reciprocal:
            with np.errstate(divide="ignore", over="ignore"):
                parts.append(self._features(1 / known))
        return np.concatenate(parts, axis=1)

    def _features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        digits = digits_of(np.abs(values))
        if self.combine == "linear":
            signs = np.signbit(values)[:, None] == np.array([False, True])
            hot = (digits[:, :, None] == np.arange(_CLASSES)).reshape(-1, _PADDED - _CLASSES)
            return np.concatenate([signs, hot], axis=1).astype(np.float32)
        digits[values == 0, 0] = 5  # the public code gives zero the exponent 0, which is 500
        classes = np.concatenate([(values >= 0)[:, None], digits], axis=1)[:, :, None]
        hot = classes == np.arange(_CLASSES)
        return np.where(hot, 1, -1).astype(np.float32).reshape(-1, _PADDED)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        if self.combine == "linear":
            return super().build(vocabulary, width)
        count = _PADDED * (1 + self.reciprocal)
        if width < count:
            raise UsageError(
                f"--embedder base10:{self.combine} needs {count} coordinates; this model has "
                f"{width}. Use base10:linear (any width), or a wider --preset"
            )
        scale, adds = math.sqrt(width / _PADDED), self.combine == "sum"
        return Padded(self, vocabulary, width, scale=scale, adds=adds)
