"""Base classes for heads, which predict numbers from hidden states.

Every text model has a token head, which predicts where numbers occur. With the head ``token``, it
also predicts the numbers themselves, token by token. A :class:`ValueHead` predicts a complete
number from one hidden state: in a text, the state at the number's first token; in a table, the
state of all features. A head contains only settings; its weights are in a separate module, a
:class:`ValueReader`.

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
    """Return rows [n, ...], padded to a multiple of 32 with copies of the last row.

    Matrix products on the CPU process rows in tiles. In a partly filled tile, results would differ
    in their last digits.
    """
    return torch.cat([rows, rows[-1:].expand(-len(rows) % _TILE, *rows.shape[1:])])


class Head(ABC):
    """Base class for heads, which predict numbers.

    Subclasses are final frozen dataclasses; their fields are the settings of the head.
    """

    revision: ClassVar[int]
    source: ClassVar[str]

    #: True if the head is trained on all digits of the numbers in the text. Its targets and points
    #: are float64 in raw units, so the data must not be normalized. It cannot be combined with a
    #: scheme that splits a number between token and channel, because it would see only a part.
    exact: ClassVar[bool] = False

    @abstractmethod
    def describe(self) -> str:
        """Return a short, accurate description of the predictive distribution, for reports."""


class TokenHead(Head):
    """Base class for heads that define how tokens are predicted.

    With all other heads, tokens are predicted by a linear projection, and the losses for numbers
    are averaged over numbers.
    """

    @property
    @abstractmethod
    def per_token(self) -> bool:
        """True if the losses for numbers are divided by the number of all target tokens, including
        text.

        The sum of these losses and the cross-entropy of tokens is then a mean over tokens.
        """

    @abstractmethod
    def tokens(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> nn.Module:
        """Return the module that maps hidden states [N, D] to logits of tokens [N, vocabulary].

        ``words`` is the linear projection that all other heads use. Raises UsageError if the head
        does not support the vocabulary.
        """


class ValueHead(Head):
    """Base class for heads that predict a complete number from one hidden state."""

    @property
    def has_density(self) -> bool:
        """True if its loss is -log of a density of the target value."""
        return False

    @property
    def normalizer(self) -> str:
        """Spec of the normalization that is applied to the numbers in a table before training.

        Heads that predict values in [0, 1] return ``unit``. In texts, whose numbers are already
        normalized by the encoding, such a head adds its own normalization.
        """
        return "none" if self.exact else "unit,start=-0.5"

    @property
    def bounded(self) -> bool:
        """True if the head is trained only on [0, 1], so that its distribution has no mass outside
        the range of the train split."""
        return False

    @abstractmethod
    def targets(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Return the training targets for normalized values float64[N], as float32[N, W] or
        int64[N, W].

        A value that cannot be represented is replaced with one that can. If the head is bounded,
        this is the nearest such value.
        """

    def representable(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return bool[N]: True for each normalized value (float64[N]) that the head can predict
        accurately."""
        return np.isfinite(values)

    @abstractmethod
    def build(self, width: int) -> "ValueReader":
        """Return the module that predicts numbers from hidden states of the given width."""


def learns_unit_interval(head: Head | None) -> bool:
    """Return whether a head is trained only on [0, 1], so that all numbers must be scaled to this
    range."""
    if not isinstance(head, ValueHead):
        return False
    return head.bounded or spec_of(NORMALIZERS.build(head.normalizer)) == "unit"


def default_point(head: Head | None) -> str:
    """Return the default of ``--point`` for text models: ``median`` or ``mode``.

    The median minimizes the absolute error, on which skill is based. Heads that predict tokens or
    exact digits use their most probable output (the mode), because a median between two outputs is
    neither of them.
    """
    return "median" if isinstance(head, ValueHead) and not head.exact else "mode"


class ValueReader(nn.Module, ABC):
    """Base class for the modules that a :class:`ValueHead` builds to predict numbers from hidden
    states."""

    @abstractmethod
    def forward(self, hidden_ND: Tensor) -> Tensor:
        """Return float32[N, P]: the parameters of each number's distribution."""

    @abstractmethod
    def losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """Return [N]: the loss of each number, in the head's own unit, such as nats."""

    @abstractmethod
    def point(self, parameters_NP: Tensor) -> NDArray[np.float64]:
        """Return the normalized prediction of each number, float64[N]: the median, or the most
        probable output for tokens and digits.

        Autoregressive models use it as their next input, so it must be cheap to compute.
        """

    @abstractmethod
    def predictive(
        self, parameters_NP: Tensor, calibration: Calibration, scaling: Scaling
    ) -> Predictive:
        """Return the predictive distribution of N numbers in raw units (with normalization
        undone)."""


class TokenReader(ValueReader):
    """Base class for readers that predict each number as a sequence of tokens.

    tokens_per_number
        Number of tokens per number, which is the same for all numbers.
    """

    tokens_per_number: int

    @abstractmethod
    def token_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor:
        """Return [N]: the mean cross-entropy of each number's tokens, in nats.

        Tables 2 and 3 of Decoding-based Regression appear to report this value. It is not a
        negative log-density.
        """


class CalibratedReader(ValueReader):
    """Base class for readers whose distribution depends on values that are measured after
    training."""

    @abstractmethod
    def calibrate(self, parameters_NP: Tensor, values: NDArray[np.float64]) -> Calibration:
        """Return the measured values that :meth:`predictive` needs, keyed by name.

        ``parameters_NP`` are predictions for held-out data, and ``values`` are the true values
        (float64[N], normalized as in training).
        """


HEADS = Registry[Head]("numtok.models.heads", "head", Head)


def projection(width: int, out: int, layers: int, bias: bool) -> nn.Module:
    """Return a linear layer, or, if ``layers`` is 2, an MLP width -> 4 width -> out with GELU."""
    sizes = [width, out] if layers == 1 else [width, 4 * width, out]
    linears = [nn.Linear(a, b, bias=bias) for a, b in pairwise(sizes)]
    for linear in linears:
        nn.init.normal_(linear.weight, std=0.02)
        if bias:
            nn.init.zeros_(linear.bias)
    return linears[0] if layers == 1 else nn.Sequential(linears[0], nn.GELU(), linears[1])
