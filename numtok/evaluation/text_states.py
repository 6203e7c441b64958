"""Hidden states of a frozen pretrained model for texts, computed in batches of similar length."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Ints
from numtok.errors import DataError
from numtok.evaluation.devices import ONE, BatchSizer, Note
from numtok.models.pretrained.frozen import FrozenModel


class TextStates(NamedTuple):
    """Pooled hidden states of ``n`` texts.

    states [n, width]
        float32 values.
    cut
        Number of texts that were longer than the model's context.
    """

    states: NDArray[np.float32]
    cut: int


class _TextReader:
    """Computes the states of texts, given by their indices, for :meth:`Devices.batches`."""

    def __init__(self, model: FrozenModel, texts: Sequence[str], rows: int) -> None:
        self._model = model
        self._tokens, self.cut = model.tokens(texts)
        self.lengths: Ints = np.array([len(tokens) for tokens in self._tokens], np.int64)
        self.room = BatchSizer.of(model.module, rows)

    def answers(self, chosen: Ints) -> NDArray[np.float32]:
        states: NDArray[np.float32] = self._model.pooled(
            [self._tokens[index] for index in chosen.tolist()]
        ).numpy()
        return states

    def forget(self) -> None:
        """Do nothing: no memory is kept between batches."""


def text_states(model: FrozenModel, texts: Sequence[str], rows: int, note: Note) -> TextStates:
    """Return the pooled hidden states of texts.

    rows
        Maximum number of texts per batch; ``note`` reports smaller batches if memory runs out.

    Raises DataError if a state is not finite, and TrainingFailed if one text does not fit in
    memory.
    """
    reader = _TextReader(model, texts, rows)
    states = np.empty((len(texts), model.width), np.float32)
    for chosen, values in ONE.batches(reader, note):
        states[chosen] = values
    if not np.isfinite(states).all():
        row = int(np.flatnonzero(~np.isfinite(states).all(axis=1))[0])
        raise DataError(
            f"the pretrained model has hidden states that are not finite, for {texts[row][:40]!r}. "
            "Use another model"
        )
    return TextStates(states, reader.cut)
