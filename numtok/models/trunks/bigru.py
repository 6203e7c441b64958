"""bigru: a bidirectional GRU that reads each row from both ends (BiGRU, Cho et al. 2014).

It represents complete rows, not tokens, so it can only predict labels. It is the BiGRU of Chen et
al. (2019), with which NumGPT is compared in Table 2 of the NumGPT paper. The paper specifies
neither the sizes of its layers nor the states that represent a row; here, the last states of both
directions represent it.

Shapes: B rows, L tokens, Q of them queried, D width, U = D / 2 units per direction.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.models.presets import TrainingDefaults
from numtok.models.trunks.base import Sight, TokenTrunk, TrunkModule


@dataclass(frozen=True)
class Bigru(TokenTrunk, TrainingDefaults):
    """A bidirectional GRU for predicting labels; the last states of both directions represent the
    row (Chen et al. 2019).

    layers
        Number of stacked layers.
    width
        Width of the token vectors, and of the states of both directions together.
    dropout
        Dropout on the input of each layer and on the state that represents the row.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Table 2; Chen et al. (2019)"
    learning_rate: ClassVar[float] = 5e-3
    sight: ClassVar[Sight] = "row"
    layers: int = setting(1, at_least=1)
    width: int = 256
    dropout: float = setting(0.0, at_least=0, below=1)

    def __post_init__(self) -> None:
        if self.width < 2 or self.width % 2:
            raise UsageError(
                f"bigru: width must be even and at least 2 (got {self.width}); "
                "each direction has half of it"
            )

    def build(self, causal: bool) -> TrunkModule:
        return _BidirectionalGru(self)


class _BidirectionalGru(TrunkModule):
    """Maps embedded tokens [B, L, D] to one state per row, repeated at each of its positions.

    The first U coordinates have read the row from its first token to its last, the others from the
    last to the first. At each token, a deeper layer reads what both directions of the layer below
    have output there.
    """

    def __init__(self, size: Bigru) -> None:
        super().__init__()
        self.size = size
        self.onward, self.back = (
            nn.ModuleList(
                nn.GRU(size.width, size.width // 2, batch_first=True) for _ in range(size.layers)
            )
            for _ in range(2)
        )

    def forward(
        self, x_BLD: Tensor, real_BL: Tensor | None, asked_BQ: Tensor | None = None
    ) -> Tensor:
        """Reverse each row separately, so that no state depends on padding.

        Always runs in float32: rounding errors would accumulate from token to token.
        """
        rows, longest, _ = x_BLD.shape
        at_L = torch.arange(longest, device=x_BLD.device)
        row_B = torch.arange(rows, device=x_BLD.device)
        last_B = torch.full_like(row_B, longest - 1) if real_BL is None else real_BL.sum(1) - 1
        turned_BL = torch.where(at_L <= last_B[:, None], last_B[:, None] - at_L, at_L)
        with torch.autocast(x_BLD.device.type, enabled=False):
            x_BLD = x_BLD.float()
            for onward, back in zip(self.onward, self.back, strict=True):
                x_BLD = self._dropped(x_BLD)
                onward_BLU, _ = onward(x_BLD)
                turned_BLU, _ = back(x_BLD[row_B[:, None], turned_BL])
                x_BLD = torch.cat([onward_BLU, turned_BLU[row_B[:, None], turned_BL]], dim=2)
        half = self.size.width // 2
        state_BD = torch.cat([x_BLD[row_B, last_B, :half], x_BLD[:, 0, half:]], dim=1)
        places = longest if asked_BQ is None else asked_BQ.shape[1]
        return self._dropped(state_BD)[:, None].expand(-1, places, -1)

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.size.dropout, self.training)
