"""mlp: the trunk for tables, a multi-layer perceptron with ReLU.

Source: Decoding-based Regression, Section 4 and Appendix D (2 to 5 layers of width 256, 512 or
2048).
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from numtok.declaration import setting
from numtok.models.trunks.base import ColumnModule, ColumnTrunk


@dataclass(frozen=True)
class Mlp(ColumnTrunk):
    """A multi-layer perceptron with ReLU after every hidden layer, for tables."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Decoding-based Regression, Section 4 and Appendix D"
    layers: int = setting(3, "Number of hidden layers.", at_least=1)
    width: int = setting(256, "Units per hidden layer.", at_least=1)

    def build(self, inputs: int) -> ColumnModule:
        return _Perceptron(inputs, self)


class _Perceptron(ColumnModule):
    """Maps features [N, inputs] to hidden states [N, width]."""

    def __init__(self, inputs: int, size: Mlp) -> None:
        super().__init__()
        sizes = [inputs] + [size.width] * size.layers
        self.layers = nn.ModuleList(map(nn.Linear, sizes[:-1], sizes[1:]))

    def forward(self, x_NI: Tensor) -> Tensor:
        for layer in self.layers:
            x_NI = layer(x_NI).relu()
        return x_NI
