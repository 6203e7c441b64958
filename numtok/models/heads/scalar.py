"""scalar: predicts one value, trained with the mean squared error (xVal)."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.declaration import setting
from numtok.models.common_heads import PointHead, PointReader
from numtok.models.heads.base import ValueReader, projection


@dataclass(frozen=True)
class Scalar(PointHead):
    """xVal's number head (Section 2.2): an MLP with ``layers`` layers trained with MSE.

    Two layers map D -> 4 D -> 1. The predictive distribution is a Gaussian whose standard deviation
    is the root mean squared error on the validation split.
    """

    revision: ClassVar[int] = 3
    source: ClassVar[str] = "xVal, Section 2.2; layers as in its public code"
    layers: int = setting(2, "Number of layers; 1 is a linear map.", at_least=1, at_most=2)

    def build(self, width: int) -> ValueReader:
        return PointReader(projection(width, 1, self.layers, bias=True))
