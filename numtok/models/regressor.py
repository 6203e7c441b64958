"""A model of tables: a trunk of columns, and a head that reads one number of its hidden state."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from torch import Tensor, nn

from numtok.models.heads.base import HEADS, ValueHead, reader_flops
from numtok.models.trunks.base import ColumnTrunk
from numtok.registry import Settings


@dataclass(frozen=True)
class RegressorSettings:
    """Everything that it is but its weights; ``head`` as ``registry.settings_of`` expands it."""

    inputs: int
    trunk: ColumnTrunk
    head: Settings


class Regressor(nn.Module):
    """Features [N, inputs] to parameters [N, P] of each number's distribution."""

    def __init__(self, settings: RegressorSettings) -> None:
        super().__init__()
        self.settings = settings
        self.head = cast(ValueHead, HEADS.from_settings(settings.head))
        self.trunk = settings.trunk.build(settings.inputs)
        self.reader = self.head.build(settings.trunk.width)

    def forward(self, x_NI: Tensor) -> Tensor:
        """[N, P], as the head's reader gives them."""
        parameters: Tensor = self.reader(self.trunk(x_NI))
        return parameters

    def losses(self, x_NI: Tensor, targets_NW: Tensor) -> Tensor:
        """[N]: the head's loss of each number."""
        return self.reader.losses(self(x_NI), targets_NW)

    def parameter_counts(self) -> tuple[int, int]:
        """Parameters in all, and of these in the head."""
        total, head = (sum(p.numel() for p in part.parameters()) for part in (self, self.reader))
        return total, head

    def flops(self, numbers: int) -> int:
        """Of one forward pass: multiplications and additions of matrix products."""
        return self.trunk.flops(numbers) + self._reader_flops * numbers

    @cached_property
    def _reader_flops(self) -> int:
        """Of one number."""
        targets = self.head.targets(np.zeros(1))
        return reader_flops(self.reader, self.settings.trunk.width, targets)
