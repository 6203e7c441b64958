"""token: a number is the tokens that the scheme writes for it."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from numtok.models.heads.base import TokenHead
from numtok.models.vocabulary import Vocabulary


@dataclass(frozen=True)
class Token(TokenHead):
    """Nothing beside the token head that every model has: cross-entropy over the vocabulary.

    Its predictive distribution is made of the scheme's intervals, from the probabilities of all
    of a number's tokens together (``distributions.intervals``).
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2.2"
    per_token: ClassVar[bool] = True

    def tokens(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> nn.Module:
        return words

    def describe(self) -> str:
        return "token probabilities, uniform within the scheme's intervals"
