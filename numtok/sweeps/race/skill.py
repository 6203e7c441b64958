"""Skill: how much less the error is than that of something else, slot by slot.

A slot is a target's name; of rows without targets, the place of a number in its row. Skill of a
slot is 1 - MAE / MAE of the reference, -1 at least, so that no one slot decides; over all it is the
mean over the slots. 0 is as good as the reference, 1 without an error. What a race is decided by
stands here and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from numtok.arrays import Floats, Ints
from numtok.data.tables.rows import learnt_rows, read_table_of
from numtok.encoding.splits import read_split
from numtok.evaluation.report_files import TARGET, ReportPredictions
from numtok.metrics.base import Metric, Predictions, Statistic
from numtok.records import TABLE, TRAIN
from numtok.store.artifact import Artifact

#: What predictions of rows without targets have for a target.
_NO_TARGET = "number"
_MOST_PLACES = 16  # in a row, that are slots of their own
_LEAST = -1.0


def slot_of(target: str, position: int) -> str:
    """The slot of a number: its target's name, or of none its place in the row, counted from 0.

    >>> slot_of("area", 2), slot_of("number", 2), slot_of("number", 40)
    ('area', 'number 3', 'number 17 and later')
    """
    if target != _NO_TARGET:
        return target
    later = " and later" if position >= _MOST_PLACES else ""
    return f"{_NO_TARGET} {min(position, _MOST_PLACES) + 1}{later}"


@dataclass(frozen=True, eq=False)
class PredictionSlots:
    """The slots of n predictions.

    names
        Of each slot.
    rows
        Of each slot, which predictions it has: int64[k].
    """

    names: tuple[str, ...]
    rows: tuple[Ints, ...]

    @classmethod
    def of(cls, predictions: ReportPredictions) -> "PredictionSlots":
        """In the order of their names."""
        columns = (predictions.table.column(name).to_pylist() for name in (TARGET, "position"))
        slots = np.array([slot_of(*place) for place in zip(*columns, strict=True)], object)
        names = sorted(set(slots.tolist()))
        return cls(tuple(names), tuple(np.flatnonzero(slots == name) for name in names))

    def of_each(self, values: Mapping[str, float]) -> Floats:
        """float64[n]: for each prediction the value of its slot; that of "" where it has none."""
        found = np.empty(sum(map(len, self.rows)))
        for name, rows in zip(self.names, self.rows, strict=True):
            found[rows] = values.get(name, values[""])
        return found


@dataclass(frozen=True, eq=False)
class SkillOver(Metric):
    """Skill over a reference, of which ``errors`` are the absolute errors, float64[n]."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Murphy (1988), skill scores; the mean over slots"
    better: ClassVar[Literal["higher"]] = "higher"
    bounds: ClassVar[tuple[float, float]] = (_LEAST, 1.0)
    undefined: ClassVar[str] = "no slot has an error"
    slots: PredictionSlots
    errors: Floats

    def statistic(self, answers: Predictions) -> Statistic:
        own = np.abs(answers.prediction - answers.truth)

        def of_weights(weights: Floats) -> Floats:
            found = [
                _skill(*(_sum(weights[:, rows], errors[rows]) for errors in (own, self.errors)))
                for rows in self.slots.rows
            ]
            return np.asarray(np.mean(found, axis=0))

        return of_weights


def _sum(weights: Floats, errors: Floats) -> Floats:
    """float64[r] of weights [r, k] and errors [k]: the same bits with any number of threads."""
    total: Floats = np.einsum("rn,n->r", weights, errors)
    return total


def _skill(own: Floats, other: Floats) -> Floats:
    """float64[r]: 0 where neither has an error, as of a slot that a resample lacks."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        skill = np.where(other > 0, 1 - own / other, np.where(own > 0, _LEAST, 0.0))
    return np.asarray(np.maximum(np.nan_to_num(skill, nan=_LEAST), _LEAST))


def medians(data: Artifact) -> dict[str, float]:
    """The median of each slot in the train split, and under "" that of all: what one says who knows
    nothing else. Of encoded data or a table."""
    if data.kind == TABLE:
        table = read_table_of(data)
        median = float(np.median(table.target[learnt_rows(table, 0, None, 0)]))
        return {"": median, table.file.target: median}
    train = read_split(data, TRAIN)
    if len(train.targets):
        values = train.numbers[train.targets]
        names = [slot_of(name, 0) for name in train.target_name.to_pylist()]
    else:
        values = train.numbers
        firsts = np.repeat(train.number_rows[:-1], np.diff(train.number_rows))
        names = [slot_of(_NO_TARGET, place) for place in (np.arange(len(values)) - firsts).tolist()]
    slots, known = np.array(names, object), np.isfinite(values)
    found = {"": float(np.median(values[known])) if known.any() else 0.0}
    for name in sorted(set(names)):
        if len(mine := values[known & (slots == name)]):
            found[name] = float(np.median(mine))
    return found


def score(predictions: ReportPredictions, guesses: Mapping[str, float]) -> float:
    """The skill of predictions over always saying the ``guesses``, by slot: what decides who goes
    on."""
    slots = PredictionSlots.of(predictions)
    errors = np.abs(slots.of_each(guesses) - predictions.answers.truth)
    return SkillOver(slots, errors).plain(predictions.answers)
