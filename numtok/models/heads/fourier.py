"""fourier: predicts a histogram whose bins follow a Fourier series (Fourier head)."""

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor

from numtok.declaration import setting
from numtok.models.common_heads import HistogramHead, HistogramReader
from numtok.models.heads.base import ValueReader

_FLOOR = 1e-5  # added to each probability before the logarithm, as in the public code
_INITIAL = 0.01  # factor of the initial weights, as in the public code


@dataclass(frozen=True)
class FourierHead(HistogramHead):
    """Fourier head (Gillman et al., ICLR 2025): a smooth histogram in place of a softmax over bins.

    The training range is scaled to [-1, 1]. A linear map predicts complex numbers a_0 to a_K, and
    their autocorrelation c_k = sum_l a_(l+k) conj(a_l) gives the density

        f(x) = 1/2 + Re sum_(k=1..K) c_k / c_0 exp(i pi k x) = |sum_l a_l exp(i pi l x)|^2 / (2 c_0)

    A bin's probability is proportional to f at its center. The series is periodic, so the density
    is the same at both ends of the range. The loss is the negative log-density on the scale of
    [0, 1], in nats, plus ``gamma`` times 4 pi^2 sum_k k^2 |c_k|^2. This penalty is the integral of
    the squared derivative of 2 c_0 f, with the weight of the authors' code.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Fourier Head (arXiv 2410.22269), and its public code"
    checked_at: ClassVar[str] = "fourier:32,frequencies=16"
    frequencies: int = setting(64, "Highest frequency K.", at_least=1, at_most=1 << 14)
    gamma: float = setting(
        0.0,
        "Weight of the penalty on high frequencies; the paper's experiments use 1e-6.",
        at_least=0,
        below=float("inf"),
    )

    @property
    def has_density(self) -> bool:
        return self.gamma == 0

    def build(self, width: int) -> ValueReader:
        return _FourierReader(width, self)


class _FourierReader(HistogramReader):
    """Parameters are the real parts of a_0 to a_K, then their imaginary parts."""

    def __init__(self, width: int, head: FourierHead) -> None:
        super().__init__(width, head.bins, 2 * (head.frequencies + 1))
        self.gamma = head.gamma
        with torch.no_grad():
            self.linear.weight.mul_(_INITIAL)
            self.linear.bias.mul_(_INITIAL)
        centers = (2 * torch.arange(head.bins, dtype=torch.float64) + 1) / head.bins - 1
        turns = math.pi * torch.arange(head.frequencies + 1)[:, None] * centers
        real, imaginary = turns.cos(), turns.sin()
        basis = torch.cat([torch.cat([real, imaginary], 1), torch.cat([-imaginary, real], 1)])
        self.register_buffer("basis", basis.float(), False)

    def log_mass(self, parameters_NP: Tensor) -> Tensor:
        # Not in bfloat16, which training on a GPU may use: its probabilities are off by a tenth.
        with torch.autocast(parameters_NP.device.type, enabled=False):
            series = parameters_NP @ cast(Tensor, self.basis).to(parameters_NP)
        real, imaginary = series.chunk(2, 1)
        heights = real.square() + imaginary.square()
        return (heights / heights.sum(dim=1, keepdim=True) + _FLOOR).log().log_softmax(dim=1)

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        losses = super().losses(parameters_NP, targets_NW)
        if self.gamma == 0:
            return losses
        size = parameters_NP.shape[1]
        spectrum = torch.fft.fft(torch.complex(*parameters_NP.chunk(2, dim=1)), size)
        c = torch.fft.rfft(spectrum.abs().square(), norm="forward").abs()
        k = torch.arange(c.shape[1], device=c.device)
        penalties: Tensor = 4 * math.pi**2 * (k * c).square().sum(dim=1)
        return losses + self.gamma * penalties
