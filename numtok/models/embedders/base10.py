"""base10: embeds a number by its one-hot digits in scientific notation (BitTokens)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.models.distributions.scientific import EXPONENT, MANTISSA, digits_of
from numtok.models.embedders.base import FeatureEmbedder

_FEATURES = 2 + 10 * (EXPONENT + MANTISSA)


@dataclass(frozen=True)
class Base10Embedder(FeatureEmbedder):
    """The input encoding of BitTokens' decimal variant (Kreitner et al. 2025).

    The features are the sign, the three digits of (exponent + 500), and the 17 digits of the
    mantissa, each as a one-hot vector. A learned linear map of the features is added to the vector
    of ``[NUM]``. (In the public code, the sign is a one-hot vector of length 10 like the digits,
    although only two values occur.)
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), base-10 encoding; public code"

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        digits = digits_of(np.abs(np.nan_to_num(values)))[:, :, None] == np.arange(10)
        signs = np.signbit(values)[:, None] == np.array([False, True])
        return np.concatenate([signs, digits.reshape(-1, _FEATURES - 2)], axis=1).astype(np.float32)
