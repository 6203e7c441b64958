"""ar: predict each token from those before it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.errors import UsageError
from numtok.nn.batches import PAD, Batch
from numtok.nn.objectives.base import END, Example, Objective, moved

_LOSSES = ("all", "answer")


@dataclass(frozen=True)
class Ar(Objective):
    """The row is seen moved by one, ``[END]`` first, and ``[END]`` is predicted behind it.

    loss
        ``all``: every token is learnt. ``answer``: those from ``answer_start`` on, of a row without
        one none.

    At inference the token head decides what comes next, and where that is a number with a value
    channel, the number head fills the value in (xVal, Section 2.2).
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Section 2"
    causal: ClassVar[bool] = True
    positional: ClassVar[str] = "loss"
    loss: str = "all"

    def __post_init__(self) -> None:
        if self.loss not in _LOSSES:
            raise UsageError(
                f"ar: loss={self.loss!r} is not possible; allowed are {', '.join(_LOSSES)}"
            )

    def requires(self) -> str | None:
        return "answer_start" if self.loss == "answer" else None

    def example(self, batch: Batch, random: np.random.Generator) -> Example:
        rows, length = batch.tokens.shape[0], batch.tokens.shape[1] + 1
        columns = np.arange(length)
        labels = np.concatenate([batch.tokens, np.full((rows, 1), PAD)], axis=1)
        labels[np.arange(rows), batch.lengths] = END
        first = np.zeros(rows, np.int64)
        if self.loss == "answer":
            first = np.where(batch.answer_start < 0, length, batch.answer_start)
        learnt = (columns <= batch.lengths[:, None]) & (columns >= first[:, None])
        where = np.flatnonzero(learnt)
        answers = batch.number_start >= first[batch.number_row]
        tokens, values = moved(batch)
        return Example(
            tokens=tokens,
            values=values,
            real=columns <= batch.lengths[:, None],
            where=where,
            labels=labels.reshape(-1)[where],
            number_where=(batch.number_row * length + batch.number_start)[answers],
            number_values=batch.number_value[answers],
        )
