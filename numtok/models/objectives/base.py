"""The contract of an objective: the input of a model for a batch of rows, and its targets.

``numtok.models.training_batch`` has the usual ways to make such a :class:`TrainingBatch`, and
defines which hidden state predicts which token. An objective with additional losses also derives
from :class:`OwnLosses`.
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
        """True if a hidden state depends only on earlier tokens."""

    @abstractmethod
    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        """Return a training batch; all randomness comes from ``random``."""

    @abstractmethod
    def requires(self) -> str | None:
        """The column that every row needs: "targets", "answer_start", "label" or None."""

    @property
    def number_term(self) -> NumberTerm | None:
        """The loss on the values of tokens, added to their cross-entropy or instead of it."""
        return None


class LoggedFigure(NamedTuple):
    """An additional loss of an objective, or a mean that is only logged.

    name
        Name of the column in ``metrics.jsonl``.
    weight
        Weight in the training loss; None if it is only logged.
    per_token
        True for a mean over the predicted tokens, False for one over the objective's positions.
    """

    name: str
    weight: float | None
    per_token: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstPass:
    """The inputs of an objective's additional losses.

    embedded, hidden
        [B, L, D]: the embeddings of a batch, and its hidden states.
    places
        [P]: flat indices into [B, L] of the objective's positions.
    trunk
        Maps other embeddings [B, L, D] of the same rows to their hidden states.
    token_loss
        Maps hidden states [B, L, D] to the cross-entropy [] of the tokens to predict.
    """

    embedded: Tensor
    hidden: Tensor
    places: Tensor
    trunk: Callable[[Tensor], Tensor]
    token_loss: Callable[[Tensor], Tensor]


class OwnLosses(ABC):
    """An objective that trains a replacement for embeddings of numbers not yet generated.

    Its embedder computes the vector of such a token from the tokens after it
    (``NumberModule.ahead``). The positions of these tokens, from ``TrainingBatch.own_from`` on,
    are the objective's positions.
    """

    #: Name of an embedder that it can be combined with.
    embedder: ClassVar[str]

    @property
    @abstractmethod
    def figures(self) -> tuple[LoggedFigure, ...]:
        """Description of each result of :meth:`losses`, in order."""

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """Return the module that predicts the replacement of such a token's vector [N, D] from the
        hidden state [N, D] before it."""

    @abstractmethod
    def losses(self, module: nn.Module, first_pass: FirstPass) -> tuple[Tensor, ...]:
        """Return one loss [] per figure; without positions 0, with a gradient for every weight."""

    def rates(self) -> Mapping[str, float]:
        """Return learning rates that differ from the default, by the prefix of the names of
        weights."""
        return {}


def weighted(figures: Sequence[LoggedFigure], losses: Sequence[Loss]) -> Loss:
    """Return the weighted sum of the losses that are trained."""
    pairs = zip(figures, losses, strict=True)
    first, *more = (figure.weight * loss for figure, loss in pairs if figure.weight is not None)
    return reduce(add, more, first)


OBJECTIVES = Registry[Objective]("numtok.models.objectives", "objective", Objective)


def built_term(spec: str | None) -> NumberTerm | None:
    """Return the number loss of a spec, such as ``was:0.3``."""
    return None if spec is None else NUMBER_TERMS.build(spec)
