"""affine: shifts and scales numbers to mean 0 and standard deviation 1."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.encoding.normalizers.base import AnswerNormalizer, Constants, Moments


@dataclass(frozen=True)
class Affine(AnswerNormalizer):
    """Normalizes x to ``(x - mean) / standard deviation``, where the mean and standard deviation
    are computed over the numbers in the train split. If these numbers are all equal, they become
    0."""

    revision: ClassVar[int] = 1
    digest: ClassVar[str] = "279cacc7b3d905be"
    linear: ClassVar[bool] = True

    def fit(self, moments: Moments) -> Constants:
        return {"mean": moments.mean, "deviation": moments.deviation or 1.0}

    def forward(self, values: Floats, constants: Constants) -> Floats:
        return (values - constants["mean"]) / constants["deviation"]

    def inverse(self, values: Floats, constants: Constants) -> Floats:
        return values * constants["deviation"] + constants["mean"]

    def log_slope(self, values: Floats, constants: Constants) -> Floats:
        return np.full(len(values), -np.log(constants["deviation"]))
