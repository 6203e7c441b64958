"""hl-gauss: predicts a histogram, trained on Gaussians around the values (HL-Gauss)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from numtok.declaration import setting
from numtok.encoding.normalizers.base import no_scaling
from numtok.models.common_heads import HistogramHead, HistogramReader
from numtok.models.heads.base import ValueReader


@dataclass(frozen=True)
class HLGauss(HistogramHead):
    """HL-Gauss (Imani and White 2018): a softmax over bins, trained on soft targets.

    The target of a value y is the probability of each bin under a Gaussian around y, truncated to
    the training range. Its standard deviation is ``ratio`` times the width of a bin. The loss is
    the cross-entropy of this target and the prediction, in nats; it is not a negative log-density.

    Truncation moves the mean of the target away from the ends of the range, by up to 0.7 bins at
    the default ratio. Imani and White's code pads the range instead.

    The point prediction is the mean of the bin centers, as in the paper. Evaluation uses the median
    unless ``--point mean`` is given.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Imani and White (2018); Stop Regressing (arXiv 2403.03950), Appendix A"
    checked_at: ClassVar[str] = "hl-gauss:32"
    ratio: float = setting(
        0.75,
        "Width of the Gaussian target: its standard deviation, in bins.",
        above=0,
        below=float("inf"),
    )

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return float32[N, 1]: the values, clipped to [0, 1]; 0 for NaN."""
        return np.clip(np.nan_to_num(values), 0, 1).astype(np.float32)[:, None]

    def build(self, width: int) -> ValueReader:
        return _HLGaussReader(width, self)


class _HLGaussReader(HistogramReader):
    def __init__(self, width: int, head: HLGauss) -> None:
        super().__init__(width, head.bins)
        self.ratio = head.ratio

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        edges = torch.arange(self.bins + 1, device=targets_NW.device)
        below = torch.erf((edges - self.bins * targets_NW) / (math.sqrt(2) * self.ratio))
        mass = below.diff(dim=1) / (below[:, -1:] - below[:, :1])
        return F.cross_entropy(parameters_NP, mass, reduction="none")

    def token_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        bins_N1 = (self.bins * targets_NW).long().clamp(max=self.bins - 1)
        return super().token_losses(parameters_NP, bins_N1)

    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """Return float64[N]: the mean of each distribution."""
        return self.predictive(parameters_NP, {}, no_scaling()).mean()
