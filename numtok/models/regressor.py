"""A table model: a trunk that reads the columns of a table, and a head that predicts a number."""

from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn

from numtok.models.heads.base import HEADS, ValueHead
from numtok.models.trunks.base import ColumnTrunk
from numtok.registry import Settings


@dataclass(frozen=True)
class RegressorSettings:
    """All settings of a :class:`Regressor`.

    inputs
        Number of features.
    head
        Settings of the value head, including defaults (``registry.settings_of``).
    """

    inputs: int
    trunk: ColumnTrunk
    head: Settings


class Regressor(nn.Module):
    """Table model that maps features [N, inputs] to the parameters [N, P] of each number's
    distribution."""

    def __init__(self, settings: RegressorSettings) -> None:
        super().__init__()
        self.settings = settings
        self.head = cast(ValueHead, HEADS.from_settings(settings.head))
        self.trunk = settings.trunk.build(settings.inputs)
        self.reader = self.head.build(settings.trunk.width)

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
