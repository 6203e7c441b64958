"""The contract of an objective: what a model sees of a batch of rows, and must predict.

``numtok.models.training_batch`` has the usual ways to make such a :class:`TrainingBatch`, and says
which hidden state predicts what. An objective with further losses is an ``OwnLosses`` as well
(``numtok.models.own_losses``).
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from numtok.models.batches import Batch
from numtok.models.number_terms.base import NUMBER_TERMS, NumberTerm
from numtok.models.training_batch import TrainingBatch
from numtok.registry import Registry


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


OBJECTIVES = Registry[Objective]("numtok.models.objectives", "objective", Objective)


def built_term(spec: str | None) -> NumberTerm | None:
    """Build the number loss of a spec, such as ``was:0.3``."""
    return None if spec is None else NUMBER_TERMS.build(spec)
