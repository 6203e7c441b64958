"""Modules shared by several embedders: one that rejoins numbers split into token and value, one
that combines token and numeral vectors, and one that uses fixed features as coordinates."""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.errors import UsageError
from numtok.models.embedders.base import INIT, FeatureEmbedder, FeatureModule, TokenVectors
from numtok.models.vocabulary import Vocabulary

LARGEST = 1e15  # embedders that compute with a value itself clip its absolute value to this one


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
        """float32[B, L]; 0 where the value is 0, for any token."""
        values_BL = values_BL.float()
        if self.same:
            return values_BL
        products_BL = values_BL * cast(Tensor, self.multipliers)[tokens_BL]
        # A model may predict 0 as the value of an overflow, and 0 times infinity is NaN.
        return torch.where(values_BL == 0, values_BL, products_BL)


class Fused(TokenVectors):
    """E(x) = [TE(x), NE(x)] W_b (NumGPT, Equation 6): from D token coordinates and d numeral
    coordinates to D.

    All text tokens share one learned NE (``text``), all numerals one learned TE (``numeral``). W_b
    is stored as its two blocks of rows, ``from_token`` and ``from_numeral``, because numerals must
    not be rounded to bfloat16. The rows of ``table`` that belong to numerals are not used as input;
    a token head with tied weights uses them.

    ``numerals`` is a module that maps tokens and values to NE [B, L, d].
    """

    def __init__(
        self, name: str, vocabulary: Vocabulary, width: int, numerals: nn.Module, dimensions: int
    ) -> None:
        if not len(vocabulary.numbers):
            raise UsageError(
                f"--embedder {name} embeds the value of a number's token, and these numbers have "
                "none. Use --embedder lookup, or encode with --scheme numgpt or xval"
            )
        super().__init__(vocabulary, width)
        self.numerals = numerals
        self.numeral = nn.Parameter(torch.empty(width).normal_(std=INIT))
        self.text = nn.Parameter(torch.empty(dimensions).normal_(std=INIT))
        self.from_token = nn.Linear(width, width, bias=False)
        self.from_numeral = nn.Linear(dimensions, width, bias=False)
        # Text vectors start as long as those of other embedders; numeral vectors, whose NE has a
        # length of about 1, are not much longer.
        nn.init.normal_(self.from_token.weight, std=width**-0.5)
        nn.init.normal_(self.from_numeral.weight, std=INIT)
        are_numerals = np.isin(np.arange(vocabulary.size), vocabulary.numbers)
        self.register_buffer("are_numerals", torch.from_numpy(are_numerals), persistent=False)

    @torch.no_grad()
    def rescale(self, times: float) -> None:
        """Rescale the numeral parts; W_b passes token vectors through unchanged."""
        nn.init.eye_(self.from_token.weight)
        self.numeral.mul_(times)
        self.from_numeral.weight.mul_(times)
        self.text.zero_()

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        """[B, L, D]: the vectors of tokens and their values; NE is not rounded to bfloat16."""
        is_numeral_BL1 = cast(Tensor, self.are_numerals)[tokens_BL][:, :, None]
        token_BLD = torch.where(is_numeral_BL1, self.numeral, self.table(tokens_BL))
        made_BLD = self.from_token(token_BLD)
        with torch.autocast(values_BL.device.type, enabled=False):
            numerals_BLE = self.numerals(tokens_BL, values_BL.float())
            numeral_BLE = torch.where(is_numeral_BL1, numerals_BLE, self.text)
            return cast(Tensor, made_BLD + self.from_numeral(numeral_BLE))


class Padded(FeatureModule):
    """Puts the features, times ``scale``, into the first coordinates, and zeros into the others.
    The result replaces the token's vector, or, with ``adds``, is added to it."""

    def __init__(
        self,
        embedder: FeatureEmbedder,
        vocabulary: Vocabulary,
        width: int,
        *,
        scale: float,
        adds: bool,
    ) -> None:
        super().__init__(embedder, vocabulary, width, mapped=False)
        self.scale, self.adds = scale, adds

    def embedded(self, tokens_PD: Tensor, *inputs: Tensor) -> Tensor:
        [features_PF] = inputs
        padding = tokens_PD.shape[1] - features_PF.shape[1]
        padded_PD = F.pad(features_PF * self.scale, (0, padding))
        return tokens_PD + padded_PD if self.adds else padded_PD
