"""transformer: the trunk of every scheme and objective (:mod:`numtok.models.attention`)."""

from dataclasses import dataclass, replace
from typing import ClassVar

from numtok.models.attention import Shape, Transformer
from numtok.models.trunks.base import TokenTrunk


@dataclass(frozen=True)
class TransformerTrunk(TokenTrunk):
    """Pre-norm blocks with GELU, attention causal or to both sides.

    layers, heads, width
        How many blocks, attention heads in each, and coordinates of a state.
    context
        The most tokens of a row; 0: those of the longest row of all splits, and a few more.
    positions
        ``learned`` or ``sinusoidal``, a vector that is added to the embedding; ``rotary``;
        ``none``: a causal model tells order by what each token may look at, one that looks both
        ways by ``--places`` alone.
    dropout
        On attention and on what each half of a block adds.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Radford et al. (2019); xVal, Appendix A"
    extends: ClassVar[bool] = True
    recomputes: ClassVar[bool] = True
    compiles: ClassVar[bool] = True
    layers: int = 4
    heads: int = 4
    width: int = 128
    context: int = 0
    positions: str = "learned"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        self._shape(self.context or 1)  # refuses what is not possible

    def _shape(self, context: int) -> Shape:
        return Shape(
            layers=self.layers,
            heads=self.heads,
            width=self.width,
            context=context,
            positions=self.positions,
            dropout=self.dropout,
        )

    def reading(self, longest: int) -> "TransformerTrunk":
        return self if self.context else replace(self, context=longest)

    @property
    def learns_positions(self) -> bool:
        return self.positions == "learned"

    @property
    def length_is_lost(self) -> str | None:
        if self._shape(1).adds_positions:
            return None
        return (
            f"positions={self.positions}: layer norm would take the value away, since it is seen "
            "only beside an added position; use learned or sinusoidal"
        )

    def uses(self) -> dict[str, object]:
        return {"number of heads": self.heads, "way of telling positions": self.positions}

    def build(self, causal: bool) -> Transformer:
        return Transformer(self._shape(self.context), causal)
