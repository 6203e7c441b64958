"""mean-scale: in units of the mean magnitude, those from -15 to 15 onto [0, 1]."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.declaration import setting
from numtok.encoding.normalizers.base import Constants, Moments, Normalizer


@dataclass(frozen=True)
class MeanScale(Normalizer):
    """``x / (2 limit scale) + 1/2``, scale the mean of |x| over the train split, 1 where that is 0
    (Chronos, Section 3.1, which takes it of each series).

    limit
        How many times the mean magnitude becomes 1, and how many below zero 0.

    >>> fitted = fit(MeanScale(), Moments.of(np.array([1.0, -2.0, 4.0, 17.5])))
    >>> fitted.constants, fitted.forward(np.array([-91.875, 0.0, 91.875])).tolist()
    ({'scale': 6.125}, [0.0, 0.5, 1.0])
    """

    revision: ClassVar[int] = 1
    digest: ClassVar[str] = "0dad8213f2964b64"
    linear: ClassVar[bool] = True
    positional: ClassVar[str] = "limit"
    limit: float = setting(15.0, "Times the mean magnitude.", above=0, below=np.inf)

    def fit(self, moments: Moments) -> Constants:
        # To twelve digits: the last ones depend on how the rows were divided to be summed up, and a
        # number in the middle between two bins would, too.
        return {"scale": float(f"{moments.magnitude:.12g}") or 1.0}

    def forward(self, values: Floats, constants: Constants) -> Floats:
        return values / self._width(constants) + 0.5

    def inverse(self, values: Floats, constants: Constants) -> Floats:
        return (values - 0.5) * self._width(constants)

    def log_slope(self, values: Floats, constants: Constants) -> Floats:
        return np.full(len(values), -np.log(self._width(constants)))

    def _width(self, constants: Constants) -> float:
        """Of [0, 1], in the units of the text."""
        return 2 * self.limit * constants["scale"]
