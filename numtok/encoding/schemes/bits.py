"""bits: one token ``[NUM]`` for every number, beside it all 64 bits of its float64."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.encoding.schemes._channel import EveryFloat
from numtok.encoding.schemes.base import SchemeDefaults


@dataclass(frozen=True)
class BitsScheme(EveryFloat):
    """BitTokens (Kreitner et al. 2025): the number goes in and comes out bit by bit, by the
    embedder and the head ``bits``.

    The channel is float64, so every number is kept that has one: 15 digits and more, from 5e-324
    to 1.8e308, and -0. What a head says that is infinite or no number is overflow or malformed.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), Section 3"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(embedder="bits", head="bits")
    digest: ClassVar[str] = "458d09bca563326b"
