"""A gated MLP with tanh, as LlamaMLP but for the activation: down(tanh(gate h) * up h)."""

from typing import cast

from torch import Tensor, nn


class Gated(nn.Module):
    """[N, D] to [N, D] through 4 D, without biases (Value-Aware, Table 5, which says no size).

    Weights begin as normal numbers of deviation 1 / sqrt(inputs), of which the paper says nothing,
    so what comes out is about as long as what goes in.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 4 * width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        for linear in (self.gate, self.up, self.down):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)

    def forward(self, x_ND: Tensor) -> Tensor:
        return cast(Tensor, self.down(self.gate(x_ND).tanh() * self.up(x_ND)))
