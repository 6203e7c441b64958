"""Numbers as features of all their digits, worked out on the host, where they are float64."""

from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.schemes.base import Channel
from numtok.errors import UsageError
from numtok.models.embedders.base import Embedder, token_table
from numtok.models.vocabulary import Vocabulary


class ExactModule(nn.Module):
    """The vector of each token, and something else where a number stands; leaves say what.

    A number is seen at its one token, of the value beside that: so it must be a whole number.
    """

    def __init__(self, name: str, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        if vocabulary.splits or not len(vocabulary.numbers):
            raise UsageError(
                f"--embedder {name} is made of the whole number beside its token, and these data "
                f"have none; encode with --scheme {name}, or give --embedder lookup"
            )
        self.table = token_table(vocabulary.size, width)
        self._is_number = np.isin(np.arange(vocabulary.size), vocabulary.numbers)

    def features(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """float32[P, F] of numbers float64[P]."""
        raise NotImplementedError

    def embedded(self, tokens_PD: Tensor, features_PF: Tensor) -> Tensor:
        """[P, D]: the vectors of numbers, of those of their tokens and their features."""
        raise NotImplementedError

    def are_numbers(self, tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool of any shape: which tokens are numbers with a value beside them."""
        return self._is_number[tokens]

    def of_host(self, tokens: NDArray[np.int64], values: Channel) -> tuple[NDArray[Any], ...]:
        """Where numbers are among tokens [B, L], int64[P], and the features of each, [P, F]."""
        at_P = np.flatnonzero(self.are_numbers(tokens))
        return at_P, self.features(values.reshape(-1)[at_P].astype(np.float64))

    def forward(self, tokens_BL: Tensor, values_BL: Tensor, *of_host: Tensor) -> Tensor:
        """[B, L, D]. Without what :meth:`of_host` says the device is asked for its values, which
        are float32."""
        if not of_host:
            known = self.of_host(tokens_BL.cpu().numpy(), values_BL.cpu().numpy())
            of_host = tuple(torch.from_numpy(one).to(tokens_BL.device) for one in known)
        at_P, features_PF = of_host
        made_BLD = cast(Tensor, self.table(tokens_BL))
        flat = made_BLD.flatten(0, 1)
        with torch.autocast(tokens_BL.device.type, enabled=False):
            numbers_PD = self.embedded(flat[at_P].float(), features_PF)
        return flat.index_copy(0, at_P, numbers_PD.to(flat.dtype)).view_as(made_BLD)


class ExactEmbedder(Embedder):
    """An embedder that builds an :class:`ExactModule`."""

    exact: ClassVar[bool] = True

    def of_host(
        self, module: nn.Module, tokens: NDArray[np.int64], values: Channel
    ) -> tuple[NDArray[Any], ...]:
        return cast(ExactModule, module).of_host(tokens, values)
