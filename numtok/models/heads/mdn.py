"""mdn: predicts a mixture of Gaussians (mixture density network, Bishop 1994)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from numtok.declaration import setting
from numtok.encoding.normalizers.base import Scaling
from numtok.models.common_heads import LinearReader, RealHead
from numtok.models.distributions.mixture import Mixture
from numtok.models.heads.base import Calibration, ValueReader
from numtok.models.precision import in_float64, on_host

_MOST = 10_000
_LEAST_DEVIATION = 1e-6  # lower bound of ELU + 1, which can round to 0


@dataclass(frozen=True)
class Mdn(RealHead):
    """Mixture density network (Bishop 1994), which predicts a mixture of ``components`` Gaussians.

    The weights are computed by a softmax, and the standard deviations as ELU(x) + 1, but at least
    1e-6. The loss is the negative log-density of the normalized number, in nats. For tables, the
    training range is scaled to [-0.5, 0.5], as in the paper. The component means start evenly
    spaced over this range, because identical components would stay identical.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "Decoding-based Regression, Section 2, Appendix D; Bishop (1994)"
    has_density: ClassVar[bool] = True
    positional: ClassVar[str] = "components"
    checked_at: ClassVar[str] = "mdn:3"
    components: int = setting(help="Number of Gaussians.", at_least=1, at_most=_MOST)

    def build(self, width: int) -> ValueReader:
        return _MdnReader(width, self.components)

    def describe(self) -> str:
        return f"mixture of {self.components} Gaussians"


class _MdnReader(LinearReader):
    """Logits of the weights, means, and raw standard deviations, ``K`` each."""

    def __init__(self, width: int, components: int) -> None:
        super().__init__(width, 3 * components)
        with torch.no_grad():
            spread = (torch.arange(components) + 0.5) / components - 0.5
            self.linear.bias[components : 2 * components] = spread

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        log_weights, centers, deviations = _parts(parameters_NP)
        apart = (targets_NW - centers) / deviations
        logs = log_weights - apart.square() / 2 - deviations.log()
        return math.log(2 * math.pi) / 2 - logs.logsumexp(dim=1)

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Mixture:
        log_weights, centers, deviations = (
            on_host(part) for part in _parts(in_float64(parameters_NP))
        )
        # NaN parameters, for example after an extreme input, have NaN means: all results are NaN.
        return Mixture(log_weights, centers, np.nan_to_num(deviations, nan=1.0), scaling)


def _parts(parameters_NP: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """[N, K] each: log-weights, means, standard deviations."""
    logits, centers, raw = parameters_NP.chunk(3, dim=1)
    return logits.log_softmax(dim=1), centers, (F.elu(raw) + 1).clamp(min=_LEAST_DEVIATION)
