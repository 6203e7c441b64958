"""Heads that say all digits of a number as it is in the text, each on its own."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.encoding.normalizers.base import Scaling
from numtok.models.distributions.predictive import Predictive
from numtok.models.heads.base import Calibration, ValueHead, ValueReader
from numtok.models.precision import on_host


class ExactHead(ValueHead):
    """A head that learns float64, and whose points have all its digits, beside a token too."""

    normalizer: ClassVar[str] = "none"
    bounded: ClassVar[bool] = False
    scaled: ClassVar[bool] = False
    raw: ClassVar[bool] = True
    exact: ClassVar[bool] = True
    by_density: ClassVar[bool] = False


class ExactReader(ValueReader):
    """Parameters are logits; leaves say of which distribution, in raw units."""

    @abstractmethod
    def said(self, parameters_NP: Tensor) -> Predictive:
        """The distribution of each of N numbers."""

    def token_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> None:
        return None

    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """float64[N]: of the most probable digits; infinite or NaN where they are so."""
        return self.said(parameters_NP).mode()

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        return self.said(parameters_NP)


class LinearReader(ExactReader):
    """Parameters are a linear map of the state; ``weight`` is of the loss beside that of tokens."""

    def __init__(self, width: int, logits: int, weight: float) -> None:
        super().__init__()
        self.weight = weight
        self.linear = nn.Linear(width, logits)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        logits: Tensor = self.linear(hidden_ND)
        return logits.float()


def signed_losses(digits_NKJ: Tensor, minus_N: Tensor, targets_NW: Tensor) -> Tensor:
    """[N]: the cross-entropies of K digits and a sign, summed up, by their logits; targets
    [N, 1 + K] are whether there is a minus, and the digits."""
    digits_NK = F.cross_entropy(digits_NKJ.mT, targets_NW[:, 1:], reduction="none")
    minus = targets_NW[:, 0].to(minus_N.dtype)
    signs_N = F.binary_cross_entropy_with_logits(minus_N, minus, reduction="none")
    return digits_NK.sum(dim=1) + signs_N


def log_signs(minus_N: Tensor) -> NDArray[np.float64]:
    """float64[N, 2]: log P of plus and of minus, by logits of minus in float64."""
    return on_host(F.logsigmoid(torch.stack([-minus_N, minus_N], dim=1)))
