"""The contract of an objective: a batch of rows to what a model sees and must predict.

Whatever the objective, *hidden state j predicts token j of the row*: a masked
model sees ``[MASK]`` there, an autoregressive one sees the row moved by one,
``[END]`` first. So heads read a number at the index of its first token and need
not know the objective. Where no token is predicted but a row's label, that is read
at the last real place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import add
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.schemes.base import Channel
from numtok.models.batches import Batch
from numtok.models.number_terms.base import NUMBER_TERMS, NumberTerm
from numtok.plugins import MemberCall, a, describe
from numtok.registry import Registry

MASK, END = 1, 2  # ids of records.SPECIALS
Loss = TypeVar("Loss", float, Tensor)


class LoggedFigure(NamedTuple):
    """A loss of an objective's own, or what is only logged beside it: a mean.

    name
        The column of ``metrics.jsonl``.
    weight
        With which it is learnt; None: it is only logged.
    per_token
        Whether it is a mean over the tokens that are predicted; else over the objective's places.
    """

    name: str
    weight: float | None
    per_token: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class FirstPass:
    """What an objective makes its own losses of.

    embedded, hidden
        [B, L, D]: the vectors of a batch, and its states.
    places
        [P]: flat indices into [B, L] of the objective's places.
    parts
        The modules that it built, by their names.
    trunk
        [B, L, D] to [B, L, D]: the states of other vectors of the same rows.
    token_loss
        [B, L, D] to []: the cross-entropy of what is predicted from such states.
    """

    embedded: Tensor
    hidden: Tensor
    places: Tensor
    parts: Mapping[str, nn.Module]
    trunk: Callable[[Tensor], Tensor]
    token_loss: Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingBatch:
    """What a model is given and what it must predict, for ``B`` rows of ``L`` tokens."""

    tokens: NDArray[np.int64]  # [B, L]
    values: Channel  # [B, L], 1 where there is no visible number
    real: NDArray[np.bool_]  # [B, L], not padding
    where: NDArray[np.int64]  # [K] flat indices into [B, L] at which a token is predicted, rising
    labels: NDArray[np.int64]  # [K] those tokens, or the classes of rows
    number_where: NDArray[np.int64]  # [N] of these, those at which a value is learnt
    number_values: Channel  # [N] those numbers, normalised
    #: [B] from which place on tokens that tell ahead are the objective's places; None: nowhere.
    own_from: NDArray[np.int64] | None = None
    #: [N] the numbers of ``number_values`` as they are in the text, where a head may learn these.
    number_raw: NDArray[np.float64] | None = None
    #: [B, 2] fractions of ``DigitPlaces.offsets`` that places are moved by, in [0, 1): drawn for
    #: the whole batch, and for each row; None: nowhere.
    moved_places: NDArray[np.float64] | None = None
    #: As ``NumberTermModule.scale`` of all labels that are learnt at once; None: of these.
    number_scale: float | None = None

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
            yield self.of_rows(slice(first, end))

    def dealt(self, count: int) -> list[NDArray[np.int64]]:
        """``count`` hands of rows, rising, dealt so that each has about as many tokens; where rows
        are fewer, some are empty."""
        order = np.argsort(-self.real.sum(axis=1), kind="stable")
        turn = np.arange(len(order)) % (2 * count)
        hand = np.minimum(turn, 2 * count - 1 - turn)  # there and back
        return [np.sort(order[hand == one]) for one in range(count)]

    def of_rows(self, rows: NDArray[np.int64] | slice) -> "TrainingBatch":
        """Some rows (int64[b], rising; of a slice nothing is copied), as long as the longest of
        them."""
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
        """Which of some flat indices lie in rows that have a new one, and what they are there."""
        row, place = np.divmod(where, max(1, self.tokens.shape[1]))
        inside = new_row[row] >= 0
        return inside, new_row[row[inside]] * longest + place[inside]


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
    def number_term(self) -> NumberTerm | None:
        """What is learnt of the values of tokens, beside their cross-entropy or in place of it."""
        return None

    # --- losses of its own, beside those of tokens and values

    #: Whether the model learns what stands where it has itself written a token that tells ahead
    #: (``Embedder.tells_ahead``).
    stands_in: ClassVar[bool] = False

    @property
    def figures(self) -> tuple[LoggedFigure, ...]:
        """What :meth:`losses` gives, in order. Where there is any, examples have ``own_from``."""
        return ()

    @property
    def further_passes(self) -> int:
        """How often trunk and token head run again for it."""
        return 0

    def refuses(self, tells_ahead: bool) -> str | None:
        """Why nothing can be learnt of an embedder's vectors, and what to do; None where it can."""
        return None

    def parts(self, width: int) -> dict[str, nn.Module]:
        """Modules of its own, by the names that their weights have in a model."""
        return {}

    def losses(self, seen: FirstPass) -> tuple[Tensor, ...]:
        """[] each; of no places 0, which gives every weight a gradient."""
        return ()

    def stand_in(self, parts: Mapping[str, nn.Module], hidden_ND: Tensor) -> Tensor:
        """[N, D]: what stands for a token that tells ahead, from the states that wrote it."""
        raise NotImplementedError

    def flops(self, parts: Mapping[str, nn.Module], ahead: int) -> int:
        """Of the matrix products of its parts, for so many tokens that tell ahead."""
        return 0

    def rates(self) -> Mapping[str, float]:
        """Learning rates in place of that of everything else, by how names of weights begin."""
        return {}

    def weighted(self, figures: Sequence[Loss]) -> Loss:
        """What of its losses is learnt, together."""
        pairs = zip(self.figures, figures, strict=True)
        first, *more = (one.weight * loss for one, loss in pairs if one.weight is not None)
        return reduce(add, more, first)


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
        if column is None and name in ("own_from", "number_raw"):
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
    if answer.own_from is None and cast(Objective, asked.thing).figures:
        raise asked.wrong("an example without own_from", "one with it, for its figures")
    asked.again = not sizes["N"]
    return answer


def _figures(asked: MemberCall, answer: Any) -> Any:
    for one in asked.one_of(answer, tuple):
        asked.one_of(one, LoggedFigure)
    return answer


def _parts(asked: MemberCall, answer: Any) -> Any:
    for name, one in asked.one_of(answer, dict).items():
        asked.one_of(one, nn.Module)
        if name in _TAKEN:
            raise asked.wrong(f"a part {name!r}", f"other names than {', '.join(_TAKEN)}")
    return answer


def _losses(asked: MemberCall, answer: Any) -> Any:
    count = len(cast(Objective, asked.thing).figures)
    if len(asked.one_of(answer, tuple)) != count:
        raise asked.wrong(f"{len(answer)} losses", f"{count}, one for each of its figures")
    for one in answer:
        if asked.one_of(one, Tensor).dim():
            raise asked.wrong(describe(one), "Tensors of one number each")
    return answer


def _stand_in(asked: MemberCall, answer: Any) -> Any:
    _, hidden_ND = asked.given
    return asked.array(answer, "Tensor float[N, D]", N=len(hidden_ND), D=hidden_ND.shape[1])


#: What weights of a model begin with that are no objective's.
_TAKEN = (
    "embedder", "places", "trunk", "token_head", "class_head", "value_head", "number_term",
)  # fmt: skip
_EXAMPLE = {
    "tokens": "ndarray int64[B, L]",
    "values": "ndarray float32|float64[B, L]",
    "real": "ndarray bool[B, L]",
    "where": "ndarray int64[K]",
    "labels": "ndarray int64[K]",
    "number_where": "ndarray int64[N]",
    "number_values": "ndarray float32|float64[N]",
    "number_raw": "ndarray float64[N]",
    "own_from": "ndarray int64[B]",
}

OBJECTIVES: Registry[Objective] = Registry(
    "numtok.models.objectives",
    "objective",
    {
        "causal": a(bool),
        "stands_in": a(bool),
        "figures": _figures,
        "refuses": a(str, type(None)),
        "further_passes": a(int),
        "parts": _parts,
        "losses": _losses,
        "stand_in": _stand_in,
        "flops": a(int),
        "rates": a(dict),
        "number_term": a(NumberTerm, type(None)),
        "requires": _required,
        "example": _example,
    },
)


def built_term(spec: str | None) -> NumberTerm | None:
    """The number loss of a spec, such as ``was:0.3``; UsageError for one that there is not."""
    return None if spec is None else NUMBER_TERMS.build(spec)


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
        values = np.ones(tokens.shape, batch.number_value.dtype)
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


def shift_right(batch: Batch) -> tuple[NDArray[np.int64], Channel]:
    """Tokens and values [B, L + 1] as an autoregressive model sees them: ``[END]`` and the row."""
    rows = len(batch.tokens)
    tokens = np.concatenate([np.full((rows, 1), END), batch.tokens], axis=1)
    values = batch.values()
    return tokens, np.concatenate([np.ones((rows, 1), values.dtype), values], axis=1)
