"""Token vectors, and before each number one that is made of its value."""

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.schemes.numvalue import PREFIX
from numtok.errors import UsageError
from numtok.models.embedders.base import token_table
from numtok.models.vocabulary import Vocabulary


def prefix(vocabulary: Vocabulary) -> int:
    """The token that stands before each number; UsageError where there is none."""
    if PREFIX not in vocabulary.names:
        raise UsageError(
            f"--embedder numvalue makes the vector of {PREFIX} of the number behind it, and "
            "these data have none; give --embedder lookup, or data encoded with --scheme "
            "numvalue"
        )
    return vocabulary.first + vocabulary.names.index(PREFIX)


class Encoder(nn.Module):
    """f [P, D] of tokens [B, L] and the flat indices of P prefixes."""

    def flops(self, tokens: NDArray[np.integer[Any]], prefixes: int) -> int:
        """Multiplications and additions of matrix products."""
        raise NotImplementedError


class Prefixed(nn.Module):
    """The vector of each token, but for prefixes: there stands f(x), of the number x that follows.

    The row of ``table`` that belongs to the prefix is not looked at here; a token head that is tied
    to it speaks by it. Behind a prefix the digits are read from the tokens, so what is masked or
    not yet written is no part of the number; f is not asked to guess.

    ``encoder`` gives f.
    """

    def __init__(self, vocabulary: Vocabulary, width: int, encoder: "Encoder") -> None:
        super().__init__()
        self.prefix = prefix(vocabulary)
        self.table = token_table(vocabulary.size, width)
        self.encoder = encoder

    def forward(self, tokens_BL: Tensor, values_BL: Tensor) -> Tensor:
        made_BLD = cast(Tensor, self.table(tokens_BL))
        at_P = (tokens_BL.flatten() == self.prefix).nonzero()[:, 0]
        with torch.autocast(tokens_BL.device.type, enabled=False):
            value_PD = self.encoder(tokens_BL, at_P)
        return made_BLD.flatten(0, 1).index_copy(0, at_P, value_PD).view_as(made_BLD)

    def flops(self, tokens: NDArray[np.integer[Any]]) -> int:
        """Of a forward pass over some tokens."""
        return self.encoder.flops(tokens, int((tokens == self.prefix).sum()))
