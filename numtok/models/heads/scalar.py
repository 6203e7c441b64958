"""scalar: one number, by the mean squared error."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.declaration import setting
from numtok.models.common_heads import PointHead, PointReader
from numtok.models.heads.base import ValueReader, projection


@dataclass(frozen=True)
class Scalar(PointHead):
    """xVal's number head: an MLP of ``layers`` layers (D -> 4 D -> 1 with two), MSE (Section 2.2).

    Its distribution is a Gaussian whose deviation is the error on the validation split
    (``models.common_heads``).
    """

    revision: ClassVar[int] = 3
    source: ClassVar[str] = "xVal, Section 2.2; layers as in its public code"
    layers: int = setting(2, "Of the MLP; 1 is a linear map.", at_least=1, at_most=2)

    def build(self, width: int) -> ValueReader:
        return PointReader(projection(width, 1, self.layers, bias=True))
