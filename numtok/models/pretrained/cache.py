"""A cache of keys and values for rows of different lengths, with the interface that transformers
expects."""

from typing import Any

from torch import Tensor
from transformers import Cache as TransformersCache

from numtok.models.attention import Cache


class FilledCache(TransformersCache):
    """A cache for the transformers library that stores keys and values in a numtok :class:`Cache`.

    The model receives masks and positions separately. This class only stores keys and values, and
    returns the ones that new tokens may attend to.
    """

    def __init__(self, store: Cache) -> None:
        super().__init__(layers=[])
        self._store = store

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Store keys and values [B, H, L, E] of the next L tokens of each row. Return all keys and
        values that these tokens may attend to."""
        return self._store.put(layer_idx, key_states, value_states)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of tokens read so far in the longest row."""
        return self._store.longest
