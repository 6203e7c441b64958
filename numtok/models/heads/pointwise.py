"""pointwise: predicts one value with a linear map, the usual regression head."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from numtok.models.common_heads import PointHead, PointReader
from numtok.models.heads.base import ValueReader


@dataclass(frozen=True)
class Pointwise(PointHead):
    """A linear map to one value, trained with MSE on the training range scaled to [-0.5, 0.5].

    sigmoid
        Apply a sigmoid, which keeps predictions within the training range; the range is then scaled
        to [0, 1]. In Decoding-based Regression (Section 4.2), this prevents very large errors on
        small data sets.

    The predictive distribution is a Gaussian whose standard deviation is the root mean squared
    error on the validation split.
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
