"""The contract of an objective: what a model sees of a batch of rows, and must predict.

``numtok.models.training_batch`` has the usual ways to make such a :class:`TrainingBatch`, and says
which hidden state predicts what. An objective with further losses is an :class:`OwnLosses` as well.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from torch import Tensor, nn

from numtok.models.batches import Batch
from numtok.models.number_terms.base import NUMBER_TERMS, NumberTerm
from numtok.models.training_batch import TrainingBatch
from numtok.registry import Registry

Loss = TypeVar("Loss", float, Tensor)


class Objective(ABC):
    """An objective. Subclasses are final frozen dataclasses; their fields are settings."""

    revision: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def causal(self) -> bool:
        """Whether a hidden state depends only on earlier tokens."""

    @abstractmethod
    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        """Make a training batch; all randomness comes from ``random``."""

    @abstractmethod
    def requires(self) -> str | None:
        """The column that every row needs: "targets", "answer_start", "label" or None."""

    @property
    def number_term(self) -> NumberTerm | None:
        """The loss on the values of tokens, added to their cross-entropy or instead of it."""
        return None


class LoggedFigure(NamedTuple):
    """A loss of an objective's own, or a mean that is only logged.

    name
        The column of ``metrics.jsonl``.
    weight
        The weight with which it is trained; None: it is only logged.
    per_token
        True for a mean over the predicted tokens, False for one over the objective's positions.
    """

    name: str
    weight: float | None
    per_token: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstPass:
    """The inputs of an objective's own losses.

    embedded, hidden
        [B, L, D]: the vectors of a batch, and its hidden states.
    places
        [P]: flat indices into [B, L] of the objective's positions.
    trunk
        Maps other vectors [B, L, D] of the same rows to their hidden states.
    token_loss
        Maps hidden states [B, L, D] to the cross-entropy [] of the tokens to predict.
    """

    embedded: Tensor
    hidden: Tensor
    places: Tensor
    trunk: Callable[[Tensor], Tensor]
    token_loss: Callable[[Tensor], Tensor]


class OwnLosses(ABC):
    """An objective that trains a stand-in for tokens that the model has not seen when it writes.

    Its embedder makes the vector of such a token from the tokens after it
    (``NumberModule.ahead``). The positions of these tokens, from ``TrainingBatch.own_from`` on,
    are the objective's.
    """

    #: An embedder that it can be combined with.
    embedder: ClassVar[str]

    @property
    @abstractmethod
    def figures(self) -> tuple[LoggedFigure, ...]:
        """The results of :meth:`losses`, in order."""

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """Build the module that maps the hidden state [N, D] which predicts such a token to the
        vector [N, D] that stands for it."""

    @abstractmethod
    def losses(self, module: nn.Module, seen: FirstPass) -> tuple[Tensor, ...]:
        """Compute a loss [] for each figure. Without positions it is 0, with a gradient for every
        weight."""

    def rates(self) -> Mapping[str, float]:
        """Return learning rates that differ from the usual one, by the first letters of the names
        of weights."""
        return {}


def weighted(figures: Sequence[LoggedFigure], losses: Sequence[Loss]) -> Loss:
    """Add up the losses that are trained."""
    pairs = zip(figures, losses, strict=True)
    first, *more = (one.weight * loss for one, loss in pairs if one.weight is not None)
    return reduce(add, more, first)


OBJECTIVES = Registry[Objective]("numtok.models.objectives", "objective", Objective)


def built_term(spec: str | None) -> NumberTerm | None:
    """Build the number loss of a spec, such as ``was:0.3``."""
    return None if spec is None else NUMBER_TERMS.build(spec)
