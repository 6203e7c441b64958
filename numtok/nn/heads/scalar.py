"""scalar: one number, by the mean squared error."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.distributions.base import Predictive
from numtok.distributions.gaussian import Gaussian
from numtok.errors import UsageError
from numtok.nn.heads.base import Calibration, ValueHead, projection
from numtok.normalizers.base import FittedNormalizer


@dataclass(frozen=True)
class Scalar(ValueHead):
    """xVal's number head: an MLP of ``layers`` layers (D -> 4 D -> 1 with two), MSE (Section 2.2).

    The head itself says nothing of its doubts. Its distribution is a Gaussian around the
    prediction whose variance is the mean squared error on the validation split, the same for
    every number; a report labels it so.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2.2; layers as in its public code"
    layers: int = 2

    def __post_init__(self) -> None:
        if self.layers not in (1, 2):
            raise UsageError(f"scalar: layers={self.layers} is not possible; allowed are 1 and 2")

    def build(self, width: int) -> nn.Module:
        return projection(width, 1, self.layers, bias=True)

    def loss(self, parameters_NP: Tensor, values_N: Tensor) -> Tensor:
        return F.mse_loss(parameters_NP[:, 0].float(), values_N)

    def point(self, parameters: NDArray[np.float32]) -> NDArray[np.float64]:
        return parameters[:, 0].astype(np.float64)

    def calibrate(
        self, parameters: NDArray[np.float32], values: NDArray[np.float32]
    ) -> Calibration:
        errors = self.point(parameters) - values
        # An error of exactly zero would make a density that nothing else can lie in.
        return {"deviation": float(max(np.sqrt(np.mean(errors**2)), 1e-12))}

    def predictive(
        self,
        parameters: NDArray[np.float32],
        calibration: Calibration,
        normalizer: FittedNormalizer,
    ) -> Predictive:
        return Gaussian(self.point(parameters), calibration["deviation"], normalizer)

    def describe(self) -> str:
        return "Gaussian around the scalar head's prediction, its deviation the validation error"
