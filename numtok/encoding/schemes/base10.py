"""base10: one token ``[NUM]`` per number; the model reads and predicts its decimal digits."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.encoding.schemes._channel import EveryFloat
from numtok.encoding.schemes.base import SchemeDefaults


@dataclass(frozen=True)
class Base10Scheme(EveryFloat):
    """Decimal variant of BitTokens, an ablation by Kreitner et al. (2025). The embedder and head
    ``base10`` read and predict the sign, the exponent and 17 mantissa digits, enough to distinguish
    any two float64 numbers. Tokens and channel are the same as in ``bits``."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), base-10 encoding; public code"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(
        embedder="base10", head="base10", same_tokens_as="bits"
    )
    digest: ClassVar[str] = "458d09bca563326b"
