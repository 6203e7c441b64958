"""Key-value cache that transformers' ``generate`` passes from step to step."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.errors import DataError
from numtok.models.batches import flush_right
from numtok.models.model import Model
from numtok.models.trunks.base import TrunkCache


@dataclass
class RowsRead:
    """Cache of B rows for a model that writes tokens only (``transformers_folder.writes``).

    trunk
        Keys and values.
    before
        [B, T], the tokens read so far, padded on the left. Digit positions depend on them.
    """

    model: Model
    trunk: TrunkCache
    before: NDArray[np.int64]

    @classmethod
    def of(cls, model: Model, tokens_BL: Tensor, length_B: Tensor) -> "tuple[RowsRead, Tensor]":
        """Read prompts [B, L] padded on the right; also return the last states [B, 1, D]."""
        trunk = model.cached_trunk.cache(len(tokens_BL), model.settings.context)
        read = cls(model, trunk, np.zeros((len(tokens_BL), 0), np.int64))
        states = read._read(tokens_BL, length_B[:, None] - 1)
        trunk.rewind(length_B, tokens_BL.shape[1])
        read.before = flush_right(read.before, length_B.cpu().numpy())
        return read, states

    def extend(self, tokens_B1: Tensor) -> Tensor:
        """Read one more token per row and return its state [B, 1, D].

        Raises DataError if rows exceed the model's context.
        """
        if self.trunk.longest >= self.model.settings.context:
            raise too_long(self.trunk.longest + 1, self.model)
        return self._read(tokens_B1)

    def _read(self, tokens_BL: Tensor, queries_BQ: Tensor | None = None) -> Tensor:
        """Call ``Model.extend`` for tokens without values."""
        tokens = tokens_BL.cpu().numpy()
        ones = torch.ones(tokens_BL.shape, device=tokens_BL.device)
        inputs = self.model.of_host(tokens, np.ones(tokens.shape), self.before)
        self.before = np.concatenate([self.before, tokens], axis=1)
        return self.model.extend(tokens_BL, ones, self.trunk, queries_BQ, inputs)

    def reorder_cache(self, rows: Tensor) -> None:
        """Keep these rows, int64[B], possibly repeated; used by beam search."""
        self.trunk = self.trunk.take(rows, self.trunk.tokens)
        self.before = self.before[rows.cpu().numpy()]


def too_long(tokens: int, model: Model) -> DataError:
    """Return the error for a row that exceeds the model's context."""
    return DataError(
        f"a row has {tokens:,} tokens, but the model's context is {model.settings.context:,}. "
        "Shorten the row, or pass max_length to generate"
    )
