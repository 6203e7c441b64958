"""signed-log: signed logarithm, for numbers that span many orders of magnitude."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.encoding.normalizers.base import Constants, Moments, Normalizer


@dataclass(frozen=True)
class SignedLog(Normalizer):
    """Normalizes x to ``sign(x) * log10(1 + |x|)``. Several published "xVal" baselines apply such a
    logarithm first. Reports mention its use, because it is not part of the xVal paper."""

    revision: ClassVar[int] = 1
    digest: ClassVar[str] = "8cdc129047b356a2"
    keeps_zero: ClassVar[bool] = True
    fitted: ClassVar[bool] = False

    def fit(self, moments: Moments) -> Constants:
        return {}

    def forward(self, values: Floats, constants: Constants) -> Floats:
        # copysign, not sign, so that -0 stays -0
        signed: Floats = np.copysign(np.log1p(np.abs(values)) / np.log(10.0), values)
        return signed

    def inverse(self, values: Floats, constants: Constants) -> Floats:
        signed: Floats = np.copysign(np.expm1(np.abs(values) * np.log(10.0)), values)
        return signed

    def log_slope(self, values: Floats, constants: Constants) -> Floats:
        slopes: Floats = -np.log1p(np.abs(values)) - np.log(np.log(10.0))
        return slopes
