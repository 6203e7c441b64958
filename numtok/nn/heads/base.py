"""The contract of a head: hidden states where numbers are predicted, to numbers.

Every model has a token head, which says what is a number in the first place.
With the head ``token`` it says the number as well, token by token. A
:class:`ValueHead` reads the number from the hidden state at its first token.
"""

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.distributions.base import Predictive
from numtok.normalizers.base import FittedNormalizer
from numtok.registry import Registry

Calibration = dict[str, float]  # what a head's distribution needs, measured after training


class Head(ABC):
    """How a number comes out. Subclasses are final frozen dataclasses of settings."""

    revision: ClassVar[int]
    source: ClassVar[str]

    @abstractmethod
    def describe(self) -> str:
        """What its distribution is, for a report; it must not promise more than it is."""


class ValueHead(Head):
    """A head that predicts the normalised value itself, with ``P`` parameters a number."""

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """The module: hidden states [N, D] to parameters [N, P]."""

    @abstractmethod
    def loss(self, parameters_NP: Tensor, values_N: Tensor) -> Tensor:
        """The mean loss of N > 0 numbers, a scalar."""

    @abstractmethod
    def point(self, parameters: NDArray[np.float32]) -> NDArray[np.float64]:
        """[N] the one value that is predicted."""

    @abstractmethod
    def calibrate(
        self, parameters: NDArray[np.float32], values: NDArray[np.float32]
    ) -> Calibration:
        """What :meth:`predictive` needs, from predictions on data that were not learnt."""

    @abstractmethod
    def predictive(
        self,
        parameters: NDArray[np.float32],
        calibration: Calibration,
        normalizer: FittedNormalizer,
    ) -> Predictive:
        """The distribution of N numbers in raw units."""


HEADS: Registry[Head] = Registry("numtok.nn.heads", "head")


def projection(width: int, out: int, layers: int, bias: bool) -> nn.Module:
    """A linear map, or with two layers width -> 4 width -> out with GELU between."""
    sizes = [width, out] if layers == 1 else [width, 4 * width, out]
    linears = [nn.Linear(a, b, bias=bias) for a, b in pairwise(sizes)]
    for linear in linears:
        nn.init.normal_(linear.weight, std=0.02)
        if bias:
            nn.init.zeros_(linear.bias)
    return linears[0] if layers == 1 else nn.Sequential(linears[0], nn.GELU(), linears[1])
