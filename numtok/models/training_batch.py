"""Training batches: the input of a model with its labels, and functions that build them.

*Hidden state j predicts token j of the row* for every objective. The input of a masked model
at this position is ``[MASK]``; the input of an autoregressive model is the row shifted by one, with
``[END]`` first. A head therefore predicts a number from the state at the number's first token. The
label of a row is predicted at its last real position.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes.base import Channel
from numtok.models.batches import PAD, Batch

MASK, END = 1, 2  # ids of schema.SPECIALS
LOSSES = ("all", "answer")  # tokens that :func:`leftward` predicts


def _nowhere() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingBatch:
    """The input of a model for ``B`` rows of ``L`` tokens, and what the model must predict."""

    tokens: NDArray[np.int64]  # [B, L]
    values: Channel  # [B, L], 1 where there is no visible number
    real: NDArray[np.bool_]  # [B, L], not padding
    where: NDArray[np.int64]  # [K] flat indices into [B, L] of predicted tokens, ascending
    #: [K] the target tokens, or the classes of rows; empty if only states are needed.
    labels: NDArray[np.int64] = field(default_factory=_nowhere)
    #: [N] the subset of ``where`` at which a value is predicted.
    number_where: NDArray[np.int64] = field(default_factory=_nowhere)
    #: [N] the values of these numbers, normalized.
    number_values: Channel = field(default_factory=lambda: np.zeros(0, np.float32))
    #: [B] the first position in each row that has additional losses of the objective
    #: (:class:`numtok.models.objectives.base.OwnLosses`); None if it has no such losses.
    own_from: NDArray[np.int64] | None = None
    #: [N] the numbers of ``number_values`` in raw units, for heads that are trained on them.
    number_raw: NDArray[np.float64] | None = None
    #: [B, 2] offsets of digit positions as fractions of ``DigitPlaces.offsets``, in [0, 1), drawn
    #: for the whole batch and for each row; None for no offsets.
    moved_places: NDArray[np.float64] | None = None
    #: ``NumberTermModule.scale`` of all labels in a step; None to compute it from these labels.
    number_scale: float | None = None

    @cached_property
    def asked(self) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[np.int64]]:
        """The positions int64[B, Q] in each row at which something is predicted, followed by
        ``where`` and ``number_where`` as flat indices into these positions.

        Rows with fewer than Q such positions are padded with position 0. If Q is more than half of
        L, selecting states would cost more than computing all of them. In that case, the first item
        is None, and the others are flat indices into [B, L].
        """
        rows, length = self.tokens.shape
        row, column = np.divmod(self.where, length)
        count = np.bincount(row, minlength=rows)
        most = max(1, int(count.max(initial=0)))
        if 2 * most > length:
            return None, self.where, self.number_where
        slot = np.arange(len(row)) - (np.cumsum(count) - count)[row]
        queried = np.zeros((rows, most), np.int64)
        queried[row, slot] = column
        where = row * most + slot
        return queried, where, where[np.searchsorted(self.where, self.number_where)]

    def parts(self, count: int) -> Iterator["TrainingBatch"]:
        """Yield the rows in ``count`` batches of similar size, or in one batch per row if there are
        fewer rows than ``count``.

        Each batch is truncated to the length of its longest row.
        """
        rows = len(self.tokens)
        bounds = np.linspace(0, rows, min(count, rows) + 1).astype(np.int64)
        for first, end in pairwise(bounds):
            yield self.of_rows(slice(first, end))

    def dealt(self, count: int) -> list[NDArray[np.int64]]:
        """Split the row indices into ``count`` ascending arrays int64[b] with about the same number
        of tokens each.

        Some arrays are empty if there are fewer rows than ``count``.
        """
        order = np.argsort(-self.real.sum(axis=1), kind="stable")
        turn = np.arange(len(order)) % (2 * count)
        hand = np.minimum(turn, 2 * count - 1 - turn)  # back and forth
        return [np.sort(order[hand == part]) for part in range(count)]

    def of_rows(self, rows: NDArray[np.int64] | slice) -> "TrainingBatch":
        """Return a batch of the given rows (int64[b], ascending), truncated to the length of the
        longest row.

        If ``rows`` is a slice, no data is copied.
        """
        longest = 1 + int(np.flatnonzero(self.real[rows].any(axis=0)).max(initial=0))
        new_row = np.full(len(self.tokens), -1, np.int64)
        new_row[rows] = np.arange(len(new_row[rows]))
        inside, where = self._within(self.where, new_row, longest)
        numbers, number_where = self._within(self.number_where, new_row, longest)
        return TrainingBatch(
            tokens=self.tokens[rows, :longest],
            values=self.values[rows, :longest],
            real=self.real[rows, :longest],
            where=where,
            labels=self.labels[inside],
            number_where=number_where,
            number_values=self.number_values[numbers],
            number_raw=None if self.number_raw is None else self.number_raw[numbers],
            own_from=None if self.own_from is None else self.own_from[rows],
            moved_places=None if self.moved_places is None else self.moved_places[rows],
            number_scale=self.number_scale,
        )

    def _within(
        self, where: NDArray[np.int64], new_row: NDArray[np.int64], longest: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which flat indices are in the chosen rows, and these indices in the new rows."""
        row, column = np.divmod(where, max(1, self.tokens.shape[1]))
        inside = new_row[row] >= 0
        return inside, new_row[row[inside]] * longest + column[inside]


def masked_batch(batch: Batch, hidden: NDArray[np.bool_]) -> TrainingBatch:
    """Return a training batch in which the tokens ``hidden`` (bool[B, L]) are masked and predicted.

    The input values of masked numbers are 1. A number with a value is predicted if its first token
    is masked.
    """
    where = np.flatnonzero(hidden)
    valued = batch.valued(hidden[batch.number_row, batch.number_start])
    return TrainingBatch(
        tokens=np.where(hidden, MASK, batch.tokens),
        values=np.where(hidden, np.float32(1), batch.values()),
        real=batch.real,
        where=where,
        labels=batch.tokens.reshape(-1)[where],
        number_where=(batch.number_row * batch.tokens.shape[1] + batch.number_start)[valued],
        number_values=batch.number_value[valued],
        number_raw=batch.number_raw[valued],
    )


def autoregressive_batch(batch: Batch, chosen: NDArray[np.bool_]) -> TrainingBatch:
    """Return a training batch that predicts the first token of each chosen number (bool[M]).

    The rows are shifted right by one, with ``[END]`` first, as for an autoregressive model. The
    values of the chosen numbers are predicted as well.
    """
    where = batch.number_row * (batch.tokens.shape[1] + 1) + batch.number_start
    labels = batch.tokens[batch.number_row, batch.number_start]
    return _shifted(batch, where[chosen], labels[chosen], batch.valued(chosen))


def row_end_batch(batch: Batch, causal: bool) -> TrainingBatch:
    """Return a batch with one prediction per row, at its last real position, and without labels.

    For a causal model, every row starts with ``[END]``. For other models, an empty row is replaced
    with a single ``[END]``, so that padding is never read.
    """
    if causal:
        tokens, values = shift_right(batch)
        last = batch.lengths
    else:
        length = max(1, batch.tokens.shape[1])
        tokens = np.full((len(batch.tokens), length), END)
        values = np.ones(tokens.shape, batch.number_value.dtype)
        tokens[:, : batch.tokens.shape[1]] = batch.tokens
        values[:, : batch.tokens.shape[1]] = batch.values()
        tokens[batch.lengths == 0, 0] = END
        last = np.maximum(batch.lengths, 1) - 1
    return TrainingBatch(
        tokens=tokens,
        values=values,
        real=np.arange(tokens.shape[1]) <= last[:, None],
        where=np.arange(len(tokens)) * tokens.shape[1] + last,
    )


def shift_right(batch: Batch) -> tuple[NDArray[np.int64], Channel]:
    """Return tokens and values shifted right by one, [B, L + 1], with ``[END]`` first.

    This is the input of an autoregressive model.
    """
    rows = len(batch.tokens)
    tokens = np.concatenate([np.full((rows, 1), END), batch.tokens], axis=1)
    values = batch.values()
    return tokens, np.concatenate([np.ones((rows, 1), values.dtype), values], axis=1)


def leftward(batch: Batch, loss: str) -> TrainingBatch:
    """Return a training batch that predicts each token from the tokens before it.

    If ``loss`` is "answer", only the tokens and values of answers are predicted.
    """
    rows, length = batch.tokens.shape[0], batch.tokens.shape[1] + 1
    columns = np.arange(length)
    labels = np.concatenate([batch.tokens, np.full((rows, 1), PAD)], axis=1)
    labels[np.arange(rows), batch.lengths] = END
    first = np.zeros(rows, np.int64)
    if loss == "answer":
        first = np.where(batch.answer_start < 0, length, batch.answer_start)
    predicted = (columns <= batch.lengths[:, None]) & (columns >= first[:, None])
    where = np.flatnonzero(predicted)
    answers = batch.valued(batch.number_start >= first[batch.number_row])
    return _shifted(batch, where, labels.reshape(-1)[where], answers)


def _shifted(
    batch: Batch, where: NDArray[np.int64], labels: NDArray[np.int64], valued: NDArray[np.bool_]
) -> TrainingBatch:
    """Return a batch of rows shifted right by one, which predicts tokens and the values of some
    numbers (bool[M])."""
    tokens, values = shift_right(batch)
    length = tokens.shape[1]
    return TrainingBatch(
        tokens=tokens,
        values=values,
        real=np.arange(length) <= batch.lengths[:, None],
        where=where,
        labels=labels,
        number_where=(batch.number_row * length + batch.number_start)[valued],
        number_values=batch.number_value[valued],
        number_raw=batch.number_raw[valued],
    )
