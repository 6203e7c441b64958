"""The contract of an objective: a batch of rows to what a model sees and must predict.

Whatever the objective, *hidden state j predicts token j of the row*: a masked
model sees ``[MASK]`` there, an autoregressive one sees the row moved by one,
``[END]`` first. So heads read a number at the index of its first token and need
not know the objective. Where no token is predicted but a row's label, that is read
at the last real place.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from numtok.models.batches import Batch
from numtok.plugins import MemberCall, a, describe
from numtok.registry import Registry

MASK, END = 1, 2  # ids of records.SPECIALS
Loss = TypeVar("Loss", float, Tensor)


@dataclass(frozen=True)
class TwoPasses:
    """How a model learns to do without the numbers that it has not written yet
    (``objectives.numvalue``).

    second
        Whether a second pass is learnt, in which prefixes are what was projected in the first.
    reconstruction
        The weight of the loss by which the projection is drawn to the value's own vector.
    rate
        The learning rate of what makes that vector, in place of that of everything else.
    """

    second: bool
    reconstruction: float
    rate: float

    def total(self, projected: Loss, reconstruction: Loss) -> Loss:
        """What is learnt besides: L_proj + lambda L_rec."""
        return projected + self.reconstruction * reconstruction


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """What a model is given and what it must predict, for ``B`` rows of ``L`` tokens."""

    tokens: NDArray[np.int64]  # [B, L]
    values: NDArray[np.float32]  # [B, L], 1 where there is no visible number
    real: NDArray[np.bool_]  # [B, L], not padding
    where: NDArray[np.int64]  # [K] flat indices into [B, L] at which a token is predicted, rising
    labels: NDArray[np.int64]  # [K] those tokens, or the classes of rows
    number_where: NDArray[np.int64]  # [N] of these, those at which a value is learnt
    number_values: NDArray[np.float32]  # [N] those numbers, normalised
    #: [B] from which place on prefixes are projected (``objectives.numvalue``); None: nowhere.
    projects_from: NDArray[np.int64] | None = None
    #: [N] the numbers of ``number_values`` as they are in the text, where a head may learn these.
    number_raw: NDArray[np.float64] | None = None

    @cached_property
    def asked(self) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[np.int64]]:
        """The places [B, Q] of each row at which something is predicted, and ``where`` and
        ``number_where`` as flat indices into them.

        A row with fewer than Q has its first place besides. None, and the two as they are, where
        Q is over half of L: then it costs more to pick than to work out all.
        """
        rows, length = self.tokens.shape
        row, place = np.divmod(self.where, length)
        count = np.bincount(row, minlength=rows)
        most = max(1, int(count.max(initial=0)))
        if 2 * most > length:
            return None, self.where, self.number_where
        slot = np.arange(len(row)) - (np.cumsum(count) - count)[row]
        asked = np.zeros((rows, most), np.int64)
        asked[row, slot] = place
        where = row * most + slot
        return asked, where, where[np.searchsorted(self.where, self.number_where)]

    def parts(self, count: int) -> Iterator["TrainingBatch"]:
        """The rows in ``count`` parts of like size, or in one part a row where there are fewer.

        Each is as long as its longest row.
        """
        rows = len(self.tokens)
        bounds = np.linspace(0, rows, min(count, rows) + 1).astype(np.int64)
        for first, end in pairwise(bounds):
            longest = 1 + int(np.flatnonzero(self.real[first:end].any(axis=0)).max(initial=0))
            inside, where = self._within(self.where, first, end, longest)
            numbers, number_where = self._within(self.number_where, first, end, longest)
            yield TrainingBatch(
                tokens=self.tokens[first:end, :longest],
                values=self.values[first:end, :longest],
                real=self.real[first:end, :longest],
                where=where,
                labels=self.labels[inside],
                number_where=number_where,
                number_values=self.number_values[numbers],
                number_raw=None if self.number_raw is None else self.number_raw[numbers],
                projects_from=None if self.projects_from is None else self.projects_from[first:end],
            )

    def _within(
        self, where: NDArray[np.int64], first: int, end: int, longest: int
    ) -> tuple[slice, NDArray[np.int64]]:
        """Which of some flat indices lie in these rows, and what they are there."""
        length = self.tokens.shape[1]
        inside = slice(*np.searchsorted(where, [first * length, end * length]))
        row, place = np.divmod(where[inside], max(1, length))
        return inside, (row - first) * longest + place


class Objective(ABC):
    """An objective. Subclasses are final frozen dataclasses; their fields are settings."""

    revision: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def causal(self) -> bool:
        """Whether the trunk may look at earlier tokens alone."""

    @abstractmethod
    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        """What is learnt from a batch; all randomness comes from ``random``."""

    @abstractmethod
    def requires(self) -> str | None:
        """The column without which nothing can be learnt: "targets", "answer_start", "label" or
        None."""

    @property
    def passes(self) -> TwoPasses | None:
        """How prefixes are projected; None where they are not."""
        return None


def _required(asked: MemberCall, answer: Any) -> Any:
    columns = ("targets", "answer_start", "label", None)
    if answer not in columns:
        raise asked.wrong(describe(answer), f"one of {', '.join(map(repr, columns))}")
    return answer


def _example(asked: MemberCall, answer: Any) -> Any:
    batch = asked.given[0]
    asked.one_of(answer, TrainingBatch)
    counts = (
        one.size if isinstance(one, np.ndarray) else 0
        for one in (answer.where, answer.number_where)
    )
    sizes = {"B": len(batch.tokens)} | dict(zip("KN", counts, strict=True))
    length = 0
    for name, form in _EXAMPLE.items():
        column = getattr(answer, name)
        if column is None and name in ("projects_from", "number_raw"):
            continue
        part = replace(asked, member=f"{asked.member}, {name}", sizes=sizes)
        part.array(column, form)
        if name == "tokens":
            length = sizes["L"] = column.shape[1]
        if name in ("where", "number_where"):
            allowed = sizes["B"] * length
            if (np.diff(column, prepend=-1, append=allowed) < 1).any():
                raise part.wrong("places that do not rise", f"rising places from 0 below {allowed}")
    if not np.isin(answer.number_where, answer.where).all():
        raise asked.wrong("number_where with places that are not in where", "some of where")
    asked.again = not sizes["N"]
    return answer


_EXAMPLE = {
    "tokens": "ndarray int64[B, L]",
    "values": "ndarray float32[B, L]",
    "real": "ndarray bool[B, L]",
    "where": "ndarray int64[K]",
    "labels": "ndarray int64[K]",
    "number_where": "ndarray int64[N]",
    "number_values": "ndarray float32[N]",
    "number_raw": "ndarray float64[N]",
    "projects_from": "ndarray int64[B]",
}

OBJECTIVES: Registry[Objective] = Registry(
    "numtok.models.objectives",
    "objective",
    {
        "causal": a(bool),
        "passes": a(TwoPasses, type(None)),
        "requires": _required,
        "example": _example,
    },
)


def masked_batch(batch: Batch, hidden: NDArray[np.bool_]) -> TrainingBatch:
    """The tokens ``hidden`` (bool[B, L]) masked and asked for; a masked number's value becomes 1.

    A number is asked for where its first token is masked, if it has a value.
    """
    where = np.flatnonzero(hidden)
    asked = batch.valued(hidden[batch.number_row, batch.number_start])
    return TrainingBatch(
        tokens=np.where(hidden, MASK, batch.tokens),
        values=np.where(hidden, np.float32(1), batch.values()),
        real=batch.real,
        where=where,
        labels=batch.tokens.reshape(-1)[where],
        number_where=(batch.number_row * batch.tokens.shape[1] + batch.number_start)[asked],
        number_values=batch.number_value[asked],
        number_raw=batch.number_raw[asked],
    )


def autoregressive_batch(batch: Batch, chosen: NDArray[np.bool_]) -> TrainingBatch:
    """The row as an autoregressive model sees it, the chosen numbers (bool[M]) asked for."""
    tokens, values = shift_right(batch)
    length = tokens.shape[1]
    places = batch.number_row * length + batch.number_start
    valued = batch.valued(chosen)
    return TrainingBatch(
        tokens=tokens,
        values=values,
        real=np.arange(length) <= batch.lengths[:, None],
        where=places[chosen],
        labels=batch.tokens[batch.number_row, batch.number_start][chosen],
        number_where=places[valued],
        number_values=batch.number_value[valued],
        number_raw=batch.number_raw[valued],
    )


def row_end_batch(batch: Batch, causal: bool) -> TrainingBatch:
    """The rows as they are, the last real place of each asked for; nothing is learnt.

    A causal model sees ``[END]`` first, so that place is that of the last token. A row without
    any token is read as ``[END]`` alone by the other, too: a pad is never read.
    """
    if causal:
        tokens, values = shift_right(batch)
        last = batch.lengths
    else:
        length = max(1, batch.tokens.shape[1])
        tokens = np.full((len(batch.tokens), length), END)
        values = np.ones(tokens.shape, np.float32)
        tokens[:, : batch.tokens.shape[1]] = batch.tokens
        values[:, : batch.tokens.shape[1]] = batch.values()
        tokens[batch.lengths == 0, 0] = END
        last = np.maximum(batch.lengths, 1) - 1
    none = np.zeros(0, np.int64)
    return TrainingBatch(
        tokens=tokens,
        values=values,
        real=np.arange(tokens.shape[1]) <= last[:, None],
        where=np.arange(len(tokens)) * tokens.shape[1] + last,
        labels=none,
        number_where=none,
        number_values=np.zeros(0, np.float32),
    )


def shift_right(batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Tokens and values [B, L + 1] as an autoregressive model sees them: ``[END]`` and the row."""
    rows = len(batch.tokens)
    tokens = np.concatenate([np.full((rows, 1), END), batch.tokens], axis=1)
    values = np.concatenate([np.ones((rows, 1), np.float32), batch.values()], axis=1)
    return tokens, values
