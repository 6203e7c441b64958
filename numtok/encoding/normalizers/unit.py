"""unit: maps the range of the train split to [0, 1], or to another interval of length 1."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.encoding.normalizers.base import Constants, Moments, Normalizer


@dataclass(frozen=True)
class UnitRange(Normalizer):
    """Normalizes x to ``(x - low) / (high - low) + start``, where low and high are the smallest and
    largest number in the train split. If these are equal, numbers are only shifted, so that the
    numbers in the train split become ``start``.

    start
        Start of the interval of length 1.

    >>> fitted = fit(UnitRange(start=-0.5), Moments.of(np.array([10.0, 20.0])))
    >>> fitted.forward(np.array([10.0, 17.5]))
    array([-0.5 ,  0.25])
    """

    revision: ClassVar[int] = 1
    digest: ClassVar[str] = "d090a22ddb0211c3"
    linear: ClassVar[bool] = True
    start: float = 0.0

    def fit(self, moments: Moments) -> Constants:
        return {"low": moments.low, "width": moments.high - moments.low or 1.0}

    def forward(self, values: Floats, constants: Constants) -> Floats:
        return (values - constants["low"]) / constants["width"] + self.start

    def inverse(self, values: Floats, constants: Constants) -> Floats:
        return (values - self.start) * constants["width"] + constants["low"]

    def log_slope(self, values: Floats, constants: Constants) -> Floats:
        return np.full(len(values), -np.log(constants["width"]))
