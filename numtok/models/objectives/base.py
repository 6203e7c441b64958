"""The interface of objectives, which determine a model's input for a batch of rows and its
prediction targets.

An objective returns a :class:`TrainingBatch`. ``numtok.models.training_batch`` contains functions
that build one, and defines which hidden state predicts which token. An objective with additional
losses also derives from :class:`OwnLosses`.
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
    """Base class for training objectives, which determine a model's input for a row and its
    prediction targets.

    Subclasses are final frozen dataclasses; their fields are settings.
    """

    revision: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def causal(self) -> bool:
        """True if each hidden state depends only on the input tokens up to its own position."""

    @abstractmethod
    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        """Return a training batch of the given rows. All randomness comes from ``random``."""

    @abstractmethod
    def requires(self) -> str | None:
        """Return the name of the column that every row must have ("targets", "answer_start" or
        "label"); None if no column is required."""

    @property
    def number_term(self) -> NumberTerm | None:
        """The number loss that is added to the cross-entropy of tokens, or replaces it; None if
        the objective has no number loss."""
        return None


class LoggedFigure(NamedTuple):
    """Description of an additional loss of an objective, or of a mean that is only logged.

    name
        Name of the column in ``metrics.jsonl``.
    weight
        Weight in the training loss; None if the value is only logged.
    per_token
        True for a mean over the predicted tokens, False for a mean over the positions of the
        additional losses (:class:`FirstPass`).
    """

    name: str
    weight: float | None
    per_token: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstPass:
    """Results of a model's forward pass, from which an objective computes its additional losses.

    embedded, hidden
        [B, L, D]: the embeddings of a batch, and its hidden states.
    places
        [P]: positions of the additional losses, as flat indices into [B, L].
    trunk
        Function that maps different embeddings [B, L, D] of the same rows to hidden states.
    token_loss
        Function that maps hidden states [B, L, D] to the cross-entropy [] of the tokens to predict.
    """

    embedded: Tensor
    hidden: Tensor
    places: Tensor
    trunk: Callable[[Tensor], Tensor]
    token_loss: Callable[[Tensor], Tensor]


class OwnLosses(ABC):
    """Base class for objectives with additional losses, which train a replacement for certain
    embeddings.

    Some embedders compute the vector of a number's token from the tokens after it
    (``NumberModule.ahead``). When the model generates this token, the tokens after it do not exist
    yet, so its embedding is replaced with a predicted vector. The additional losses are computed at
    the positions of such tokens, starting at ``TrainingBatch.own_from``.
    """

    #: Name of an embedder that the objective can be combined with.
    embedder: ClassVar[str]

    @property
    @abstractmethod
    def figures(self) -> tuple[LoggedFigure, ...]:
        """Descriptions of the losses that :meth:`losses` returns, in the same order."""

    @abstractmethod
    def build(self, width: int) -> nn.Module:
        """Return a module that predicts replacement vectors [N, D] of number tokens from the hidden
        states [N, D] before these tokens."""

    @abstractmethod
    def losses(self, module: nn.Module, first_pass: FirstPass) -> tuple[Tensor, ...]:
        """Return one loss [] per item of ``figures``.

        If ``first_pass.places`` is empty, each loss is 0, with a gradient for every weight.
        """

    def rates(self) -> Mapping[str, float]:
        """Return learning rates that differ from the default, keyed by a prefix of weight names."""
        return {}


def weighted(figures: Sequence[LoggedFigure], losses: Sequence[Loss]) -> Loss:
    """Return the weighted sum of the given losses, excluding values that are only logged."""
    pairs = zip(figures, losses, strict=True)
    first, *more = (figure.weight * loss for figure, loss in pairs if figure.weight is not None)
    return reduce(add, more, first)


OBJECTIVES = Registry[Objective]("numtok.models.objectives", "objective", Objective)


def built_term(spec: str | None) -> NumberTerm | None:
    """Build a number loss from a spec such as ``was:0.3``. Return None if the spec is None."""
    return None if spec is None else NUMBER_TERMS.build(spec)
