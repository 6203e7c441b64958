"""bits: one token ``[NUM]`` per number; the model reads and predicts the 64 bits of its float64."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.encoding.schemes._channel import EveryFloat
from numtok.encoding.schemes.base import SchemeDefaults


@dataclass(frozen=True)
class BitsScheme(EveryFloat):
    """BitTokens (Kreitner et al. 2025): the embedder and head ``bits`` read and predict numbers bit
    by bit.

    The channel is float64, so every float64 number is kept exactly: 15 digits or more, from 5e-324
    to 1.8e308, and -0. An infinite prediction counts as an overflow, and NaN as malformed.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), Section 3"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(embedder="bits", head="bits")
    digest: ClassVar[str] = "458d09bca563326b"
