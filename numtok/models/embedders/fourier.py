"""fourier: beside the vector of ``[NUM]``, sines and cosines of the number's signed logarithm."""

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.models.embedders._shared import Whole
from numtok.models.embedders.base import INIT, Embedder, TokenVectors, rescale_linear
from numtok.models.vocabulary import Vocabulary

_MOST = 20  # frequencies; the phase of a higher one is lost in the rounding of float32


@dataclass(frozen=True)
class Fourier(Embedder):
    """What xVal announces as its extension: "a continuous analog of floating point", in which low
    frequencies are the exponent and high ones the mantissa.

    The coordinate of a number is u(x) = sign(x) log(1 + |x| / smallest): logarithmic where |x| is
    well above ``smallest``, linear below it, and with a continuous slope everywhere, through 0 too.
    Let U be that of ``largest``. Frequency k turns by w_k = 2^k pi / 2U, so the first one goes half
    around from -largest to largest and tells all numbers apart, and each further one is twice as
    fine. The embedding is

        h_text + W (sin w_k(u - u(1)), cos w_k(u - u(1)) - 1 for every k)

    with a learnt map W. Even and odd parts in u carry magnitude and sign. Counted from u(1), the
    features of the number 1 are 0: the vector of ``[NUM]`` is that of 1, as in xVal, and other
    tokens, beside which stands a 1, are looked up. (Shifting all phases, and the -1, change
    neither what W can say nor how its random beginning is distributed.) Features turn and do not
    grow, so layer norm keeps them, with any kind of positions.

    With the scheme ``numgpt`` it is the features of the whole number, mantissa times power of ten,
    that are added to the vector of its exponent.

    frequencies
        How many; with 12 the finest goes around once in every 7% of the number.
    smallest, largest
        The magnitudes told apart: below the first numbers are like 0, beyond the second like it.

    With the defaults, 1e-6 and 1e6 are at u = 4.6 and 32.2, -1e6 at -32.2.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 4, Future directions"
    positional: ClassVar[str] = "frequencies"
    frequencies: int = setting(12, at_least=1, at_most=_MOST)
    smallest: float = 1e-8
    largest: float = 1e8

    def __post_init__(self) -> None:
        if not 1e-37 <= self.smallest < self.largest <= min(1e38, 1e38 * self.smallest):
            raise UsageError(
                f"fourier: smallest={self.smallest:g} and largest={self.largest:g} are not "
                "possible; allowed are 1e-37 to 1e38, the smallest first, at most a factor of 1e38 "
                "apart"
            )

    def rescale(self, module: nn.Module, times: float) -> None:
        rescale_linear(module, times)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return _Fourier(vocabulary, width, self)


class _Fourier(TokenVectors):
    def __init__(self, vocabulary: Vocabulary, width: int, settings: Fourier) -> None:
        super().__init__(vocabulary, width)
        self.whole = Whole(vocabulary)
        self.smallest, self.largest = settings.smallest, settings.largest
        self.one = math.log1p(min(1.0, self.largest) / self.smallest)
        slowest = math.pi / 2 / math.log1p(self.largest / self.smallest)
        turns_K = slowest * 2.0 ** torch.arange(settings.frequencies)
        self.register_buffer("turns", turns_K, persistent=False)
        self.linear = nn.Linear(2 * settings.frequencies, width, bias=False)
        # On average over numbers as long as the vector of a token.
        nn.init.normal_(self.linear.weight, std=INIT / math.sqrt(2 * settings.frequencies))

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        # Not in bfloat16: its 8 bits are less than the finest frequency tells apart.
        with torch.autocast(values_BL.device.type, enabled=False):
            x_BL = self.whole(tokens_BL, values_BL)
            size_BL = x_BL.abs().clamp(max=self.largest)
            u_BL = x_BL.sign() * torch.log1p(size_BL / self.smallest)
            # Exactly 0 at 1, whatever the rounding: most tokens are no numbers.
            moved_BL = torch.where(x_BL == 1, 0.0, u_BL - self.one)
            angles_BLK = moved_BL[:, :, None] * cast(Tensor, self.turns)
            features_BLF = torch.cat([angles_BLK.sin(), angles_BLK.cos() - 1], dim=-1)
            return cast(Tensor, self.table(tokens_BL) + self.linear(features_BLF))
