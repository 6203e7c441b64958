"""The whole number that a token and the value beside it stand for."""

from typing import cast

import torch
from torch import Tensor, nn

from numtok.models.vocabulary import Vocabulary


class Whole(nn.Module):
    """The value times the factor of its token: -1.23 beside ``E2`` is -123; 1 where none is seen.

    An overflow is infinite, with the sign of its value, and an underflow 0.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.same = bool((vocabulary.multipliers == 1).all())
        multipliers = torch.from_numpy(vocabulary.multipliers).float()
        self.register_buffer("multipliers", multipliers, persistent=False)

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        """float32[B, L]; 0 where the value is 0, whatever the token."""
        values_BL = values_BL.float()
        if self.same:
            return values_BL
        products_BL = values_BL * cast(Tensor, self.multipliers)[tokens_BL]
        # A model may say 0 beside an overflow.
        return torch.where(values_BL == 0, values_BL, products_BL)
