"""Rows as they are learnt from left to right."""

import numpy as np

from numtok.models.batches import PAD, Batch
from numtok.models.objectives.base import END, TrainingBatch, shift_right

LOSSES = ("all", "answer")  # which tokens are learnt


def leftward(batch: Batch, loss: str) -> TrainingBatch:
    """Each token predicted from those before it; of ``answer`` those from ``answer_start`` on."""
    rows, length = batch.tokens.shape[0], batch.tokens.shape[1] + 1
    columns = np.arange(length)
    labels = np.concatenate([batch.tokens, np.full((rows, 1), PAD)], axis=1)
    labels[np.arange(rows), batch.lengths] = END
    first = np.zeros(rows, np.int64)
    if loss == "answer":
        first = np.where(batch.answer_start < 0, length, batch.answer_start)
    learnt = (columns <= batch.lengths[:, None]) & (columns >= first[:, None])
    where = np.flatnonzero(learnt)
    answers = batch.valued(batch.number_start >= first[batch.number_row])
    tokens, values = shift_right(batch)
    return TrainingBatch(
        tokens=tokens,
        values=values,
        real=columns <= batch.lengths[:, None],
        where=where,
        labels=labels.reshape(-1)[where],
        number_where=(batch.number_row * length + batch.number_start)[answers],
        number_values=batch.number_value[answers],
        number_raw=batch.number_raw[answers],
    )
