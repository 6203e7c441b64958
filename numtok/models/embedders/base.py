"""The contract of an embedder: it maps tokens and their values to vectors.

An embedder is a frozen dataclass of settings that builds a module. The module's
``forward(tokens_BL, values_BL)`` returns [B, L, D]; ``values`` is 1 where no number is visible.

Most embedders need nothing else. :class:`FeatureEmbedder` is a shortcut for embedders that compute
fixed features of a number. Embedders that read numbers on the host build a :class:`NumberModule`.
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
    """A way to embed a number. Subclasses are final frozen dataclasses; their fields are
    settings."""

    revision: ClassVar[int]
    source: ClassVar[str]

    @abstractmethod
    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        """Return the module; its ``table.weight`` [vocabulary, width] holds the token vectors.

        Raises UsageError for a vocabulary that lacks what it embeds.
        """

    def rescale(self, module: nn.Module, times: float) -> None:  # noqa: B027
        """Multiply the length of a new module's number parts by ``times``.

        They then match token vectors that are ``times`` as long as ``INIT`` makes them, such as
        those of a pretrained trunk. Does nothing by default, which is right for parts that do not
        depend on ``INIT``.
        """

    def unsuited(self, trunk: TokenTrunk, objective: Objective) -> str | None:
        """Return why it cannot be combined with these, and what to do; None if it can."""
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
        # The vector added for the number 1 starts about as long as a token's vector.
        length = math.sqrt(np.square(self.features(np.ones(1)), dtype=np.float64).sum())
        nn.init.normal_(module.linear.weight, std=INIT / length)
        return module


class NumberModule(nn.Module, ABC):
    """Vectors of tokens, replaced at numbers.

    The host prepares the inputs of the replacements (:meth:`inputs`). It has float64, and it knows
    the tokens without waiting for a device, so shapes may depend on them.

    ahead
        The token of numbers, if its vector depends on the tokens after it, which a model has not
        written yet; None if each vector depends only on its own position.
    sees_all
        True if all digits of numbers of any length affect the vector.
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
        """``numbers`` are the ids of the tokens that stand for numbers."""
        super().__init__()
        self.table = token_table(vocabulary.size, width)
        self._is_number = np.isin(np.arange(vocabulary.size), numbers)
        self.ahead = int(numbers[0]) if ahead else None
        self.sees_all = sees_all

    @abstractmethod
    def inputs(
        self, tokens_BL: NDArray[np.int64], values_BL: Channel, at_P: NDArray[np.int64]
    ) -> tuple[NDArray[Any], ...]:
        """Return the inputs of :meth:`embedded` for numbers at flat indices into [B, L]."""

    @abstractmethod
    def embedded(self, tokens_PD: Tensor, *inputs: Tensor) -> Tensor:
        """Return [P, D]: the vectors of numbers, from the vectors of their tokens and their
        inputs."""

    @final
    def are_numbers(self, tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool, same shape: True for tokens that stand for numbers."""
        return self._is_number[tokens]

    @final
    def of_host(self, tokens: NDArray[np.int64], values: Channel) -> tuple[NDArray[Any], ...]:
        """Return the arguments of ``forward`` after tokens and values [B, L]: the flat positions of
        numbers, int64[P], and the inputs of each."""
        at_P = np.flatnonzero(self.are_numbers(tokens))
        return at_P, *self.inputs(tokens, values, at_P)

    @final  # type: ignore[misc]
    def forward(self, tokens_BL: Tensor, values_BL: Tensor, *of_host: Tensor) -> Tensor:
        """[B, L, D]. Without the result of :meth:`of_host` this waits for the device and uses its
        float32 values."""
        if not of_host:
            arrays = self.of_host(tokens_BL.cpu().numpy(), values_BL.cpu().numpy())
            of_host = tuple(torch.from_numpy(array).to(tokens_BL.device) for array in arrays)
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
        """``mapped``: whether to create the linear map, whose weights the embedder initializes.

        Raises UsageError for data without whole numbers as values of tokens.
        """
        if vocabulary.splits or not len(vocabulary.numbers):
            name = name_of(embedder)
            raise UsageError(
                f"--embedder {name} needs tokens with a whole number as their value; this data has "
                f"none. Encode with --scheme {name}, or use --embedder lookup"
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
    """One vector per token; subclasses add the contribution of the value."""

    def __init__(self, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        self.table = token_table(vocabulary.size, width)

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        """[B, L, D]."""
        return cast(Tensor, self.table(tokens_BL))


EMBEDDERS = Registry[Embedder]("numtok.models.embedders", "embedder", Embedder)


def token_table(vocabulary: int, width: int) -> nn.Embedding:
    """Return a new table with one vector per token."""
    table = nn.Embedding(vocabulary, width)
    nn.init.normal_(table.weight, std=INIT)
    return table


@torch.no_grad()
def rescale_linear(module: nn.Module, times: float) -> None:
    """Multiply the output of a module's ``linear`` by ``times``; do nothing if it has none."""
    if isinstance(linear := getattr(module, "linear", None), nn.Linear):
        linear.weight.mul_(times)
