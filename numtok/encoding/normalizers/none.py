"""none: leaves values unchanged."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.encoding.normalizers.base import Constants, Moments, Normalizer


@dataclass(frozen=True)
class NoNormalizer(Normalizer):
    """Leaves numbers unchanged."""

    revision: ClassVar[int] = 1
    digest: ClassVar[str] = "6f59c4e8acfc4121"
    linear: ClassVar[bool] = True
    fitted: ClassVar[bool] = False
    identity: ClassVar[bool] = True

    def fit(self, moments: Moments) -> Constants:
        return {}

    def forward(self, values: Floats, constants: Constants) -> Floats:
        return values

    def inverse(self, values: Floats, constants: Constants) -> Floats:
        return values

    def log_slope(self, values: Floats, constants: Constants) -> Floats:
        return np.zeros(len(values))
