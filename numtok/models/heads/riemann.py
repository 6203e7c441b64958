"""riemann: predicts a histogram over equal bins of the training range."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.models.common_heads import HistogramHead, HistogramReader
from numtok.models.heads.base import ValueReader


@dataclass(frozen=True)
class Riemann(HistogramHead):
    """A linear map and a softmax over ``bins`` equal bins of the training range.

    The range is scaled to [0, 1]. The loss is the negative log-density on this scale, -log p_bin -
    log bins, in nats.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "Decoding-based Regression, Section 2 (histogram heads), Appendix D"
    has_density: ClassVar[bool] = True
    checked_at: ClassVar[str] = "riemann:32"

    def build(self, width: int) -> ValueReader:
        return HistogramReader(width, self.bins)
