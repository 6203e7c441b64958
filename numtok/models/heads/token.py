"""token: predicts each number as the tokens that the scheme uses for it."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from numtok.models.heads.base import TokenHead
from numtok.models.vocabulary import Vocabulary


@dataclass(frozen=True)
class Token(TokenHead):
    """Numbers are predicted by the model's token head, trained with the cross-entropy over the
    vocabulary.

    The predictive distribution consists of the scheme's intervals, weighted by the joint
    probability of all tokens of a number (``distributions.intervals``).
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2.2"
    per_token: ClassVar[bool] = True

    def tokens(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> nn.Module:
        return words

    def describe(self) -> str:
        return "token probabilities, uniform within the scheme's intervals"
