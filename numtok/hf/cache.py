"""What a model of transformers has read of the rows that ``generate`` goes on with."""

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
    """Of a model that writes by its tokens alone (``transformers_folder.writes``), B rows.

    trunk
        Keys and values.
    before
        [B, T], the tokens read, behind pads where a row is shorter: places of digits are told by
        them.
    """

    model: Model
    trunk: TrunkCache
    before: NDArray[np.int64]

    @classmethod
    def of(cls, model: Model, tokens_BL: Tensor, length_B: Tensor) -> "tuple[RowsRead, Tensor]":
        """The beginnings of rows, pads behind them; and [B, 1, D], the state of each last token."""
        trunk = model.cached_trunk.cache(len(tokens_BL), model.settings.context)
        read = cls(model, trunk, np.zeros((len(tokens_BL), 0), np.int64))
        states = read._read(tokens_BL, length_B[:, None] - 1)
        trunk.rewind(length_B, tokens_BL.shape[1])
        read.before = flush_right(read.before, length_B.cpu().numpy())
        return read, states

    def extend(self, tokens_B1: Tensor) -> Tensor:
        """[B, 1, D]: the state of a token more of each row.

        Raises DataError where the model reads no longer rows.
        """
        if self.trunk.longest >= self.model.settings.context:
            raise too_long(self.trunk.longest + 1, self.model)
        return self._read(tokens_B1)

    def _read(self, tokens_BL: Tensor, asked_BQ: Tensor | None = None) -> Tensor:
        """As ``Model.extend``, of tokens that have no value beside them."""
        tokens = tokens_BL.cpu().numpy()
        ones = torch.ones(tokens_BL.shape, device=tokens_BL.device)
        known = self.model.of_host(tokens, np.ones(tokens.shape), self.before)
        self.before = np.concatenate([self.before, tokens], axis=1)
        return self.model.extend(tokens_BL, ones, self.trunk, asked_BQ, known)

    def reorder_cache(self, rows: Tensor) -> None:
        """Go on with these rows (int64[B]), of which one may come twice: a search for beams."""
        self.trunk = self.trunk.take(rows, self.trunk.tokens)
        self.before = self.before[rows.cpu().numpy()]


def too_long(tokens: int, model: Model) -> DataError:
    """The error of a row that the model does not read."""
    return DataError(
        f"a row has {tokens:,} tokens, the model reads {model.settings.context:,}; cut it, or give "
        "generate a max_length"
    )
