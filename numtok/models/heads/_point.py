"""One number by the mean squared error, and how far it is off: what heads of one value share.

The head itself says nothing of its doubts. Its distribution is a Gaussian around the prediction
whose variance is the mean squared error on data that were not learnt, the same for every number;
a report labels it so.
"""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.normalizers.base import Scaling
from numtok.models.distributions.mixture import Mixture
from numtok.models.distributions.predictive import Predictive
from numtok.models.heads.base import CalibratedReader, Calibration, ValueHead
from numtok.models.precision import on_host

_LARGEST = float(np.finfo(np.float32).max)


class RealHead(ValueHead):
    """A head that learns the normalised value itself."""

    def targets(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """float32[N, 1]: the nearest values that float32 holds; 0 for what is not finite."""
        known = np.where(np.isfinite(values), values, 0.0)
        return np.clip(known, -_LARGEST, _LARGEST).astype(np.float32)[:, None]

    def representable(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """bool[N]: which values float32 holds."""
        return np.abs(values) <= _LARGEST


class PointHead(RealHead):
    """A head of one value; its distribution's deviation is the error on the validation split."""

    def describe(self) -> str:
        return "Gaussian around the head's prediction, its deviation the validation error"


class PointReader(CalibratedReader):
    """A module from hidden states to one number, [N, D] to [N, 1], as a reader."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, hidden_ND: Tensor) -> Tensor:
        made: Tensor = self.module(hidden_ND)
        return made

    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        return (parameters_NP[:, 0].float() - targets_NW[:, 0]).square()

    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        return on_host(parameters_NP[:, 0])

    def calibrate(self, parameters_NP: Tensor, values: NDArray[np.float64]) -> Calibration:
        errors = self.point(parameters_NP) - values
        # An error of exactly zero would make a density that nothing else can lie in.
        return {"deviation": float(max(np.sqrt(np.mean(errors**2)), 1e-12))}

    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        return Mixture.single(self.point(parameters_NP), calibration["deviation"], scaling)
