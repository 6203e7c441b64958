"""transformer: the trunk of every scheme and objective (:mod:`numtok.models.attention`)."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.models.attention import Shape, Transformer
from numtok.models.trunks.base import TokenTrunk


@dataclass(frozen=True)
class TransformerTrunk(Shape, TokenTrunk):
    """Pre-norm blocks with GELU, attention causal or to both sides.

    layers, heads, width
        How many blocks, attention heads in each, and coordinates of a state.
    context
        The most tokens of a row; 0: those of the longest row of all splits, and a few more.
    positions
        ``learned`` or ``sinusoidal``, a vector that is added to the embedding; ``rotary``;
        ``none``: a causal model tells order by what each token may look at, one that looks both
        ways by ``--digit-positions`` alone.
    dropout
        On attention and on what each half of a block adds.
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
            f"positions={self.positions}: layer norm would take the value away, since it is seen "
            "only beside an added position; use learned or sinusoidal"
        )

    def uses(self) -> dict[str, object]:
        return {"number of heads": self.heads, "way of telling positions": self.positions}

    def build(self, causal: bool) -> Transformer:
        return Transformer(self, causal)
