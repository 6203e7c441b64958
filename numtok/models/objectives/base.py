"""The contract of an objective: what a model sees of a batch of rows, and must predict.

``numtok.models.training_batch`` has the usual ways to make such a :class:`TrainingBatch`, and says
which hidden state predicts what. An objective with further losses is an ``OwnLosses`` as well
(``numtok.models.own_losses``).
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from numtok.models.batches import Batch
from numtok.models.number_terms.base import NUMBER_TERMS, NumberTerm
from numtok.models.own_losses import LoggedFigure, OwnLosses
from numtok.models.training_batch import TrainingBatch
from numtok.plugins import MemberCall, a, describe
from numtok.registry import Registry


class Objective(ABC):
    """An objective. Subclasses are final frozen dataclasses; their fields are settings."""

    revision: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def causal(self) -> bool:
        """Whether a hidden state depends only on earlier tokens."""

    @abstractmethod
    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        """Make a training batch; all randomness comes from ``random``."""

    @abstractmethod
    def requires(self) -> str | None:
        """The column that every row needs: "targets", "answer_start", "label" or None."""

    @property
    def number_term(self) -> NumberTerm | None:
        """The loss on the values of tokens, added to their cross-entropy or instead of it."""
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
    if answer.own_from is None and isinstance(asked.thing, OwnLosses):
        raise asked.wrong("an example without own_from", "one with it, for its figures")
    asked.again = not sizes["N"]
    return answer


def _figures(asked: MemberCall, answer: Any) -> Any:
    for one in asked.one_of(answer, tuple):
        asked.one_of(one, LoggedFigure)
    return answer


def _losses(asked: MemberCall, answer: Any) -> Any:
    assert isinstance(asked.thing, OwnLosses)
    count = len(asked.thing.figures)
    if len(asked.one_of(answer, tuple)) != count:
        raise asked.wrong(f"{len(answer)} losses", f"{count}, one for each of its figures")
    for one in answer:
        if asked.one_of(one, Tensor).dim():
            raise asked.wrong(describe(one), "Tensors of one number each")
    return answer


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
        "figures": _figures,
        "build": a(nn.Module),
        "losses": _losses,
        "rates": a(dict),
        "number_term": a(NumberTerm, type(None)),
        "requires": _required,
        "example": _example,
    },
)


def built_term(spec: str | None) -> NumberTerm | None:
    """Build the number loss of a spec, such as ``was:0.3``."""
    return None if spec is None else NUMBER_TERMS.build(spec)
