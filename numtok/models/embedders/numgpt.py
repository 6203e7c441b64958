"""numgpt: embeds the mantissa by its distances to prototypes, and the exponent with a table
(NumGPT)."""

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
from numtok.setting_values import Interval

_MOST = 10.0  # prototypes of mantissas range from -10 to 10
_LEAST_POWER, _LAST_POWER = -37, 38  # powers of ten that float32 holds at full precision


@dataclass(frozen=True)
class NumGPTEmbedder(Embedder):
    """NumGPT's numeral embedding NE(n) = [NE^e(e(n)), NE^f(f(n))] (Equations 2 to 6).

    NE is combined with the token vector. A quarter of NE's coordinates are a learned vector for the
    exponent; all exponents below the table share one vector, and all exponents above it another.
    The remaining coordinates are exp(-(f - q_i)^2 / sigma^2) for prototypes q_i evenly spaced over
    [-10, 10].

    dimensions
        Number of coordinates of NE, a multiple of 4. Of 64, 16 are for the exponent and 48 for the
        mantissa.
    sigma
        Width of a prototype's Gaussian.
    exponents
        Range of the exponent table, for schemes whose tokens do not encode the exponent. With the
        scheme ``numgpt``, the token is the exponent e and its value is the mantissa f. With
        ``xval``, both are computed from the value: -123 has f = -1.23 and e = 2.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Equations 2-6"
    dimensions: int = 64
    sigma: float = setting(0.5, above=0, below=math.inf)
    exponents: Interval = Interval(-8, 12)

    def __post_init__(self) -> None:
        if self.dimensions < 4 or self.dimensions % 4:
            raise UsageError(f"numgpt: dimensions must be a multiple of 4 (got {self.dimensions})")
        if self.exponents.first <= _LEAST_POWER or self.exponents.last >= _LAST_POWER:
            raise UsageError(
                f"numgpt: exponents must be within {_LEAST_POWER + 1}..{_LAST_POWER - 1} "
                f"(got {self.exponents})"
            )

    def rescale(self, module: nn.Module, times: float) -> None:
        cast(Fused, module).rescale(times)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return Fused("numgpt", vocabulary, width, _Numerals(vocabulary, self), self.dimensions)


class _Numerals(nn.Module):
    """Map tokens and values [B, L] to NE [B, L, d]; the result is meaningless for text tokens."""

    def __init__(self, vocabulary: Vocabulary, settings: NumGPTEmbedder) -> None:
        super().__init__()
        self.splits = vocabulary.splits
        self.sigma, self.first = settings.sigma, settings.exponents.first
        count = len(settings.exponents) + 2
        places = np.zeros(vocabulary.size, np.int64)
        if self.splits:  # the factors ascend with the exponents, from underflow to overflow
            multipliers = vocabulary.multipliers[vocabulary.numbers]
            factors, places[vocabulary.numbers] = np.unique(multipliers, return_inverse=True)
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
        """Return the table rows of the values' exponents, and their mantissas.

        Values are compared with the powers of ten in float32, so 0.001 is exactly 1 times 10^-3.
        """
        powers = cast(Tensor, self.powers)
        sizes_BL = values_BL.abs()
        which_BL = torch.bucketize(sizes_BL, powers, right=True) - 1
        which_BL = torch.where(sizes_BL == 0, -_LEAST_POWER, which_BL)
        which_BL = which_BL.clamp(0, len(powers) - 1)
        place_BL = which_BL + _LEAST_POWER - self.first + 1
        return place_BL.clamp(0, len(self.exponents.weight) - 1), values_BL / powers[which_BL]
