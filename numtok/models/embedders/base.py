"""Base classes for embedders, which turn tokens and the values of numbers into vectors.

An embedder is a frozen dataclass of settings that builds a module. The module's
``forward(tokens_BL, values_BL)`` returns vectors [B, L, D]. The value is 1 at positions without a
visible number.

:class:`FeatureEmbedder` is a shortcut for embedders that compute fixed features of a number.
Embedders that need numbers in float64 or tokens on the host (CPU) build a :class:`NumberModule`.
All others derive directly from :class:`Embedder`.

Shapes: B rows, L tokens per row, D width, P numbers in a batch, F features.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.schemes.base import SCHEMES, Channel
from numtok.errors import UsageError
from numtok.models.objectives.base import Objective
from numtok.models.trunks.base import TokenTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Registry, name_of

INIT = 0.02  # standard deviation of initial embeddings, as in GPT-2


class Embedder(ABC):
    """Base class for embedders, which turn tokens and the values of numbers into vectors.

    Subclasses are final frozen dataclasses; their fields are the settings of the embedder.
    """

    revision: ClassVar[int]
    source: ClassVar[str]

    @abstractmethod
    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        """Return the module that computes the vectors; its ``table.weight`` [vocabulary, width]
        contains the token vectors.

        Raises UsageError if the vocabulary lacks tokens that the embedder needs.
        """

    def rescale(self, module: nn.Module, times: float) -> None:  # noqa: B027
        """Multiply the weights that embed numbers in a newly built ``module`` by ``times``.

        The vectors of numbers are then on the same scale as token vectors that are ``times`` as
        long as newly initialized ones (``INIT``), such as those of a pretrained trunk. The default
        implementation does nothing, which is right for weights that do not depend on ``INIT``.
        """

    def unsuited(self, trunk: TokenTrunk, objective: Objective) -> str | None:
        """Return a message that says why the embedder cannot be combined with the given trunk and
        objective, and what to do about it; None if it can."""
        return None


class FeatureEmbedder(Embedder):
    """Base class for embedders that compute fixed features of a number, map them linearly and add
    the result to the vector of its token.

    Features are computed in float64.

    exact
        True if the features depend on every digit of a number, so the data must not be normalized.
    """

    exact: ClassVar[bool] = True

    @abstractmethod
    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the features float32[P, F] of numbers float64[P]. The numbers may include NaN and
        infinities."""

    def rescale(self, module: nn.Module, times: float) -> None:
        rescale_linear(module, times)

    def build(self, vocabulary: Vocabulary, width: int) -> nn.Module:
        module = FeatureModule(self, vocabulary, width)
        # The vector added for the number 1 starts about as long as a token's vector.
        length = math.sqrt(np.square(self.features(np.ones(1)), dtype=np.float64).sum())
        nn.init.normal_(module.linear.weight, std=INIT / length)
        return module


class NumberModule(nn.Module, ABC):
    """Base class for modules that replace the vectors of number tokens with vectors computed from
    the numbers.

    The inputs to that computation are prepared on the host (:meth:`inputs`), in float64. The tokens
    are already in host memory, so array shapes may depend on them without device synchronization.

    ahead
        ID of the number token if its vector depends on the tokens after it, which have not been
        generated yet when a model writes text; None if each vector depends only on its own
        position.
    sees_all
        True if every digit affects the vector, regardless of the number's length.
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
        """``numbers`` are the IDs of the tokens that stand for numbers."""
        super().__init__()
        self.table = token_table(vocabulary.size, width)
        self._is_number = np.isin(np.arange(vocabulary.size), numbers)
        self.ahead = int(numbers[0]) if ahead else None
        self.sees_all = sees_all

    @abstractmethod
    def inputs(
        self, tokens_BL: NDArray[np.int64], values_BL: Channel, at_P: NDArray[np.int64]
    ) -> tuple[NDArray[Any], ...]:
        """Return the arrays that :meth:`embedded` needs for the numbers at the flat indices
        ``at_P`` into [B, L]."""

    @abstractmethod
    def embedded(self, tokens_PD: Tensor, *inputs: Tensor) -> Tensor:
        """Return the vectors [P, D] of numbers, given the vectors [P, D] of their tokens and the
        arrays from :meth:`inputs`."""

    @final
    def are_numbers(self, tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a bool array of the same shape as ``tokens``, True for each token that stands for
        a number."""
        return self._is_number[tokens]

    @final
    def of_host(self, tokens: NDArray[np.int64], values: Channel) -> tuple[NDArray[Any], ...]:
        """Return the additional arguments of :meth:`forward` for tokens and values [B, L]: the flat
        positions of the numbers (int64[P]), then the arrays from :meth:`inputs`."""
        at_P = np.flatnonzero(self.are_numbers(tokens))
        return at_P, *self.inputs(tokens, values, at_P)

    @final  # type: ignore[misc]
    def forward(self, tokens_BL: Tensor, values_BL: Tensor, *of_host: Tensor) -> Tensor:
        """Return the vectors [B, L, D] of tokens and values.

        Pass the result of :meth:`of_host` as ``of_host``. Otherwise it is computed from the float32
        values on the device, which blocks until the device is ready.
        """
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
    """Module that a :class:`FeatureEmbedder` builds to embed numbers. Each number must be one token
    that has a value."""

    linear: nn.Linear

    def __init__(
        self, embedder: FeatureEmbedder, vocabulary: Vocabulary, width: int, *, mapped: bool = True
    ) -> None:
        """If ``mapped``, create the linear map, whose weights the embedder initializes.

        Raises UsageError if no token has a complete number as its value.
        """
        if vocabulary.splits or not len(vocabulary.numbers):
            name = name_of(embedder)
            scheme = name if name in SCHEMES else "xval"
            raise UsageError(
                f"--embedder {name} needs tokens with a whole number as their value; this data has "
                f"none. Encode with --scheme {scheme}, or use --embedder lookup"
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
    """Module with one vector per token. Subclasses add the contribution of a number's value."""

    def __init__(self, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        self.table = token_table(vocabulary.size, width)

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        """Return the vectors [B, L, D] of the tokens; the values are ignored."""
        return cast(Tensor, self.table(tokens_BL))


EMBEDDERS = Registry[Embedder]("numtok.models.embedders", "embedder", Embedder)


def token_table(vocabulary: int, width: int) -> nn.Embedding:
    """Return a new embedding table with one randomly initialized vector per token."""
    table = nn.Embedding(vocabulary, width)
    nn.init.normal_(table.weight, std=INIT)
    return table


@torch.no_grad()
def rescale_linear(module: nn.Module, times: float) -> None:
    """Multiply the weights of a module's ``linear`` layer by ``times``; do nothing if it has no
    such layer."""
    if isinstance(linear := getattr(module, "linear", None), nn.Linear):
        linear.weight.mul_(times)
