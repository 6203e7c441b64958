"""riemann: predicts a histogram over equal bins of the training range."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from numtok.declaration import setting
from numtok.encoding.normalizers.base import Scaling
from numtok.models.common_heads import LinearReader
from numtok.models.distributions.intervals import Intervals
from numtok.models.heads.base import Calibration, TokenReader, ValueHead, ValueReader
from numtok.models.precision import in_float64, on_host

_MOST = 1 << 20


@dataclass(frozen=True)
class Riemann(ValueHead):
    """Histogram head: a linear map and a softmax over ``bins`` equal bins of the training range.

    The range is scaled to [0, 1]. The loss is the negative log-density on this scale, -log p_bin -
    log bins, in nats. A bin includes its lower edge; the last bin includes both edges. For a number
    outside the range, the target is the nearest bin, and the density is zero.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "Decoding-based Regression, Section 2 (histogram heads), Appendix D"
    normalizer: ClassVar[str] = "unit"
    bounded: ClassVar[bool] = True
    has_density: ClassVar[bool] = True
    positional: ClassVar[str] = "bins"
    checked_at: ClassVar[str] = "riemann:32"
    bins: int = setting(help="Number of bins.", at_least=2, at_most=_MOST)

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        return _bins(np.nan_to_num(values), self.bins)[:, None]

    def build(self, width: int) -> ValueReader:
        return _RiemannReader(width, self.bins)

    def describe(self) -> str:
        return f"histogram of {self.bins} equal bins over the range of the train split"


class _RiemannReader(LinearReader, TokenReader):
    """Logits of the bins."""

    def __init__(self, width: int, bins: int) -> None:
        super().__init__(width, bins)
        self.bins = bins
        self.tokens_per_number = 1

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return self.token_losses(parameters_NP, targets_NW) - math.log(self.bins)

    def token_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """[N]: each bin is one token."""
        return F.cross_entropy(parameters_NP, targets_NW[:, 0], reduction="none")

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Intervals:
        edges = scaling.inverse(np.arange(self.bins + 1) / self.bins)
        centres = scaling.inverse((np.arange(self.bins) + 0.5) / self.bins)
        log_mass = on_host(in_float64(parameters_NP).log_softmax(dim=1))

        def places(values: NDArray[np.float64]) -> NDArray[np.int64]:
            scaled = scaling.forward(values)
            return np.where((scaled >= 0) & (scaled <= 1), _bins(scaled, self.bins), -1)

        return Intervals(
            low=edges[:-1],
            high=edges[1:],
            values=centres,
            log_mass=log_mass,
            places=places,
            by_density=True,
        )


def _bins(values: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """int64[n]: the bin of each value, with the same edges as the density: k / bins as float64."""
    ends = np.arange(1, bins) / bins
    return np.searchsorted(ends, values, "right").astype(np.int64)
