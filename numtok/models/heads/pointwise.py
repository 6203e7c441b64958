"""pointwise: one number by a linear map, as regression heads usually are."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from numtok.models.common_heads import PointHead, PointReader
from numtok.models.heads.base import ValueReader


@dataclass(frozen=True)
class Pointwise(PointHead):
    """A linear map to the number, MSE. It learns the range of the train split as [-0.5, 0.5].

    sigmoid
        Hold the prediction within the range of the train split, [0, 1], by a sigmoid: what Section
        4.2 needed against very large errors where there are few rows.

    Its distribution is a Gaussian whose deviation is the error on the validation split
    (``models.common_heads``).
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "Decoding-based Regression, Sections 2 and 4.2, Appendix D"
    sigmoid: bool = False

    @property
    def normalizer(self) -> str:
        return "unit" if self.sigmoid else super().normalizer

    def build(self, width: int) -> ValueReader:
        linear = nn.Linear(width, 1)
        return PointReader(nn.Sequential(linear, nn.Sigmoid()) if self.sigmoid else linear)
