"""base10: the tokens of ``bits``, and the number goes in and comes out digit by digit."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.encoding.schemes._channel import EveryFloat
from numtok.encoding.schemes.base import SchemeDefaults


@dataclass(frozen=True)
class Base10Scheme(EveryFloat):
    """The decimal twin of BitTokens (Kreitner et al. 2025, an ablation): the embedder and the head
    ``base10`` in place of its own, for sign, exponent and seventeen digits of a mantissa, which
    tell any two float64 apart. Tokens and channel are those of ``bits``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), base-10 encoding; public code"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(
        embedder="base10", head="base10", same_tokens_as="bits"
    )
    digest: ClassVar[str] = "458d09bca563326b"
