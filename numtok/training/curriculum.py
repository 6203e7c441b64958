"""Curricula: consecutive phases of training, each on its own selection of rows.

A curriculum is written as a TOML file. Rows are selected by their groups, which are named
properties of rows such as ``digits``. Later phases may repeat rows of earlier ones (replay)::

    restart = true                     # each phase has its own warm-up and cosine

    [[phase]]
    length = 2                         # relative to the other phases
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
from numtok.seeds import seed_of
from numtok.setting_values import Interval

REVISION = 2  # of the way a file is read; models depend on it
_MOST = 1e12  # for lengths and weights, so that sums and fractions of them stay finite
_UNKNOWN_KEY = re.compile(
    r"Object contains unknown field `(.*?)`(?: - at `\$\.phase\[(\d+)\](?:\.rows\[(\d+)\])?`)?"
)
#: Values of a group to choose: one, several, or an integer range such as ``1..3``.
Wanted = str | int | list[str | int]


class PhaseRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A selection of rows from the train split, and its weight in a phase.

    where
        Allowed values of each group; empty to select all rows.
    weight
        Fraction of each batch, relative to the other selections of the phase. Every selection gets
        at least one row per batch.
    """

    where: dict[str, Wanted] = {}
    weight: float = 1.0

    @property
    def title(self) -> str:
        """Short description of the selection, such as ``digits=1..3``; ``all`` if it has no
        conditions."""
        conditions = (f"{name}={_shown(wanted, '|')}" for name, wanted in self.where.items())
        return " ".join(conditions) or "all"

    def chosen(self, samples: EncodedSplit) -> NDArray[np.int64]:
        """Return the indices of the selected rows, int64[k].

        Raises UsageError if no row is selected, or if a group in ``where`` is unknown.
        """
        keep = np.ones(len(samples), np.bool_)
        for name, wanted in self.where.items():
            if name not in samples.groups:
                groups = ", ".join(samples.groups) or "none"
                raise UsageError(f"the rows have no group {name!r}. Their groups: {groups}")
            column = samples.groups[name]
            distinct = column.unique()
            taken = [_is_among(str(value), wanted) for value in distinct.to_pylist()]
            if not any(taken):
                values = ", ".join(sorted(map(str, distinct.to_pylist()))[:20])
                raise UsageError(f"no row has {name} {_shown(wanted)}. Its values: {values}")
            among = distinct.filter(pa.array(taken))
            keep &= pc.is_in(column, value_set=among).to_numpy(zero_copy_only=False)
        if not keep.any():
            raise UsageError(f"no row matches all of {self.where}. Choose fewer groups")
        return np.flatnonzero(keep)


class Phase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Consecutive training steps on the same selections of rows.

    ``length`` is the number of steps relative to the other phases.
    """

    rows: list[PhaseRows]
    length: float = 1.0


class Curriculum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The phases of a training run, in order.

    If ``restart`` is True, each phase has its own learning rate schedule: a warm-up and a cosine
    decay.
    """

    phase: list[Phase]
    restart: bool = False

    @classmethod
    def read(cls, path: Path) -> "Curriculum":
        """Read a curriculum from a TOML file.

        Raises UsageError if the file is invalid; the message contains its path.
        """
        shown = f"--curriculum {path}"
        tables = documents.toml(documents.read(path, shown), shown)
        try:
            curriculum = msgspec.convert(tables, cls)
            curriculum._check()
        except ValueError as error:  # msgspec's too
            message = _unknown_key(str(error)) or _line(error)
            raise UsageError(f"{shown}: {message}") from error
        return curriculum

    def _check(self) -> None:
        """Raise ValueError for missing phases or rows, and for lengths or weights out of range."""
        if not self.phase:
            raise ValueError("there is no [[phase]]. Write at least one")
        for number, phase in enumerate(self.phase, 1):
            if not phase.rows:
                raise ValueError(f"phase {number} has no rows. For all rows: rows = [{{}}]")
            weights = [("weight", rows.weight) for rows in phase.rows]
            for what, value in (("length", phase.length), *weights):
                if not 1 / _MOST <= value <= _MOST:
                    raise ValueError(
                        f"phase {number}: {what} must be from {1 / _MOST:g} to {_MOST:g} "
                        f"(got {value:g})"
                    )

    def starts(self, steps: int) -> list[int]:
        """Return the first step of each phase, followed by ``steps``, the total number of steps.

        Raises UsageError if ``steps`` is so small that a phase has no step.

        >>> Curriculum([Phase([PhaseRows()], 1), Phase([PhaseRows()], 2)]).starts(10)
        [0, 3, 10]
        """
        ends = [*accumulate(phase.length for phase in self.phase)]
        starts = [0, *(round(steps * end / ends[-1]) for end in ends)]
        for number, (first, end) in enumerate(pairwise(starts), 1):
            if first == end:
                raise UsageError(
                    f"--steps {steps} leaves no step for phase {number} of --curriculum. Use more "
                    "steps"
                )
        return starts

    def restarts(self, steps: int) -> tuple[int, ...] | None:
        """Return the steps at which the learning rate schedule starts over, or None if it never
        does.

        The result is meant for ``trainer.Recipe.starts``. Raises UsageError if ``steps`` is so
        small that a phase has no step.
        """
        starts = tuple(self.starts(steps))
        return starts if self.restart else None

    @property
    def title(self) -> str:
        """Summary of the curriculum in one short line. Equivalent files have the same title.

        >>> easy, hard = PhaseRows({"digits": "1..3"}, 0.2), PhaseRows({"digits": [4, 5]})
        >>> Curriculum([Phase([easy]), Phase([hard, easy], 3)], restart=True).title
        '1 of digits=1..3; 3 of digits=4|5 1, digits=1..3 0.2; restart'
        """
        phases = []
        for phase in self.phase:
            mixed = len(phase.rows) > 1
            titles = (rows.title + (f" {rows.weight:g}" if mixed else "") for rows in phase.rows)
            phases.append(f"{phase.length:.10g} of {', '.join(titles)}")
        return "; ".join([*phases, *["restart"] * self.restart])

    def settings(self) -> dict[str, Any]:
        """Return the phases and the revision of the file format as plain values.

        They are part of the settings that determine the version of a model.
        """
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain | {"revision": REVISION}


def shares(weights: Sequence[float], size: int) -> list[int]:
    """Divide ``size`` rows in proportion to ``weights``, and return the number of rows for each
    weight.

    Every weight gets at least one row.

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
        return any(_is_among(value, choice) for choice in wanted)
    try:
        return int(value) in Interval.parse(str(wanted))
    except ValueError:  # not a range, or not an integer
        return value == str(wanted)


def _shown(wanted: Wanted, between: str = ", ") -> str:
    return between.join(map(str, wanted)) if isinstance(wanted, list) else str(wanted)


def _unknown_key(message: str) -> str | None:
    """Reword msgspec's message about an unknown key: list the known keys, and number phases from 1.

    Returns None for any other message.
    """
    match = _UNKNOWN_KEY.fullmatch(message)
    if match is None:
        return None
    key, phase, row = match.groups()
    struct = Curriculum if phase is None else Phase if row is None else PhaseRows
    where = "" if phase is None else f"phase {int(phase) + 1}: "
    where += "" if row is None else f"rows {int(row) + 1}: "
    keys = [field.name for field in msgspec.structs.fields(struct)]
    return f"{where}{unknown('key', key, keys)}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split()).replace("`", "'").replace("$.", "")


class CurriculumSampler:
    """Chooses the rows of each training step, as a pure function of (seed, step).

    Within a phase, each selection of rows is read in its own order, epoch after epoch. A run can
    therefore resume at any step. If a phase mixes several selections, each keeps its fraction of
    every batch, even if it has few rows.
    """

    def __init__(
        self, curriculum: Curriculum, samples: EncodedSplit, size: int, steps: int
    ) -> None:
        """Raise UsageError, naming the phase, if rows do not exist or a batch is too small."""
        self._starts = curriculum.starts(steps)
        self._phases = [
            _orders(number, phase, samples, size)
            for number, phase in enumerate(curriculum.phase, 1)
        ]

    def at(self, seed: int, step: int) -> NDArray[np.int64]:
        """Return the indices of the rows of a training step, int64[batch]."""
        phase = min(bisect_right(self._starts, step), len(self._phases)) - 1
        within = step - self._starts[phase]
        return np.concatenate(
            [
                order.at(seed_of(seed, "phase", phase, number), within)
                for number, order in enumerate(self._phases[phase])
            ]
        )

    def row_count(self, steps: int) -> int:
        """Return the total number of rows in the batches of the first ``steps`` steps."""
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
            f"--curriculum: phase {number} mixes {len(phase.rows)} choices of rows, more than "
            f"--batch {size} has rows. Use a larger batch"
        )
    counts = shares([rows.weight for rows in phase.rows], size)
    try:
        return [
            EpochSampler(rows.chosen(samples), samples.lengths, count, filled=len(counts) > 1)
            for rows, count in zip(phase.rows, counts, strict=True)
        ]
    except UsageError as error:
        raise UsageError(f"--curriculum: phase {number}: {error}") from None
