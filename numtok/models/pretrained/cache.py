"""Keys and values of rows of different lengths, as transformers asks for them."""

from typing import Any

from torch import Tensor
from transformers import Cache as TransformersCache

from numtok.models.attention import Cache


class FilledCache(TransformersCache):
    """A cache of transformers whose keys and values lie in one of numtok's.

    Masks and positions of what is read are given to the model beside it, so it is asked for
    nothing but to take keys and values, and to give back those that may be looked at.
    """

    def __init__(self, store: Cache) -> None:
        super().__init__(layers=[])
        self._store = store

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Those of L tokens of each row, [B, H, L, E], and with them those that they see."""
        return self._store.put(layer_idx, key_states, value_states)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """The most tokens of a row that were read."""
        return self._store.longest
