"""numgpt: the mantissa by its distances from prototypes, the exponent by a table."""

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.models.embedders._shared import Fused
from numtok.models.embedders.base import Embedder
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Interval

_MOST = 10.0  # of a mantissa: prototypes go from -10 to 10
_LEAST_POWER, _LAST_POWER = -37, 38  # of ten, in float32 with all its digits


@dataclass(frozen=True)
class NumGPTEmbedder(Embedder):
    """NE(n) = [NE^e(e(n)), NE^f(f(n))], fused with the token vector (Equations 2 to 6).

    A quarter of the coordinates is a learnt vector of the exponent, with one for all exponents
    below those of the table and one for all above. The others are exp(-(f - q_i)^2 / sigma^2) for
    prototypes q_i spread evenly over [-10, 10].

    dimensions
        Of NE, a multiple of 4: 64 are 16 of the exponent and 48 of the mantissa.
    sigma
        How far a prototype reaches.
    exponents
        Those of the table where the token of a number does not say its exponent. With the scheme
        ``numgpt`` token and channel are e and f as they stand, with ``xval`` both are those of the
        value: -123 is -1.23 and 2 in each.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Equations 2-6"
    dimensions: int = 64
    sigma: float = setting(0.5, above=0, below=math.inf)
    exponents: Interval = Interval(-8, 12)

    def __post_init__(self) -> None:
        if self.dimensions < 4 or self.dimensions % 4:
            raise UsageError(
                f"numgpt: dimensions={self.dimensions} is not possible; it is a multiple of 4"
            )
        if self.exponents.first <= _LEAST_POWER or self.exponents.last >= _LAST_POWER:
            raise UsageError(
                f"numgpt: exponents={self.exponents} is not possible; the widest are "
                f"{_LEAST_POWER + 1}..{_LAST_POWER - 1}"
            )

    def rescale(self, module: nn.Module, times: float) -> None:
        cast(Fused, module).rescale(times)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return Fused("numgpt", vocabulary, width, _Numerals(vocabulary, self), self.dimensions)


class _Numerals(nn.Module):
    """Tokens and values [B, L] to NE [B, L, d] of numerals; of texts it means nothing."""

    def __init__(self, vocabulary: Vocabulary, settings: NumGPTEmbedder) -> None:
        super().__init__()
        self.splits = vocabulary.splits
        self.sigma, self.first = settings.sigma, settings.exponents.first
        count = len(settings.exponents) + 2
        places = np.zeros(vocabulary.size, np.int64)
        if self.splits:  # the factors ascend as the exponents do, from underflow to overflow
            known = vocabulary.multipliers[vocabulary.numbers]
            factors, places[vocabulary.numbers] = np.unique(known, return_inverse=True)
            count = len(factors)
        self.register_buffer("places", torch.from_numpy(places), persistent=False)
        powers = [float(f"1e{power}") for power in range(_LEAST_POWER, _LAST_POWER + 1)]
        self.register_buffer("powers", torch.tensor(powers), persistent=False)
        of_exponent = settings.dimensions // 4
        self.exponents = nn.Embedding(count, of_exponent)
        nn.init.normal_(self.exponents.weight, std=of_exponent**-0.5)
        prototypes = torch.linspace(-_MOST, _MOST, settings.dimensions - of_exponent)
        self.register_buffer("prototypes", prototypes, persistent=False)

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        if self.splits:
            place_BL, mantissa_BL = cast(Tensor, self.places)[tokens_BL], values_BL
        else:
            place_BL, mantissa_BL = self._divided(values_BL)
        away_BLF = mantissa_BL[:, :, None] - cast(Tensor, self.prototypes)
        near_BLF = torch.exp(-(away_BLF.square() / self.sigma**2))
        return torch.cat([self.exponents(place_BL), near_BLF], dim=-1)

    def _divided(self, values_BL: Tensor) -> tuple[Tensor, Tensor]:
        """Where in the table the exponents of values are, and their mantissas.

        A value is compared with the powers of ten as float32 has them, so 0.001 is 1 times 10^-3.
        """
        powers = cast(Tensor, self.powers)
        sizes_BL = values_BL.abs()
        which_BL = torch.bucketize(sizes_BL, powers, right=True) - 1
        which_BL = torch.where(sizes_BL == 0, -_LEAST_POWER, which_BL)
        which_BL = which_BL.clamp(0, len(powers) - 1)
        place_BL = which_BL + _LEAST_POWER - self.first + 1
        return place_BL.clamp(0, len(self.exponents.weight) - 1), values_BL / powers[which_BL]
