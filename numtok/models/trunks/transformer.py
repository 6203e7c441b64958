"""transformer: a transformer that works with every scheme and objective
(:mod:`numtok.models.attention`)."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.models.attention import Shape, Transformer
from numtok.models.trunks.base import TokenTrunk


@dataclass(frozen=True)
class TransformerTrunk(Shape, TokenTrunk):
    """A pre-norm transformer with GELU and causal or bidirectional attention (GPT-2).

    layers, heads, width
        Number of blocks, number of attention heads per block, and width of the hidden states.
    context
        Maximum number of tokens per row; 0 uses the length of the longest row in any split, plus a
        few tokens.
    positions
        ``learned`` and ``sinusoidal`` add a vector to the embedding; ``rotary`` rotates queries and
        keys. With ``none``, a causal model infers the order from its attention mask, and a
        bidirectional one only from ``--digit-positions``.
    dropout
        Dropout on the attention and on the output of each half of a block.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Radford et al. (2019); xVal, Appendix A"
    recomputes: ClassVar[bool] = True
    layers: int = 4
    heads: int = 4
    width: int = 128
    context: int = 0

    @property
    def length_is_lost(self) -> str | None:
        if self.adds_positions:
            return None
        return (
            f"positions={self.positions}: without added positions, layer norm discards the value; "
            "use positions=learned or positions=sinusoidal"
        )

    def uses(self) -> dict[str, object]:
        return {"number of heads": self.heads, "kind of positions": self.positions}

    def build(self, causal: bool) -> Transformer:
        return Transformer(self, causal)
