"""soft-bins: embeds a number by interpolation between the vectors of two neighboring bin edges."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.models.embedders.base import FeatureEmbedder
from numtok.setting_values import Range

_MOST = 4096


@dataclass(frozen=True)
class SoftBins(FeatureEmbedder):
    """Soft discretization (Lee et al. 2026): each edge b_0 ... b_N of ``bins`` bins has a learned
    vector E, and a number x between b_k and b_(k+1) adds

        (1 - a) E_k + a E_(k+1),    a = (x - b_k) / (b_(k+1) - b_k)

    to the vector of ``[NUM]``. The result is continuous in x. Numbers beyond the range have the
    vector of its nearest end.

    Here the bins are equal parts of the range of the values in the data, which may be normalized.
    In the paper they are quantiles, and the result replaces the vector of the bin's token.

    bins
        Number of bins (10 in most of the paper's experiments).
    range
        Lowest and highest edge. The default is the range of ``--normalize scale:5``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "arXiv 2604.16775; public code bbj-lab/fms-ehrs, soft_discretization.py"
    positional: ClassVar[str] = "bins"
    exact: ClassVar[bool] = False
    bins: int = setting(10, at_least=1, at_most=_MOST)
    range: Range = Range(-5.0, 5.0)

    def __post_init__(self) -> None:
        if not 0 < self.range.high - self.range.low < np.inf:
            raise UsageError(f"soft-bins: range must have a finite width (got {self.range})")

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        low, high = self.range.low, self.range.high
        position = (np.clip(np.nan_to_num(values), low, high) - low) / (high - low) * self.bins
        distances = np.abs(position[:, None] - np.arange(self.bins + 1))
        weights: NDArray[np.float64] = np.maximum(1 - distances, 0)
        return weights.astype(np.float32)
