"""The contract of a task: rows of data, texts or tables, made from a seed, and of some tasks from
an artifact besides.

A task is a frozen dataclass whose fields are its settings, each declared with
:func:`numtok.declaration.setting`. It makes the rows of a split a unit at a time. A unit is a pure
function of the settings, the seed, the split and the unit's index, so units can
be made in any order, by any process, and again.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec

from numtok.arrays import Floats
from numtok.declaration import setting as setting
from numtok.errors import UsageError
from numtok.registry import Range, Registry, name_of
from numtok.stored_json import Scalar

#: Splits divide [0, SHARES) among them; a task hashes what splits must not share to a place in it.
SHARES = 1 << 60

#: What ``numtok gen`` makes of a task that says nothing else.
SAMPLES = 10_000
SPLITS = "train=0.8,validation=0.1,test=0.1"


@dataclass(frozen=True)
class TaskSplit:
    """One split of the data: how many rows, and the places ``begin <= place < end`` it owns."""

    name: str
    rows: int
    begin: int = 0
    end: int = SHARES

    @property
    def share(self) -> float:
        """The part of all places that are its own."""
        return (self.end - self.begin) / SHARES


class GivenFile(NamedTuple):
    """A file that a user named as a setting: where, its sha256, and its size."""

    where: str
    digest: str
    bytes: int


class Task(ABC):
    """A maker of data. Subclasses are final frozen dataclasses, each a :class:`TextTask`, a
    :class:`TableTask` or a :class:`DerivedTask`; their fields are settings.

    Class attributes: ``revision`` (rises when the rows change), ``source`` (paper, section),
    ``unit_rows`` (rows in a unit, but for the last of a split: about a second of work or less)
    and ``digest``, the first 16 hexadecimal digits of the sha256 of a fixed sample, which is
    the unit of ``(0, Split("train", 100), 0)`` with default settings. ``samples`` and ``split``
    are the defaults of these options, such as the counts of the paper.
    """

    samples: ClassVar[int] = SAMPLES
    split: ClassVar[str] = SPLITS

    revision: ClassVar[int]
    source: ClassVar[str]
    unit_rows: ClassVar[int]
    digest: ClassVar[str]

    @property
    def possible(self) -> int | None:
        """How many different rows there are; None if they never run out."""
        return None

    @property
    def own_splits(self) -> "list[TaskSplit] | None":
        """The splits, by name, of a task whose settings say how many rows each has; None where
        ``--rows`` and ``--split`` do."""
        return None

    @property
    def shifted(self) -> tuple[str, ...] | None:
        """The splits whose rows differ from all others on purpose; their names begin with
        ``ood-``, and no other split may be called so. None where names mean nothing."""
        return None

    @property
    def files(self) -> Mapping[str, GivenFile]:
        """By setting, the files that settings name; content makes the version, not the path."""
        return {}

    def rows_of(self, split: TaskSplit, index: int) -> int:
        """How many rows a unit has."""
        return min(self.unit_rows, split.rows - index * self.unit_rows)


def check_range(task: Task, name: str, least: float, most: float, *, is_whole: bool = True) -> None:
    """Raise UsageError for a setting, a range, that goes beyond what is possible."""
    value: Range = getattr(task, name)
    is_broken = is_whole and (value.low % 1 or value.high % 1)
    if is_broken or not least <= value.low <= value.high <= most:
        kind = "whole numbers" if is_whole else "numbers"
        raise UsageError(
            f"{name_of(task)}: {name}={value} is not possible; allowed are {kind} from {least:,} "
            f"to {most:,}, one or a range"
        )


class Made(NamedTuple):
    """Rows of texts, JSONL of ``row.Row`` in ASCII or UTF-8, and what was counted with them:
    words for a table, joined by ``_``, and how often that was."""

    rows: bytes
    counts: dict[str, int]


class WrittenRow(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A ``row.Row`` as tasks write it: its fields in the order of the JSON, defaults left out."""

    id: str
    text: str
    targets: dict[str, list[tuple[int, int]]] | None = None
    answer_start: int | None = None
    label: str | None = None
    group: Mapping[str, Scalar] | None = None


class TextTask(Task):
    """A maker of texts full of numbers."""

    @abstractmethod
    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        """Rows ``index * unit_rows`` and on of a split.

        No text comes twice in a split, and none in two splits of the same seed, but for what a
        task says of its own. Ids are different in all splits. Raises UsageError where there are
        too few rows to be had; a task with its own splits may make fewer, and counts them.
        """


class TableTask(Task):
    """A maker of tables for regression: number features and the target ``y``.

    The last bits of functions such as exp differ between processors, and so do those of the rows;
    ``digest`` is therefore of values written with nine significant digits.
    """

    @property
    def features(self) -> list[str]:
        """The names of the features, in order: one, where a task says nothing else."""
        return ["x"]

    @property
    def notes(self) -> list[str]:
        """Sentences that a user of the table must know."""
        return []

    @abstractmethod
    def unit(self, seed: int, split: TaskSplit, index: int) -> tuple[Floats, Floats]:
        """Rows ``index * unit_rows`` and on of a split: features [n, d] and target [n], finite.

        Drawn independently, so no row is in two places but by a chance that nobody will meet.
        """


class Derived(NamedTuple):
    """Texts of an artifact: what makes them, and what the manifest must say of them besides."""

    task: TextTask
    facts: dict[str, Any]


class DerivedTask(Task):
    """A maker of texts from an artifact, which ``numtok gen TASK --from REF`` names.

    ``reads`` is the kind of artifact. ``digest`` is of a small one that the tests make.
    """

    reads: ClassVar[str]

    @abstractmethod
    def over(self, folder: Path, splits: Sequence[TaskSplit]) -> Derived:
        """What makes the rows of all splits from the artifact in a folder.

        The same for the same content. It goes to other processes, which read in the folder what
        their units need. Raises UsageError for settings that the artifact is too small for,
        DataError and StoreError for what is wrong with it.
        """


TASKS = Registry[Task]("numtok.data.tasks", "task", Task)
