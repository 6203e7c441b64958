"""scale:5: multiplies numbers by a factor that maps the train split into [-5, 5]. Zero is
unchanged."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.declaration import setting
from numtok.encoding.normalizers.base import AnswerNormalizer, Constants, Moments


@dataclass(frozen=True)
class Scale(AnswerNormalizer):
    """Multiplies numbers by a factor, so that the largest magnitude in the train split becomes
    ``limit`` (xVal, Section 2.1).

    The paper does not state whether this is one factor for all numbers. With ``by=answer``, an
    operand and a result that is much larger both use the whole range.
    """

    revision: ClassVar[int] = 1
    digest: ClassVar[str] = "eb187f00c6c7af14"
    linear: ClassVar[bool] = True
    keeps_zero: ClassVar[bool] = True
    positional: ClassVar[str] = "limit"
    limit: float = setting(5.0, "Largest normalized magnitude.", above=0, below=np.inf)

    def fit(self, moments: Moments) -> Constants:
        return {"factor": self.limit / moments.largest if moments.largest else 1.0}

    def forward(self, values: Floats, constants: Constants) -> Floats:
        return values * constants["factor"]

    def inverse(self, values: Floats, constants: Constants) -> Floats:
        return values / constants["factor"]

    def log_slope(self, values: Floats, constants: Constants) -> Floats:
        return np.full(len(values), np.log(constants["factor"]))
