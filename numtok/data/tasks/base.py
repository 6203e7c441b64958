"""The contract of a task, which generates rows (texts or tables) from a seed.

A task is a frozen dataclass whose fields are its settings, each declared with
:func:`numtok.declaration.setting`. Some tasks also read an artifact. A task generates the rows of a
split in units. A unit is a pure function of the settings, the seed, the split and the unit's index,
so any process can generate units in any order.
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
from numtok.registry import Registry, name_of
from numtok.setting_values import Range
from numtok.stored_json import Scalar

#: Splits divide [0, SHARES) among themselves. A task hashes content that splits must not share to a
#: number in this range.
SHARES = 1 << 60

#: Default number of rows and default splits of ``numtok gen``.
SAMPLES = 10_000
SPLITS = "train=0.8,validation=0.1,test=0.1"


@dataclass(frozen=True)
class TaskSplit:
    """One split of the data: its number of rows, and the hashes ``begin <= hash < end`` it owns."""

    name: str
    rows: int
    begin: int = 0
    end: int = SHARES

    @property
    def share(self) -> float:
        """Fraction of all hashes that the split owns."""
        return (self.end - self.begin) / SHARES


class GivenFile(NamedTuple):
    """A file passed as a setting: its path, its sha256 and its size in bytes."""

    where: str
    digest: str
    bytes: int


class Task(ABC):
    """Base of all tasks.

    Subclasses are final frozen dataclasses, each a :class:`TextTask`, a :class:`TableTask` or a
    :class:`DerivedTask`; their fields are settings.

    revision
        Version of the rows; increase it when the rows change.
    source
        Paper and section.
    unit_rows
        Number of rows per unit (the last one of a split may be smaller): at most about a second of
        work.
    digest
        First 16 hexadecimal digits of the sha256 of a fixed sample: unit 0 of
        ``TaskSplit("train", 100)`` with seed 0 and default settings.
    samples, split
        Defaults of these options, such as the counts of the paper.
    """

    samples: ClassVar[int] = SAMPLES
    split: ClassVar[str] = SPLITS

    revision: ClassVar[int]
    source: ClassVar[str]
    unit_rows: ClassVar[int]
    digest: ClassVar[str]

    @property
    def possible(self) -> int | None:
        """Number of different rows; None if it is practically unlimited."""
        return None

    @property
    def own_splits(self) -> "list[TaskSplit] | None":
        """Splits, sorted by name, of a task whose settings determine their sizes; None if
        ``--rows`` and ``--split`` do."""
        return None

    @property
    def shifted(self) -> tuple[str, ...] | None:
        """Names of out-of-distribution splits, which begin with ``ood-``; other splits cannot use
        that prefix. None if the task ignores the names of splits."""
        return None

    @property
    def files(self) -> Mapping[str, GivenFile]:
        """Files passed as settings, by setting; their content, not the path, is versioned."""
        return {}

    def rows_of(self, split: TaskSplit, index: int) -> int:
        """Return the number of rows of a unit."""
        return min(self.unit_rows, split.rows - index * self.unit_rows)


def check_range(task: Task, name: str, least: float, most: float, *, is_whole: bool = True) -> None:
    """Raise UsageError for a setting whose range exceeds the bounds ``least`` to ``most``."""
    value: Range = getattr(task, name)
    is_broken = is_whole and (value.low % 1 or value.high % 1)
    if is_broken or not least <= value.low <= value.high <= most:
        kind = "a whole number" if is_whole else "a number"
        raise UsageError(
            f"{name_of(task)}: {name} must be {kind}, or a range, from {least:,} to {most:,} "
            f"(got {value})"
        )


class Made(NamedTuple):
    """Rows of texts (``row.Row`` as JSONL, UTF-8), and counts by name, with words joined by
    ``_``."""

    rows: bytes
    counts: dict[str, int]


class WrittenRow(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A ``row.Row`` as tasks write it: fields in the order of the JSON, without defaults."""

    id: str
    text: str
    targets: dict[str, list[tuple[int, int]]] | None = None
    answer_start: int | None = None
    label: str | None = None
    group: Mapping[str, Scalar] | None = None


class TextTask(Task):
    """A task that generates texts with numbers."""

    @abstractmethod
    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        """Generate the rows from ``index * unit_rows`` on of a split.

        No text appears twice in a split or in two splits of the same seed, unless the task
        documents an exception. Ids are unique across splits. Raises UsageError if there are too few
        different rows; a task with its own splits may generate fewer and count them.
        """


class TableTask(Task):
    """A task that generates tables for regression: number features and the target ``y``.

    ``digest`` is taken over values with nine significant digits, because the last bits of functions
    such as exp differ between processors.
    """

    @property
    def features(self) -> list[str]:
        """Names of the features in order; by default a single one, x."""
        return ["x"]

    @property
    def notes(self) -> list[str]:
        """Sentences that users of the table must know."""
        return []

    @abstractmethod
    def unit(self, seed: int, split: TaskSplit, index: int) -> tuple[Floats, Floats]:
        """Generate the rows from ``index * unit_rows`` on of a split.

        Returns finite features [n, d] and targets [n]. Rows are sampled independently, so repeated
        rows are practically impossible.
        """


class Derived(NamedTuple):
    """A task bound to an artifact, and extra facts for the manifest."""

    task: TextTask
    facts: dict[str, Any]


class DerivedTask(Task):
    """A task that generates texts from an artifact (``numtok gen TASK --from REF``).

    ``reads`` is the kind of artifact. ``digest`` is taken over a small artifact made by the tests.
    """

    reads: ClassVar[str]

    @abstractmethod
    def over(self, folder: Path, splits: Sequence[TaskSplit]) -> Derived:
        """Return the task that generates the rows of all splits from the artifact in a folder.

        The result only depends on the content and is sent to other processes, which read the data
        of their units from the folder. Raises UsageError if the artifact is too small for the
        settings, DataError and StoreError if it is invalid or damaged.
        """


TASKS = Registry[Task]("numtok.data.tasks", "task", Task)
