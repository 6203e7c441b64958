"""Modules that several embedders share: the whole number, and a fused numeral vector."""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from numtok.errors import UsageError
from numtok.models.embedders.base import INIT, TokenVectors
from numtok.models.vocabulary import Vocabulary


class Whole(nn.Module):
    """Multiply each value by the factor of its token: -1.23 with ``E2`` is -123.

    An overflow becomes infinite, with the sign of its value, and an underflow 0.
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
        # A model may predict 0 as the value of an overflow, and 0 times infinity is NaN.
        return torch.where(values_BL == 0, values_BL, products_BL)


class Fused(TokenVectors):
    """E(x) = [TE(x), NE(x)] W_b (NumGPT, Equation 6): D coordinates of the token, d of the numeral,
    D in all.

    NE of all texts is one learnt vector, and TE of all numerals another (``text`` and ``numeral``).
    W_b is kept as its two blocks of rows, ``from_token`` and ``from_numeral``, since numerals are
    not to be rounded to bfloat16. The rows of ``table`` that belong to numerals are not looked at
    here; a token head that is tied to it speaks by them.

    ``numerals``, a module, gives NE of numerals [B, L, d] from tokens and values.
    """

    def __init__(
        self, name: str, vocabulary: Vocabulary, width: int, numerals: nn.Module, dimensions: int
    ) -> None:
        if not len(vocabulary.numbers):
            raise UsageError(
                f"--embedder {name} embeds the value beside a number's token, and these numbers "
                "have none; give --embedder lookup, or data encoded with --scheme numgpt or xval"
            )
        super().__init__(vocabulary, width)
        self.numerals = numerals
        self.numeral = nn.Parameter(torch.empty(width).normal_(std=INIT))
        self.text = nn.Parameter(torch.empty(dimensions).normal_(std=INIT))
        self.from_token = nn.Linear(width, width, bias=False)
        self.from_numeral = nn.Linear(dimensions, width, bias=False)
        # The vectors of texts begin as long as those of other embedders, and those of numerals,
        # whose NE has a length of about 1, are not much longer.
        nn.init.normal_(self.from_token.weight, std=width**-0.5)
        nn.init.normal_(self.from_numeral.weight, std=INIT)
        are_numerals = np.isin(np.arange(vocabulary.size), vocabulary.numbers)
        self.register_buffer("are_numerals", torch.from_numpy(are_numerals), persistent=False)

    @torch.no_grad()
    def rescale(self, times: float) -> None:
        """As ``Embedder.rescale``: W_b passes the vectors of tokens on as they are."""
        nn.init.eye_(self.from_token.weight)
        self.numeral.mul_(times)
        self.from_numeral.weight.mul_(times)
        self.text.zero_()

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        """[B, L, D], of tokens and the values beside them; NE is not rounded to bfloat16."""
        is_numeral_BL1 = cast(Tensor, self.are_numerals)[tokens_BL][:, :, None]
        token_BLD = torch.where(is_numeral_BL1, self.numeral, self.table(tokens_BL))
        made_BLD = self.from_token(token_BLD)
        with torch.autocast(values_BL.device.type, enabled=False):
            numerals_BLE = self.numerals(tokens_BL, values_BL.float())
            numeral_BLE = torch.where(is_numeral_BL1, numerals_BLE, self.text)
            return cast(Tensor, made_BLD + self.from_numeral(numeral_BLE))
