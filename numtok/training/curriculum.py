"""A curriculum: phases of training, one after the other, each with rows of its own.

A TOML file has them. Rows are chosen by their groups, and may come back in later phases (replay)::

    restart = true                     # each phase warms up and cools down by itself

    [[phase]]
    length = 2                         # of the steps, as compared with other phases
    rows = [{ where = { digits = "1..3" } }]

    [[phase]]
    length = 3
    rows = [
        { where = { digits = ["4", "5"] } },
        { where = { digits = "1..3" }, weight = 0.2 },
    ]
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok import documents
from numtok.encoding.dataset import EncodedSplit
from numtok.errors import UsageError, unknown
from numtok.models.batches import EpochSampler
from numtok.registry import Interval
from numtok.seeds import seed_of

REVISION = 2  # of what is made of a file
_MOST = 1e12  # lengths and weights; sums of these, and their shares, are numbers too
_STRANGE_KEY = re.compile(
    r"Object contains unknown field `(.*?)`(?: - at `\$\.phase\[(\d+)\](?:\.rows\[(\d+)\])?`)?"
)
#: Values of a group that are taken: one, several, or the integers of a range such as ``1..3``.
Wanted = str | int | list[str | int]


class PhaseRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some rows of the train split, and their weight among others of the phase.

    where
        By group, the values that it may have; without any, all rows.
    weight
        A batch has as many rows of these as its size and the weights of the phase say, rounded,
        and one at least.
    """

    where: dict[str, Wanted] = {}
    weight: float = 1.0

    @property
    def title(self) -> str:
        """Which rows, for people."""
        told = (f"{name}={_told(wanted, '|')}" for name, wanted in self.where.items())
        return " ".join(told) or "all"

    def chosen(self, samples: EncodedSplit) -> NDArray[np.int64]:
        """int64[k]: which rows these are. Raises UsageError where there are none."""
        keep = np.ones(len(samples), np.bool_)
        for name, wanted in self.where.items():
            if name not in samples.groups:
                known = ", ".join(samples.groups) or "none"
                raise UsageError(f"rows have no group {name!r}; groups are {known}")
            column = samples.groups[name]
            distinct = column.unique()
            taken = [_is_among(str(value), wanted) for value in distinct.to_pylist()]
            if not any(taken):
                known = ", ".join(sorted(map(str, distinct.to_pylist()))[:20])
                raise UsageError(f"no row has {name} {_told(wanted)}; they have {known}")
            among = distinct.filter(pa.array(taken))
            keep &= pc.is_in(column, value_set=among).to_numpy(zero_copy_only=False)
        if not keep.any():
            raise UsageError(f"no row has all of {self.where}; choose fewer groups")
        return np.flatnonzero(keep)


class Phase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Steps that learn some rows; ``length`` is compared with that of other phases."""

    rows: list[PhaseRows]
    length: float = 1.0


class Curriculum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The phases of a run. ``restart``: whether each has a warm-up and a cosine of its own."""

    phase: list[Phase]
    restart: bool = False

    @classmethod
    def read(cls, path: Path) -> "Curriculum":
        """What a file says; UsageError, with the path, for whatever is wrong."""
        shown = f"--curriculum {path}"
        tables = documents.toml(documents.read(path, shown), shown)
        try:
            found = msgspec.convert(tables, cls)
            found._check()
        except ValueError as error:  # msgspec's too
            told = _strange_key(str(error)) or _line(error)
            raise UsageError(f"{shown}: {told}") from error
        return found

    def _check(self) -> None:
        """Raises ValueError for what no phases are."""
        if not self.phase:
            raise ValueError("there is no [[phase]]; at least one is needed")
        for number, phase in enumerate(self.phase, 1):
            if not phase.rows:
                raise ValueError(f"phase {number} has no rows; write rows = [{{}}] for all")
            weights = [("weight", one.weight) for one in phase.rows]
            for what, value in (("length", phase.length), *weights):
                if not 1 / _MOST <= value <= _MOST:
                    raise ValueError(
                        f"phase {number}: {what} {value:g} is not possible; it is above 0, "
                        f"{1 / _MOST:g} to {_MOST:g}"
                    )

    def starts(self, steps: int) -> list[int]:
        """The first step of each phase of a run of so many, and behind the last the number itself.

        Raises UsageError where a phase has no step.

        >>> Curriculum([Phase([PhaseRows()], 1), Phase([PhaseRows()], 2)]).starts(10)
        [0, 3, 10]
        """
        ends = [*accumulate(phase.length for phase in self.phase)]
        starts = [0, *(round(steps * end / ends[-1]) for end in ends)]
        for number, (first, end) in enumerate(pairwise(starts), 1):
            if first == end:
                raise UsageError(
                    f"--steps {steps} leaves no step for phase {number} of --curriculum; give more "
                    "steps"
                )
        return starts

    def restarts(self, steps: int) -> tuple[int, ...] | None:
        """Return the steps at which the learning rate starts over (``trainer.Recipe.starts``).

        Raises as :meth:`starts`.
        """
        starts = tuple(self.starts(steps))
        return starts if self.restart else None

    @property
    def title(self) -> str:
        """What it says, in one short line: the same for two files that say the same.

        >>> easy, hard = PhaseRows({"digits": "1..3"}, 0.2), PhaseRows({"digits": [4, 5]})
        >>> Curriculum([Phase([easy]), Phase([hard, easy], 3)], restart=True).title
        '1 of digits=1..3; 3 of digits=4|5 1, digits=1..3 0.2; restart'
        """
        phases = []
        for phase in self.phase:
            among = len(phase.rows) > 1
            rows = (one.title + (f" {one.weight:g}" if among else "") for one in phase.rows)
            phases.append(f"{phase.length:.10g} of {', '.join(rows)}")
        return "; ".join([*phases, *["restart"] * self.restart])

    def settings(self) -> dict[str, Any]:
        """What a model depends on, as plain values."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain | {"revision": REVISION}


def shares(weights: Sequence[float], size: int) -> list[int]:
    """How many of ``size`` rows go to each weight: one at least, and all together ``size``.

    >>> shares([1, 0.2], 128), shares([1, 1, 1], 4), shares([1, 1e-9], 8)
    ([107, 21], [2, 1, 1], [7, 1])
    """
    exact = np.array(weights) / sum(weights) * size
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: size - counts.sum()]] += 1
    counts = np.maximum(counts, 1)
    while counts.sum() > size:
        counts[counts.argmax()] -= 1
    return list(map(int, counts))


def _is_among(value: str, wanted: Wanted) -> bool:
    if isinstance(wanted, list):
        return any(_is_among(value, one) for one in wanted)
    try:
        return int(value) in Interval.parse(str(wanted))
    except ValueError:  # no range, or no integer
        return value == str(wanted)


def _told(wanted: Wanted, between: str = ", ") -> str:
    return between.join(map(str, wanted)) if isinstance(wanted, list) else str(wanted)


def _strange_key(message: str) -> str | None:
    """Of msgspec's message about a key that there is not which are known, and in which phase it
    is, counted from 1 as in other messages."""
    found = _STRANGE_KEY.fullmatch(message)
    if found is None:
        return None
    key, phase, row = found.groups()
    of = Curriculum if phase is None else Phase if row is None else PhaseRows
    where = "" if phase is None else f"phase {int(phase) + 1}: "
    where += "" if row is None else f"rows {int(row) + 1}: "
    known = [field.name for field in msgspec.structs.fields(of)]
    return f"{where}{unknown('key', key, known)}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).replace("`", "'").replace("$.", "")


class CurriculumSampler:
    """The rows of each step of a run under a curriculum: a pure function of (seed, step).

    In each phase, each choice of rows is read in its own order, epoch after epoch, so a run resumes
    at any step of any phase. If a phase mixes several choices, each has its fraction of every
    batch, however few rows it has.
    """

    def __init__(
        self, curriculum: Curriculum, samples: EncodedSplit, size: int, steps: int
    ) -> None:
        """Raise UsageError, with the phase, for rows that do not exist and batches too small."""
        self._starts = curriculum.starts(steps)
        self._phases = [
            _orders(number, phase, samples, size)
            for number, phase in enumerate(curriculum.phase, 1)
        ]

    def at(self, seed: int, step: int) -> NDArray[np.int64]:
        """Return the rows of a step, int64[batch]."""
        phase = min(bisect_right(self._starts, step), len(self._phases)) - 1
        within = step - self._starts[phase]
        return np.concatenate(
            [
                order.at(seed_of(seed, "phase", phase, number), within)
                for number, order in enumerate(self._phases[phase])
            ]
        )

    def row_count(self, steps: int) -> int:
        """Number of rows in the first ``steps`` steps."""
        return sum(
            order.row_count(max(0, min(steps, end) - first))
            for orders, first, end in zip(
                self._phases, self._starts, self._starts[1:], strict=False
            )
            for order in orders
        )


def _orders(number: int, phase: Phase, samples: EncodedSplit, size: int) -> list[EpochSampler]:
    if len(phase.rows) > size:
        raise UsageError(
            f"--curriculum: phase {number} mixes {len(phase.rows)} choices of rows and --batch "
            f"{size} has not a row for each; give a larger one"
        )
    counts = shares([one.weight for one in phase.rows], size)
    try:
        return [
            EpochSampler(one.chosen(samples), samples.lengths, count, filled=len(counts) > 1)
            for one, count in zip(phase.rows, counts, strict=True)
        ]
    except UsageError as error:
        raise UsageError(f"--curriculum: phase {number}: {error}") from None
