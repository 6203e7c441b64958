"""scaled: the vector of ``[NUM]`` times the number's value."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from numtok.models.embedders.base import Embedder, TokenVectors
from numtok.models.objectives.base import Objective
from numtok.models.trunks.base import TokenTrunk
from numtok.models.vocabulary import Vocabulary

_LARGEST = 1e15  # of a value


@dataclass(frozen=True)
class Scaled(Embedder):
    """h_emb = h_num x h_text (xVal, Section 2.1): -60.2 is -60.2 times the vector of ``[NUM]``.

    Layer norm keeps the direction of a vector and loses its length, so the value is seen only
    through the position that is added before: x u + p, normalised, has x / sqrt(1 + x^2) along u.

    It is the value beside the token that multiplies: with the scheme ``numgpt`` the mantissa does,
    the vector of its exponent, and numbers of all sizes have vectors of like length.

    Beyond 1e15 all values are that: in float32 their direction is the same, and the squares of a
    layer norm overflow at some 1e20, which would make NaN of all places that could look there.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2.1"

    def unsuited(self, trunk: TokenTrunk, objective: Objective) -> str | None:
        """Refuse trunks that never add positions: the length of a vector is lost in them."""
        why = trunk.length_is_lost
        return None if why is None else f"--embedder scaled does not go with {why}"

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return _Scaled(vocabulary, width)


class _Scaled(TokenVectors):
    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        values_BL = values_BL.clamp(-_LARGEST, _LARGEST)
        return super().forward(tokens_BL, values_BL) * values_BL[:, :, None]
