"""mean-scale: divides numbers by their mean magnitude, and maps -15 to 15 onto [0, 1]."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.declaration import setting
from numtok.encoding.normalizers.base import Constants, Moments, Normalizer


@dataclass(frozen=True)
class MeanScale(Normalizer):
    """Normalizes x to ``x / (2 * limit * scale) + 1/2``, where ``scale`` is the mean of |x| in the
    train split, or 1 if that mean is 0. (Chronos, Section 3.1, uses the mean of each series.)

    limit
        Multiple of the mean magnitude that is mapped to 1; its negative is mapped to 0.

    >>> fitted = fit(MeanScale(), Moments.of(np.array([1.0, -2.0, 4.0, 17.5])))
    >>> fitted.constants, fitted.forward(np.array([-91.875, 0.0, 91.875])).tolist()
    ({'scale': 6.125}, [0.0, 0.5, 1.0])
    """

    revision: ClassVar[int] = 1
    digest: ClassVar[str] = "0dad8213f2964b64"
    linear: ClassVar[bool] = True
    positional: ClassVar[str] = "limit"
    limit: float = setting(15.0, "Multiple of the mean magnitude.", above=0, below=np.inf)

    def fit(self, moments: Moments) -> Constants:
        # Rounded to twelve digits: the last ones depend on how the rows were split for summation,
        # which would make numbers halfway between two bins depend on it.
        return {"scale": float(f"{moments.magnitude:.12g}") or 1.0}

    def forward(self, values: Floats, constants: Constants) -> Floats:
        return values / self._width(constants) + 0.5

    def inverse(self, values: Floats, constants: Constants) -> Floats:
        return (values - 0.5) * self._width(constants)

    def log_slope(self, values: Floats, constants: Constants) -> Floats:
        return np.full(len(values), -np.log(self._width(constants)))

    def _width(self, constants: Constants) -> float:
        """Return the width of the raw interval that is mapped to [0, 1]."""
        return 2 * self.limit * constants["scale"]
