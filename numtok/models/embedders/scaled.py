"""scaled: multiplies the vector of ``[NUM]`` by the number's value (xVal)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from numtok.models.embedders._shared import LARGEST
from numtok.models.embedders.base import Embedder, TokenVectors
from numtok.models.objectives.base import Objective
from numtok.models.trunks.base import TokenTrunk
from numtok.models.vocabulary import Vocabulary


@dataclass(frozen=True)
class Scaled(Embedder):
    """xVal's embedding (Section 2.1): the vector of ``[NUM]`` multiplied by the number's value.

    Layer norm keeps the direction of a vector and discards its length, so the model sees the value
    only through the position vector that is added before the norm: for orthogonal unit vectors u
    (the direction of ``[NUM]``) and p (the position), x u + p has the coordinate x / sqrt(1 + x^2)
    along u after the norm.

    With the scheme ``numgpt``, the vector of the exponent token is multiplied by the mantissa, so
    numbers of all magnitudes have vectors of similar length.

    Values are clipped to 1e15. Beyond this limit, the direction in float32 does not change, and
    above about 1e20 the squares in a layer norm overflow, which would turn every position that
    attends to the number into NaN.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2.1"

    def unsuited(self, trunk: TokenTrunk, objective: Objective) -> str | None:
        """Return a message if the trunk adds no positions and would therefore ignore the length of
        a number's vector; None otherwise."""
        why = trunk.length_is_lost
        return None if why is None else f"--embedder scaled cannot be combined with {why}"

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return _Scaled(vocabulary, width)


class _Scaled(TokenVectors):
    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        values_BL = values_BL.clamp(-LARGEST, LARGEST)
        return super().forward(tokens_BL, values_BL) * values_BL[:, :, None]
