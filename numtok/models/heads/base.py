"""The contract of a head: hidden states where numbers are predicted, to numbers.

Every model of texts has a token head, which says what is a number in the first
place. With the head ``token`` it says the number as well, token by token. A
:class:`ValueHead` reads the number from one hidden state: that at the number's
first token in a text, that of all features in a table. What it was made of, its
settings, is one object, and the module with its weights, :class:`ValueReader`, another.

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

from numtok.encoding.normalizers.base import Scaling
from numtok.models.distributions.predictive import Predictive
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Registry

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

    @abstractmethod
    def describe(self) -> str:
        """What its distribution is, for a report; it must not promise more than it is."""

    def tokens(self, words: nn.Module, vocabulary: Vocabulary, width: int) -> nn.Module:
        """The module that says tokens: [N, D] to logits [N, vocabulary].

        ``words`` is the projection that does so unless a head has more to say about it.
        Raises UsageError for a vocabulary that the head cannot speak.
        """
        return words


class ValueHead(Head):
    """A head that predicts a number as a whole.

    normalizer
        The spec of the normalisation in which it learns the numbers of a table.
    bounded
        Whether its distribution gives nothing to what lies outside the normalised train split.
    scaled
        Whether it predicts numbers of the unit interval alone. In a text, whose numbers are
        normalised by the encoding already, such a head adds its own normalisation.
    raw
        Whether it learns numbers as they are in the text, in float64, whatever the encoding does
        to them: one that says their digits, say. Its points and parameters are in raw units, then,
        it is not ``scaled``, and its ``normalizer`` is ``none``. It does not go with a scheme that
        divides a number between token and channel, where a head is asked for a part alone.
    exact
        Whether what it says has all digits of float64, also where it stands beside a token: it is
        ``raw``, and goes with data that are not normalised.
    calibrated
        Whether its distribution needs something that is measured after training.
    per_token
        Whether the losses of numbers are divided by how many tokens are learnt, numbers and texts
        together, so that with the cross-entropy they are one mean over the tokens; else by how many
        numbers are learnt.
    by_density
        Whether its loss is -log of a density, of the value as it is learnt.
    of_tables
        Whether it can say the number of a row of a table, where there are no tokens.
    """

    raw: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    by_density: ClassVar[bool] = True
    of_tables: ClassVar[bool] = True

    @property
    def calibrated(self) -> bool:
        return False

    @property
    def per_token(self) -> bool:
        return False

    @property
    @abstractmethod
    def normalizer(self) -> str: ...

    @property
    @abstractmethod
    def bounded(self) -> bool: ...

    @property
    @abstractmethod
    def scaled(self) -> bool: ...

    @abstractmethod
    def targets(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """[N, W]: normalised values (float64[N]) as the loss takes them: float32 or int64.

        A value that cannot be learnt becomes one that can, the nearest where the head is bounded.
        """

    def representable(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """bool[N]: of which normalised values (float64[N]) the head can say the neighbourhood."""
        return np.isfinite(values)

    @abstractmethod
    def build(self, width: int) -> "ValueReader":
        """The module for hidden states of that width."""


def default_point(head: Head | None) -> str:
    """Return the default of ``--point`` for texts: ``median`` or ``mode``.

    The median minimizes the absolute error, which skill measures. Heads that write tokens or exact
    digits keep their most probable output, because a median between two outputs is neither.
    """
    return "median" if isinstance(head, ValueHead) and not head.exact else "mode"


class ValueReader(nn.Module, ABC):
    """The weights of a :class:`ValueHead`; ``tokens_per_number``: 0 where it writes none."""

    tokens_per_number: int = 0

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

    @abstractmethod
    def token_losses(self, parameters_NP: Tensor, targets_NW: Tensor) -> Tensor | None:
        """[N]: the mean cross-entropy of a number's tokens, in nats; None where there are none.

        What Tables 2 and 3 of Decoding-based Regression appear to print; it is no density.
        """

    def calibrate(self, parameters_NP: Tensor, values: NDArray[np.float64]) -> Calibration:
        """What :meth:`predictive` needs, from predictions on data that were not learnt, and the
        true values (float64[N], as the head learns them)."""
        return {}


HEADS: Registry[Head] = Registry("numtok.models.heads", "head")


def projection(width: int, out: int, layers: int, bias: bool) -> nn.Module:
    """A linear map, or with two layers width -> 4 width -> out with GELU between."""
    sizes = [width, out] if layers == 1 else [width, 4 * width, out]
    linears = [nn.Linear(a, b, bias=bias) for a, b in pairwise(sizes)]
    for linear in linears:
        nn.init.normal_(linear.weight, std=0.02)
        if bias:
            nn.init.zeros_(linear.bias)
    return linears[0] if layers == 1 else nn.Sequential(linears[0], nn.GELU(), linears[1])
