"""mlp: replaces the vector of ``[NUM]`` with the output of a small network of the value, which may
be rounded down to a bin edge first."""

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.declaration import setting
from numtok.errors import UsageError
from numtok.models.embedders._shared import LARGEST
from numtok.models.embedders.base import INIT, FeatureEmbedder, FeatureModule
from numtok.models.vocabulary import Vocabulary
from numtok.setting_values import Range


@dataclass(frozen=True)
class MLP(FeatureEmbedder):
    """Value embeddings of Montgomery et al. 2026: the vector of a number x is

        W_2 relu(w_1 x + b_1) + b_2

    with ``width`` hidden units ("combined"). With ``bins`` = N, x is first rounded down to an edge
    of N equal bins ("hybrid discrete"):

        x <- b_k,    b_k <= x < b_(k+1),    b_k = low + k (high - low) / N

    The paper reports that the rounded variant trains more reliably, and that the best N grows with
    the size of the data. Its values are between 0 and 1; here they are those of ``--normalize``.

    bins
        Number of bins; 0 does not round. Numbers beyond the range are in its first or last bin.
    range
        Lowest and highest edge of the bins. The default is the range of ``--normalize scale:5``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "arXiv 2607.01391; public code FGA-DIKU/EHR, embeddings.py"
    positional: ClassVar[str] = "bins"
    exact: ClassVar[bool] = False
    bins: int = setting(0, at_least=0)
    range: Range = Range(-5.0, 5.0)

    def __post_init__(self) -> None:
        if not 0 < self.range.high - self.range.low < np.inf:
            raise UsageError(f"mlp: range must have a finite width (got {self.range})")

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        values = np.clip(np.nan_to_num(values), -LARGEST, LARGEST)[:, None]
        if self.bins:
            low, width = self.range.low, self.range.high - self.range.low
            place = np.clip(np.floor((values - low) / width * self.bins), 0, self.bins - 1)
            values = low + place / self.bins * width
        return values.astype(np.float32)

    @torch.no_grad()
    def rescale(self, module: nn.Module, times: float) -> None:
        for weights in cast(_MLPModule, module).network[-1].parameters():
            weights.mul_(times)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        return _MLPModule(self, vocabulary, width)


class _MLPModule(FeatureModule):
    def __init__(self, embedder: MLP, vocabulary: Vocabulary, width: int) -> None:
        super().__init__(embedder, vocabulary, width, mapped=False)
        last = nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(1, width), nn.ReLU(), last)
        # A hidden unit of the number 1 has a mean square of 1/3, so the vector of 1 starts about as
        # long as that of a token.
        nn.init.normal_(last.weight, std=INIT / math.sqrt(width / 3))
        nn.init.zeros_(last.bias)

    def embedded(self, tokens_PD: Tensor, *inputs: Tensor) -> Tensor:
        [features_P1] = inputs
        return cast(Tensor, self.network(features_P1))
