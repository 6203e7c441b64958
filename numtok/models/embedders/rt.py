"""rt: adds fixed numerical encodings to the vectors of digits (Regression Transformer)."""

from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from numtok.declaration import setting
from numtok.encoding.schemes.rt import token_value
from numtok.errors import UsageError
from numtok.models.embedders.base import Embedder, TokenVectors
from numtok.models.vocabulary import Vocabulary


@dataclass(frozen=True)
class RtEmbedder(Embedder):
    """Numerical encodings of the Regression Transformer (Born and Manica 2023), for the scheme
    ``rt``.

    Coordinate j = 0, 1, ... of the encoding of ``_d_p_`` is

        (-1)^j d 10^p / (2 floor(j / 2) + 1) * 10 / largest

    and is added to the learned vector of the token; all other tokens have no encoding. The divisors
    1, 1, 3, 3, ... are those of the public code.

    largest
        Number whose encoding starts with 10. Default: the largest value of a token. The published
        configuration sets 1, for properties between 0 and 1.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Born and Manica (2023); public code, terminator/numerical_encodings.py"
    positional: ClassVar[str] = "largest"
    largest: float | None = setting(None, above=0)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        values = [token_value(name) or 0.0 for name in vocabulary.names]
        if not any(values):
            raise UsageError(
                "--embedder rt needs digit tokens with a decimal place; this data has none. "
                "Encode with --scheme rt, or use --embedder lookup"
            )
        largest = max(values) if self.largest is None else self.largest
        return _Encoded(vocabulary, width, [10 * value / largest for value in values])


class _Encoded(TokenVectors):
    def __init__(self, vocabulary: Vocabulary, width: int, values: list[float]) -> None:
        super().__init__(vocabulary, width)
        values_V = torch.zeros(vocabulary.size)
        values_V[vocabulary.first : vocabulary.first_of_text] = torch.tensor(values)
        index_D = torch.arange(width)
        coordinates_D = (1 - 2 * (index_D % 2)) / (2 * (index_D // 2) + 1)
        self.register_buffer("values", values_V, persistent=False)
        self.register_buffer("coordinates", coordinates_D, persistent=False)

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        encoded_BL1 = cast(Tensor, self.values)[tokens_BL][:, :, None]
        return super().forward(tokens_BL, values_BL) + encoded_BL1 * cast(Tensor, self.coordinates)
