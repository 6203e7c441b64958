"""bits: embeds a number by the 64 bits of its float64 representation (BitTokens)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.models.distributions.bits import bits_of
from numtok.models.embedders._shared import Padded
from numtok.models.embedders.base import FeatureEmbedder
from numtok.models.vocabulary import Vocabulary

_BITS = 64
_COMBINE = ("pad", "sum", "linear")


@dataclass(frozen=True)
class BitsEmbedder(FeatureEmbedder):
    """BitTokens' input encoding (Kreitner et al. 2025, Section 3): the bits of a number as a
    float64.

    The features are the bits of sign, exponent and significand, highest bit first, each as 1 or -1.
    The bits of 1 / x follow.

    combine
        ``pad``, as in the paper's published runs: the bits, multiplied by sqrt(width / bits), fill
        the first coordinates and zeros fill the others; the result replaces the vector of
        ``[NUM]``. ``sum``, as on the project page: the same result is added to the vector of
        ``[NUM]``. ``linear`` (not in the paper): a learned linear map of the bits is added, for
        models with fewer coordinates than bits.
    reciprocal
        Include the bits of 1 / x, which is infinite for 0.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), Section 3"
    positional: ClassVar[str] = "combine"
    checked_at: ClassVar[str] = "bits:linear"  # fits into narrow models
    combine: str = setting("pad", choices=_COMBINE)
    reciprocal: bool = True

    @property
    def count(self) -> int:
        """Number of bits per number: 64, or 128 if the bits of 1 / x are included."""
        return _BITS * (1 + self.reciprocal)

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        bits = bits_of(values)
        if self.reciprocal:
            with np.errstate(divide="ignore", over="ignore"):
                bits = np.concatenate([bits, bits_of(1 / values)], axis=1)
        return (2 * bits - 1).astype(np.float32)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        if self.combine == "linear":
            return super().build(vocabulary, width)
        if width < self.count:
            fewer = "bits,reciprocal=no (64 bits), " if self.reciprocal else ""
            raise UsageError(
                f"--embedder bits needs {self.count} coordinates; this model has {width}. Use "
                f"{fewer}bits:linear (any width), or a wider --preset"
            )
        scale, adds = math.sqrt(width / self.count), self.combine == "sum"
        return Padded(self, vocabulary, width, scale=scale, adds=adds)
