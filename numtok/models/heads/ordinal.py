"""ordinal: predicts a histogram by one conditional probability per edge between bins (CORN)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from numtok.models.common_heads import HistogramHead, HistogramReader
from numtok.models.heads.base import ValueReader


@dataclass(frozen=True)
class Ordinal(HistogramHead):
    """CORN (Shi, Cao and Raschka 2021): one binary classification per edge between two bins.

    The sigmoid of logit k is the probability that a number lies above edge k, given that it lies
    above edge k - 1. The product of the first k of them is the probability that it lies above edge
    k, and differences of these products are the probabilities of the bins. The binary
    cross-entropies of a number sum to -log p_bin, so the loss is the negative log-density on the
    scale of [0, 1], -log p_bin - log bins, in nats. The authors' code divides this sum by the
    number of binary labels in the batch instead.

    The bin with the median is the class that CORN predicts. Biases start at values for which all
    bins are equally probable. At 0, the first bin would have half of the probability.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "CORN (arXiv 2111.08851), and its public code (coral-pytorch)"
    has_density: ClassVar[bool] = True
    checked_at: ClassVar[str] = "ordinal:32"

    def build(self, width: int) -> ValueReader:
        return _OrdinalReader(width, self.bins)


class _OrdinalReader(HistogramReader):
    """Parameters are the logits of the edges, in ascending order."""

    def __init__(self, width: int, bins: int) -> None:
        super().__init__(width, bins, bins - 1)
        with torch.no_grad():
            self.linear.bias.copy_(torch.arange(bins - 1, 0, -1).log())

    def log_mass(self, parameters_NP: Tensor) -> Tensor:
        above = F.pad(F.logsigmoid(parameters_NP).cumsum(dim=1), (1, 0))
        return above + F.pad(F.logsigmoid(-parameters_NP), (0, 1))
