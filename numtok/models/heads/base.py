"""The contract of a head: from hidden states at numbers to predicted numbers.

Every text model has a token head, which decides where a number comes next. With the head ``token``
it also predicts the number, token by token. A :class:`ValueHead` predicts the number from one
hidden state: the state at the number's first token in a text, or the state of all features in a
table. The settings of a head are one object; the module with its weights, a :class:`ValueReader`,
is another.

``numtok.models.common_heads`` has base classes for heads that classify and for heads that predict
one value.

Shapes: N numbers, D width of the hidden states, P parameters of a number's distribution, W columns
of a number's targets.
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

_TILE = 32  # a multiple of the number of rows that CPU matrix products process together

Calibration = dict[str, float]  # measured after training, for the head's distribution


def tiled(rows: Tensor) -> Tensor:
    """Pad rows [n, ...] to a multiple of the tile size by repeating the last row.

    In a partly filled tile, results would differ in the last digits.
    """
    return torch.cat([rows, rows[-1:].expand(-len(rows) % _TILE, *rows.shape[1:])])


class Head(ABC):
    """A way to predict a number. Subclasses are final frozen dataclasses of settings."""

    revision: ClassVar[int]
    source: ClassVar[str]

    #: True if the head is trained on all digits of the numbers in the text. Its targets and points
    #: are float64 in raw units, so the data must not be normalized. It cannot be combined with a
    #: scheme that splits a number between token and channel, because it would see only a part.
    exact: ClassVar[bool] = False

    @abstractmethod
    def describe(self) -> str:
        """Return a description of its distribution for reports; it must not promise too much."""


class TokenHead(Head):
    """A head that predicts tokens in its own way.

    Other heads use a linear projection for tokens, and average the losses of numbers over numbers.
    """

    @property
    @abstractmethod
    def per_token(self) -> bool:
        """True if the losses of numbers are divided by the number of trained tokens, text included.

        Together with the cross-entropy they then form one mean over the tokens.
        """

    @abstractmethod
    def tokens(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> nn.Module:
        """Return the module that predicts tokens: [N, D] to logits [N, vocabulary].

        ``words`` is the projection that other heads use. Raises UsageError for a vocabulary that
        the head does not support.
        """


class ValueHead(Head):
    """A head that predicts a number as a whole."""

    #: True if its loss is -log of a density of the target value.
    has_density: ClassVar[bool] = False

    @property
    def normalizer(self) -> str:
        """The spec of the normalization in which it is trained on the numbers of a table.

        Heads for [0, 1] return ``unit``. In texts, whose numbers are already normalized by the
        encoding, such a head adds its own normalization.
        """
        return "none" if self.exact else "unit,start=-0.5"

    @property
    def bounded(self) -> bool:
        """True if it is trained on [0, 1] only, so its distribution has no mass outside the range
        of the train split."""
        return False

    @abstractmethod
    def targets(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Return float32 or int64[N, W]: the training targets of normalized values float64[N].

        A value that cannot be represented is replaced by one that can, by the nearest if the head
        is bounded.
        """

    def representable(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return bool[N]: True for normalized values float64[N] that the head can predict
        closely."""
        return np.isfinite(values)

    @abstractmethod
    def build(self, width: int) -> "ValueReader":
        """Return the module for hidden states of the given width."""


def learns_unit_interval(head: Head | None) -> bool:
    """Return True if a head is trained on [0, 1] only, so other numbers must be scaled."""
    if not isinstance(head, ValueHead):
        return False
    return head.bounded or spec_of(NORMALIZERS.build(head.normalizer)) == "unit"


def default_point(head: Head | None) -> str:
    """Return the default of ``--point`` for texts: ``median`` or ``mode``.

    The median minimizes the absolute error, which skill measures. Heads that predict tokens or
    exact digits return their most probable output, because a median between two outputs is neither.
    """
    return "median" if isinstance(head, ValueHead) and not head.exact else "mode"


class ValueReader(nn.Module, ABC):
    """The weights of a :class:`ValueHead`."""

    @abstractmethod
    def forward(self, hidden_ND: Tensor) -> Tensor:
        """[N, P], float32: the parameters of each number's distribution."""

    @abstractmethod
    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """[N]: the loss of each number, in the head's own units."""

    @abstractmethod
    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """float64[N], normalized: the median, or the most probable output for tokens and digits.

        Autoregressive models feed it back as input, so it must be cheap to compute.
        """

    @abstractmethod
    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        """Return the distribution of N numbers in raw units."""


class TokenReader(ValueReader):
    """A reader that predicts each number as tokens.

    tokens_per_number
        Number of tokens, the same for every number.
    """

    tokens_per_number: int

    @abstractmethod
    def token_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """[N]: the mean cross-entropy of a number's tokens, in nats.

        Tables 2 and 3 of Decoding-based Regression appear to report it. It is not a density.
        """


class CalibratedReader(ValueReader):
    """A reader whose distribution needs values that are measured after training."""

    @abstractmethod
    def calibrate(self, parameters_NP: Tensor, values: NDArray[np.float64]) -> Calibration:
        """Measure the calibration for :meth:`predictive` from predictions on held-out data and
        their true values (float64[N], normalized as in training)."""


HEADS = Registry[Head]("numtok.models.heads", "head", Head)


def projection(width: int, out: int, layers: int, bias: bool) -> nn.Module:
    """Return a linear map, or with two layers an MLP width -> 4 width -> out with GELU."""
    sizes = [width, out] if layers == 1 else [width, 4 * width, out]
    linears = [nn.Linear(a, b, bias=bias) for a, b in pairwise(sizes)]
    for linear in linears:
        nn.init.normal_(linear.weight, std=0.02)
        if bias:
            nn.init.zeros_(linear.bias)
    return linears[0] if layers == 1 else nn.Sequential(linears[0], nn.GELU(), linears[1])
