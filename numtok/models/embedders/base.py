"""The contract of an embedder: tokens and the values beside them to vectors.

An embedder is a frozen dataclass of settings that builds a module. Its
``forward(tokens_BL, values_BL)`` gives [B, L, D]; ``values`` is 1 where no
number is seen.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from numtok.encoding.schemes.base import Channel
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Registry

INIT = 0.02  # standard deviation of initial embeddings, as in GPT-2


class Embedder(ABC):
    """How a number goes in. Subclasses are final frozen dataclasses; their fields are settings."""

    revision: ClassVar[int]
    source: ClassVar[str]
    #: The magnitude of a vector says something, so it must not be all that layer norm sees.
    needs_added_positions: ClassVar[bool] = False
    #: Whether it sees all digits of a number, as it is in the text: it goes with data of which the
    #: value beside a token is just that, not normalised.
    exact: ClassVar[bool] = False
    #: The learning rate that it bears, whatever that of the preset, and the share of the steps in
    #: which the rate rises to it, where nobody says others.
    learning_rate: ClassVar[float] = 1.0
    warmup: ClassVar[float] = 0.05
    #: The objective with which it goes, where it goes with few that write.
    objective: ClassVar[str] = "ar"

    @abstractmethod
    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        """The module; its ``table.weight`` [vocabulary, width] holds the token vectors.

        Raises UsageError for a vocabulary without what it embeds.
        """

    @property
    def sees_all(self) -> bool:
        """Whether numbers are seen as a whole that are beyond the scheme's sight
        (``LimitedScheme``)."""
        return True

    def rescale(self, module: nn.Module, times: float) -> None:  # noqa: B027
        """Begin with number parts that suit token vectors so many ``times`` as long as ``INIT``
        makes them: those of a pretrained trunk, whose text is then embedded as it was there.

        Nothing unless it says otherwise: what is as long whatever ``INIT`` is stays so.
        """

    def tells_ahead(self, vocabulary: Vocabulary) -> int | None:
        """The token whose vector is made of tokens behind it, which a model that writes it has not
        written yet; None where there is none."""
        return None

    def of_host(
        self, module: nn.Module, tokens: NDArray[np.int64], values: Channel
    ) -> tuple[NDArray[Any], ...]:
        """What its module is given behind tokens and values, [B, L] each, as tensors: what is a
        matter of shapes, for which a device would have to be waited for, and what is made of all
        digits of a value, which is float32 on a device (``exact``). Given the two alone the module
        comes to the same, but for these digits. Nothing unless it says otherwise."""
        return ()


EMBEDDERS: Registry[Embedder] = Registry("numtok.models.embedders", "embedder")


def token_table(vocabulary: int, width: int) -> nn.Embedding:
    """A vector for each token."""
    table = nn.Embedding(vocabulary, width)
    nn.init.normal_(table.weight, std=INIT)
    return table


@torch.no_grad()
def rescale_linear(module: nn.Module, times: float) -> None:
    """``Embedder.rescale`` of a module whose ``linear``, where it has one, gives what is added."""
    if isinstance(linear := getattr(module, "linear", None), nn.Linear):
        linear.weight.mul_(times)
