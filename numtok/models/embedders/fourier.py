"""fourier: adds sines and cosines of a number's signed logarithm to the vector of ``[NUM]``."""

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

_MOST = 20  # frequencies; float32 rounding destroys the phase of higher ones


@dataclass(frozen=True)
class Fourier(Embedder):
    """Sines and cosines of the signed logarithm of a number, as suggested by xVal (Section 4).

    xVal calls this "a continuous analog of floating point": low frequencies represent the exponent
    and high frequencies the mantissa.

    The coordinate of a number is u(x) = sign(x) log(1 + |x| / smallest): logarithmic for |x| well
    above ``smallest``, linear below it, with a continuous slope everywhere, including 0. Let U be
    the coordinate of ``largest``. Frequency k is w_k = 2^k pi / 2U: the first makes half a turn
    from -largest to largest and distinguishes all numbers, and each further one is twice as fine.
    The embedding is

        h_text + W (sin w_k(u - u(1)), cos w_k(u - u(1)) - 1 for every k)

    with a learned matrix W. Odd and even functions of u represent sign and magnitude. Relative to
    u(1), the features of 1 are 0, so the vector of ``[NUM]`` represents the number 1, as in xVal,
    and text tokens, whose value is 1, keep their plain token vectors. (The phase shift and the -1
    change neither what W can represent nor the distribution of its initial outputs.) The features
    change the direction of the vector more than its length, so layer norm preserves them with any
    kind of positions.

    With the scheme ``numgpt``, the features of the complete number (mantissa times power of ten)
    are added to the vector of the exponent.

    frequencies
        Number of frequencies; with 12, the finest repeats after a change of 7% in the number.
    smallest, largest
        Range of magnitudes that are distinguished: smaller numbers look like 0, larger ones like
        ``largest``.

    With the default settings, u is 4.6 for 1e-6, 32.2 for 1e6 and -32.2 for -1e6.
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
                f"fourier: smallest={self.smallest:g} and largest={self.largest:g} must be within "
                "1e-37 to 1e38, smallest below largest, and at most a factor of 1e38 apart"
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
        # On average over numbers, as long as a token's vector.
        nn.init.normal_(self.linear.weight, std=INIT / math.sqrt(2 * settings.frequencies))

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        # Not in bfloat16: 8 bits do not resolve the finest frequency.
        with torch.autocast(values_BL.device.type, enabled=False):
            x_BL = self.whole(tokens_BL, values_BL)
            size_BL = x_BL.abs().clamp(max=self.largest)
            u_BL = x_BL.sign() * torch.log1p(size_BL / self.smallest)
            # Exactly 0 at 1, without rounding errors: the value of every text token is 1.
            moved_BL = torch.where(x_BL == 1, 0.0, u_BL - self.one)
            angles_BLK = moved_BL[:, :, None] * cast(Tensor, self.turns)
            features_BLF = torch.cat([angles_BLK.sin(), angles_BLK.cos() - 1], dim=-1)
            return cast(Tensor, self.table(tokens_BL) + self.linear(features_BLF))
