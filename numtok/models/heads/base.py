"""The contract of a head: hidden states where numbers are predicted, to numbers.

Every model of texts has a token head, which says what is a number in the first
place. With the head ``token`` it says the number as well, token by token. A
:class:`ValueHead` reads the number from one hidden state: that at the number's
first token in a text, that of all features in a table. Its settings are one object,
and the module with its weights, :class:`ValueReader`, another.

``numtok.models.common_heads`` has base classes for heads that classify and heads of one value.

Shapes: N numbers, D the width of hidden states, P parameters of a number's
distribution, W columns in which a number is learnt.
"""

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.normalizers.base import NORMALIZERS, Scaling
from numtok.models.distributions.predictive import Predictive
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Registry, spec_of

_TILE = 32  # a multiple of the rows that matrix products of a CPU work on together

Calibration = dict[str, float]  # what a head's distribution needs, measured after training


def tiled(rows: Tensor) -> Tensor:
    """[n, ...] with the last row again behind them, so that all tiles are full: in one that is not,
    rows would get other last digits."""
    return torch.cat([rows, rows[-1:].expand(-len(rows) % _TILE, *rows.shape[1:])])


class Head(ABC):
    """How a number comes out. Subclasses are final frozen dataclasses of settings."""

    revision: ClassVar[int]
    source: ClassVar[str]

    #: True if it learns all digits of the numbers in the text. Its targets and its points are
    #: float64 in raw units, so the data must not be normalized. It cannot be combined with a scheme
    #: that divides a number between token and channel: there a head learns only a part.
    exact: ClassVar[bool] = False

    @abstractmethod
    def describe(self) -> str:
        """Return what its distribution is, for a report; it must not promise more than it is."""


class TokenHead(Head):
    """A head that says tokens its own way.

    With other heads a projection says tokens, and the losses of numbers are averaged over numbers.
    """

    @property
    @abstractmethod
    def per_token(self) -> bool:
        """True if the losses of numbers are divided by the number of learned tokens, text included.

        Together with the cross-entropy they are then one mean over the tokens.
        """

    @abstractmethod
    def tokens(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> nn.Module:
        """Return the module that says tokens: [N, D] to logits [N, vocabulary].

        ``words`` is the projection that other heads do with.
        Raises UsageError for a vocabulary that the head cannot speak.
        """


class ValueHead(Head):
    """A head that predicts a number as a whole."""

    #: True if its loss is -log of a density of the learned value.
    has_density: ClassVar[bool] = False

    @property
    def normalizer(self) -> str:
        """The spec of the normalization in which it learns the numbers of a table.

        A head of [0, 1] says ``unit``. In a text, whose numbers are normalized by the encoding
        already, such a head adds its own normalization.
        """
        return "none" if self.exact else "unit,start=-0.5"

    @property
    def bounded(self) -> bool:
        """True if it learns only [0, 1], so its distribution leaves nothing for values outside the
        range of the train split."""
        return False

    @abstractmethod
    def targets(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Return float32 or int64[N, W]: normalized values float64[N] as the loss takes them.

        A value that cannot be learned becomes one that can, the nearest where the head is bounded.
        """

    def representable(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return bool[N]: near which normalized values float64[N] the head can say a number."""
        return np.isfinite(values)

    @abstractmethod
    def build(self, width: int) -> "ValueReader":
        """Return the module for hidden states of that width."""


def learns_unit_interval(head: Head | None) -> bool:
    """Return True if a head learns only numbers of [0, 1], so that others must be scaled."""
    if not isinstance(head, ValueHead):
        return False
    return head.bounded or spec_of(NORMALIZERS.build(head.normalizer)) == "unit"


def default_point(head: Head | None) -> str:
    """Return the default of ``--point`` for texts: ``median`` or ``mode``.

    The median minimizes the absolute error, which skill measures. Heads that write tokens or exact
    digits keep their most probable output, because a median between two outputs is neither.
    """
    return "median" if isinstance(head, ValueHead) and not head.exact else "mode"


class ValueReader(nn.Module, ABC):
    """The weights of a :class:`ValueHead`."""

    @abstractmethod
    def forward(self, hidden_ND: Tensor) -> Tensor:
        """[N, P], float32: the parameters of each number's distribution."""

    @abstractmethod
    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """[N]: the loss of each number, in units of the head's own."""

    @abstractmethod
    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """float64[N], normalized: the median, or for tokens and digits the most probable output.

        It goes in again where a number is said from left to right, so it is quick to have.
        """

    @abstractmethod
    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        """The distribution of N numbers in raw units."""


class TokenReader(ValueReader):
    """A reader that writes each number as tokens.

    tokens_per_number
        The same for every number.
    """

    tokens_per_number: int

    @abstractmethod
    def token_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """[N]: the mean cross-entropy of a number's tokens, in nats.

        What Tables 2 and 3 of Decoding-based Regression appear to print; it is no density.
        """


class CalibratedReader(ValueReader):
    """A reader whose distribution needs something that is measured after training."""

    @abstractmethod
    def calibrate(self, parameters_NP: Tensor, values: NDArray[np.float64]) -> Calibration:
        """Measure what :meth:`predictive` needs, from predictions on data that were not learned and
        their true values (float64[N], as the head learns them)."""


HEADS = Registry[Head]("numtok.models.heads", "head", Head)


def projection(width: int, out: int, layers: int, bias: bool) -> nn.Module:
    """A linear map, or with two layers width -> 4 width -> out with GELU between."""
    sizes = [width, out] if layers == 1 else [width, 4 * width, out]
    linears = [nn.Linear(a, b, bias=bias) for a, b in pairwise(sizes)]
    for linear in linears:
        nn.init.normal_(linear.weight, std=0.02)
        if bias:
            nn.init.zeros_(linear.bias)
    return linears[0] if layers == 1 else nn.Sequential(linears[0], nn.GELU(), linears[1])
