"""dice: embeds a number by the sine and cosine of an angle proportional to it (DICE)."""

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from numtok.declaration import setting
from numtok.encoding.schemes.dice import RANGE, check_range
from numtok.models.embedders._shared import Fused, Whole
from numtok.models.embedders.base import Embedder
from numtok.models.precision import widest
from numtok.models.vocabulary import Vocabulary
from numtok.setting_values import Range


@dataclass(frozen=True)
class DiceEmbedder(Embedder):
    """DICE embeddings of numbers (Sundararaman et al. 2020), combined with token vectors as in
    NumGPT.

    A number n becomes the angle t = pi n / |high - low|, and its vector has the coordinates

        sin^(k-1)(t) cos(t)   for k = 1 ... d - 1,   and sin^d(t),

    rotated by a fixed random orthonormal basis. The coordinates are not trained. The range is a
    setting, as in the paper: with 0 to 10,000, all numbers from -10,000 to 10,000 have different
    angles.

    dimensions
        Number of coordinates, d.
    range
        The smallest and the largest number, ``low`` and ``high``. ``low`` is not subtracted from
        the numbers.
    clip
        Clip numbers to the range. Otherwise numbers outside the range wrap around the circle, as in
        the authors' code: 20,001 has the same vector as 1.
    seed
        Random seed of the basis (QR decomposition of a Gaussian matrix).

    The complete number is embedded, even with the scheme ``numgpt``, which splits it into exponent
    and mantissa. If a number overflows, it gets the vector of ``high`` if it is positive and the
    vector of ``low`` if it is negative.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Sundararaman et al. (2020); NumGPT, Table 1"
    dimensions: int = setting(64, at_least=2)
    range: Range = RANGE
    clip: bool = False
    seed: int = setting(0, at_least=0)

    def __post_init__(self) -> None:
        check_range(self.range)

    def rescale(self, module: nn.Module, times: float) -> None:
        cast(Fused, module).rescale(times)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return Fused("dice", vocabulary, width, _Angles(vocabulary, self), self.dimensions)


class _Angles(nn.Module):
    """Tokens and values [B, L] to vectors [B, L, d]."""

    def __init__(self, vocabulary: Vocabulary, settings: DiceEmbedder) -> None:
        super().__init__()
        self.whole = Whole(vocabulary)
        self.low, self.high, self.clip = settings.range.low, settings.range.high, settings.clip
        size = settings.dimensions
        basis, upper = np.linalg.qr(np.random.default_rng(settings.seed).normal(size=(size, size)))
        basis *= np.sign(np.diag(upper))  # otherwise signs depend on the linear algebra library
        self.register_buffer("basis", torch.from_numpy(basis).float(), persistent=False)
        self.register_buffer("powers", torch.arange(size).float(), persistent=False)

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        number_BL = self.whole(tokens_BL, values_BL)
        ends_BL = torch.where(number_BL > 0, self.high, self.low)
        number_BL = torch.where(number_BL.isinf(), ends_BL, number_BL)
        if self.clip:
            number_BL = number_BL.clamp(self.low, self.high)
        span = self.high - self.low
        if widest(number_BL.device) == torch.float64:
            # 20,001 may wrap around thousands of times.
            angle_BL1 = (number_BL.double() * (math.pi / span))[:, :, None]
        else:  # the remainder of a division is exact in float32 as well
            angle_BL1 = (number_BL.fmod(2 * span) * (math.pi / span))[:, :, None]
        sine_BL1, cosine_BL1 = angle_BL1.sin().float(), angle_BL1.cos().float()
        powers_BLE = sine_BL1 ** cast(Tensor, self.powers)
        last_BL1 = powers_BLE[:, :, -1:] * sine_BL1
        made_BLE = torch.cat([powers_BLE[:, :, :-1] * cosine_BL1, last_BL1], dim=-1)
        return made_BLE @ cast(Tensor, self.basis)
