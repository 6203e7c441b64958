"""lookup: a vector for each token; values are not looked at."""

from dataclasses import dataclass
from typing import ClassVar, cast

from torch import Tensor, nn

from numtok.models.embedders.base import Embedder, token_table
from numtok.models.vocabulary import Vocabulary


@dataclass(frozen=True)
class Lookup(Embedder):
    """The embedding of every text scheme (P10, P1000, B1999, FP15): a row of a table.

    With the scheme ``numgpt`` that is the exponent alone.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 3 (after Charton 2022)"

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return _Lookup(vocabulary.size, width)


class _Lookup(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.table = token_table(vocabulary, width)

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        return cast(Tensor, self.table(tokens_BL))
