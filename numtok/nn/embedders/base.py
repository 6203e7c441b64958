"""The contract of an embedder: tokens and the values beside them to vectors.

An embedder is a frozen dataclass of settings that builds a module. Its
``forward(tokens_BL, values_BL)`` gives [B, L, D]; ``values`` is 1 where no
number is seen.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import nn

from numtok.nn.vocabulary import Vocabulary
from numtok.registry import Registry

INIT = 0.02  # standard deviation of initial embeddings, as in GPT-2


class Embedder(ABC):
    """How a number goes in. Subclasses are final frozen dataclasses; their fields are settings."""

    revision: ClassVar[int]
    source: ClassVar[str]
    #: The magnitude of a vector says something, so it must not be all that layer norm sees.
    needs_added_positions: ClassVar[bool] = False

    @abstractmethod
    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        """The module; its ``table.weight`` [vocabulary, width] holds the token vectors.

        Raises UsageError for a vocabulary without what it embeds.
        """

    @property
    def sees_all(self) -> bool:
        """Whether numbers are seen as a whole that are beyond the scheme's sight
        (``Scheme.beyond_sight``)."""
        return True


EMBEDDERS: Registry[Embedder] = Registry("numtok.nn.embedders", "embedder")


def token_table(vocabulary: int, width: int) -> nn.Embedding:
    """A vector for each token."""
    table = nn.Embedding(vocabulary, width)
    nn.init.normal_(table.weight, std=INIT)
    return table
