"""A table model: a trunk that reads the columns of a table, and a head that predicts a number."""

from torch import Tensor, nn

from numtok.models.heads.base import ValueHead
from numtok.models.trunks.base import ColumnTrunk


class Regressor(nn.Module):
    """Table model that maps features [N, inputs] to the parameters [N, P] of each number's
    distribution."""

    def __init__(self, inputs: int, trunk: ColumnTrunk, head: ValueHead) -> None:
        super().__init__()
        self.inputs, self.width, self.head = inputs, trunk.width, head
        self.trunk = trunk.build(inputs)
        self.reader = head.build(trunk.width)

    def forward(self, x_NI: Tensor) -> Tensor:
        """Return [N, P]: the parameters of each number's distribution, as the head defines them."""
        parameters: Tensor = self.reader(self.trunk(x_NI))
        return parameters

    def losses(self, x_NI: Tensor, targets_NW: Tensor) -> Tensor:
        """Return [N]: the head's loss for each number."""
        return self.reader.losses(self(x_NI), targets_NW)

    def parameter_counts(self) -> tuple[int, int]:
        """Return the number of parameters in the whole model, and in its head."""
        total, head = (sum(p.numel() for p in part.parameters()) for part in (self, self.reader))
        return total, head
