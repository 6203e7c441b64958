"""The contract of an embedder: tokens and the values beside them to vectors.

An embedder is a frozen dataclass of settings that builds a module. The module's
``forward(tokens_BL, values_BL)`` returns [B, L, D]; ``values`` is 1 where no number is visible.

Most embedders need nothing else. :class:`FeatureEmbedder` is the short way to one that computes
fixed features of a number. One that reads numbers on the host builds a :class:`NumberModule`.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.schemes.base import Channel
from numtok.errors import UsageError
from numtok.models.objectives.base import Objective
from numtok.models.trunks.base import TokenTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Registry, name_of

INIT = 0.02  # standard deviation of initial embeddings, as in GPT-2


class Embedder(ABC):
    """How a number goes in. Subclasses are final frozen dataclasses; their fields are settings."""

    revision: ClassVar[int]
    source: ClassVar[str]

    @abstractmethod
    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        """Return the module; its ``table.weight`` [vocabulary, width] holds the token vectors.

        Raises UsageError for a vocabulary without what it embeds.
        """

    def rescale(self, module: nn.Module, times: float) -> None:  # noqa: B027
        """Make the number parts of a new module ``times`` as long.

        They then suit token vectors that are ``times`` as long as ``INIT`` makes them, those of a
        pretrained trunk. Does nothing by default: right for parts that do not depend on ``INIT``.
        """

    def unsuited(self, trunk: TokenTrunk, objective: Objective) -> str | None:
        """Say why it cannot be combined with these, and what to do; None if it can."""
        return None


class FeatureEmbedder(Embedder):
    """Fixed features of a number, mapped linearly and added to the vector of its token.

    It sees all digits of float64, so the data must not be normalized.
    """

    @abstractmethod
    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return float32[P, F]: the features of numbers float64[P], NaN and infinities included."""

    def rescale(self, module: nn.Module, times: float) -> None:
        rescale_linear(module, times)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        module = FeatureModule(self, vocabulary, width)
        # The vector added for the number 1 begins about as long as that of a token.
        length = math.sqrt(np.square(self.features(np.ones(1)), dtype=np.float64).sum())
        nn.init.normal_(module.linear.weight, std=INIT / length)
        return module


class NumberModule(nn.Module, ABC):
    """The vector of each token, but another one where a number stands.

    The host prepares what that vector needs (:meth:`inputs`). It has float64, and it knows tokens
    without waiting for a device, so it may choose shapes by them.

    ahead
        The token of numbers, if its vector depends on the tokens after it, which a model has not
        written yet; None if each vector depends only on its own position.
    sees_all
        True if every digit of numbers of any length reaches the vector.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        width: int,
        numbers: NDArray[np.int64],
        *,
        ahead: bool = False,
        sees_all: bool = True,
    ) -> None:
        """``numbers`` are the ids of the tokens at which numbers stand."""
        super().__init__()
        self.table = token_table(vocabulary.size, width)
        self._is_number = np.isin(np.arange(vocabulary.size), numbers)
        self.ahead = int(numbers[0]) if ahead else None
        self.sees_all = sees_all

    @abstractmethod
    def inputs(
        self, tokens_BL: NDArray[np.int64], values_BL: Channel, at_P: NDArray[np.int64]
    ) -> tuple[NDArray[Any], ...]:
        """Return what :meth:`embedded` needs of numbers at flat indices into [B, L]."""

    @abstractmethod
    def embedded(self, tokens_PD: Tensor, *inputs: Tensor) -> Tensor:
        """Return [P, D]: the vectors of numbers, from those of their tokens and their inputs."""

    @final
    def are_numbers(self, tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool of any shape: at which tokens numbers stand."""
        return self._is_number[tokens]

    @final
    def of_host(self, tokens: NDArray[np.int64], values: Channel) -> tuple[NDArray[Any], ...]:
        """Return what ``forward`` takes behind tokens and values [B, L]: where numbers stand,
        int64[P], and the inputs of each."""
        at_P = np.flatnonzero(self.are_numbers(tokens))
        return at_P, *self.inputs(tokens, values, at_P)

    @final  # type: ignore[misc]
    def forward(self, tokens_BL: Tensor, values_BL: Tensor, *of_host: Tensor) -> Tensor:
        """[B, L, D]. Without the result of :meth:`of_host` this waits for the device, whose values
        are float32."""
        if not of_host:
            known = self.of_host(tokens_BL.cpu().numpy(), values_BL.cpu().numpy())
            of_host = tuple(torch.from_numpy(one).to(tokens_BL.device) for one in known)
        at_P, *inputs = of_host
        made_BLD = cast(Tensor, self.table(tokens_BL))
        flat = made_BLD.flatten(0, 1)
        with torch.autocast(tokens_BL.device.type, enabled=False):
            numbers_PD = self.embedded(flat[at_P].float(), *inputs)
        return flat.index_copy(0, at_P, numbers_PD.to(flat.dtype)).view_as(made_BLD)


class FeatureModule(NumberModule):
    """The module of a :class:`FeatureEmbedder`; each number is one token with a value."""

    linear: nn.Linear

    def __init__(
        self, embedder: FeatureEmbedder, vocabulary: Vocabulary, width: int, *, mapped: bool = True
    ) -> None:
        """``mapped``: whether there is a linear map, whose weights the embedder initializes.

        Raises UsageError for tokens that do not stand for whole numbers.
        """
        if vocabulary.splits or not len(vocabulary.numbers):
            name = name_of(embedder)
            raise UsageError(
                f"--embedder {name} is made of the whole number beside its token, and these data "
                f"have none; encode with --scheme {name}, or give --embedder lookup"
            )
        super().__init__(vocabulary, width, vocabulary.numbers)
        self.features = embedder.features
        if mapped:
            count = embedder.features(np.ones(1)).shape[1]
            self.linear = nn.Linear(count, width, bias=False)

    def inputs(
        self, tokens_BL: NDArray[np.int64], values_BL: Channel, at_P: NDArray[np.int64]
    ) -> tuple[NDArray[Any], ...]:
        return (self.features(values_BL.reshape(-1)[at_P].astype(np.float64)),)

    def embedded(self, tokens_PD: Tensor, *inputs: Tensor) -> Tensor:
        [features_PF] = inputs
        added_PD: Tensor = self.linear(features_PF)
        return tokens_PD + added_PD


class TokenVectors(nn.Module):
    """A vector for each token, whatever its value; subclasses add what the value contributes."""

    def __init__(self, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        self.table = token_table(vocabulary.size, width)

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        """[B, L, D]."""
        return cast(Tensor, self.table(tokens_BL))


EMBEDDERS = Registry[Embedder]("numtok.models.embedders", "embedder", Embedder)


def token_table(vocabulary: int, width: int) -> nn.Embedding:
    """Make the table with a vector for each token."""
    table = nn.Embedding(vocabulary, width)
    nn.init.normal_(table.weight, std=INIT)
    return table


@torch.no_grad()
def rescale_linear(module: nn.Module, times: float) -> None:
    """Make what the ``linear`` of a module adds ``times`` as long; do nothing where it has none."""
    if isinstance(linear := getattr(module, "linear", None), nn.Linear):
        linear.weight.mul_(times)
