"""The trunk for tables: a multi-layer perceptron with ReLU on every hidden layer.

Source: Decoding-based Regression, Section 4 and Appendix D (2 to 5 layers of 256, 512 or 2048).
"""

from dataclasses import dataclass

from torch import Tensor, nn

from numtok.errors import UsageError


@dataclass(frozen=True)
class Mlp:
    """Its size. ``layers`` are the hidden ones, ``width`` the units of each."""

    layers: int = 3
    width: int = 256

    def __post_init__(self) -> None:
        for what in ("layers", "width"):
            if getattr(self, what) < 1:
                raise UsageError(f"mlp: {what}={getattr(self, what)} is not possible; at least 1")


class Perceptron(nn.Module):
    """Features [N, inputs] to hidden states [N, width]."""

    def __init__(self, inputs: int, shape: Mlp) -> None:
        super().__init__()
        sizes = [inputs] + [shape.width] * shape.layers
        self.layers = nn.ModuleList(map(nn.Linear, sizes[:-1], sizes[1:]))

    def forward(self, x_NI: Tensor) -> Tensor:
        for layer in self.layers:
            x_NI = layer(x_NI).relu()
        return x_NI
