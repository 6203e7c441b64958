"""lookup: one vector per token; numeric values are ignored."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from numtok.models.embedders.base import Embedder, TokenVectors
from numtok.models.vocabulary import Vocabulary


@dataclass(frozen=True)
class Lookup(Embedder):
    """One vector per token, as used with schemes that write numbers as tokens (P10, P1000, B1999,
    FP15).

    With the scheme ``numgpt``, only the exponent has a token, so the mantissa has no effect.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 3 (after Charton 2022)"

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return TokenVectors(vocabulary, width)
