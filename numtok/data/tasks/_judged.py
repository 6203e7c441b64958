"""Base of tasks that generate correct and incorrect texts from templates.

Rows come in pairs of a correct and an incorrect one. The numbers of each row are unique within its
kind of text.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import msgspec
import numpy as np

from numtok.arrays import Ints
from numtok.data.tasks._draws import random_order
from numtok.data.tasks._templates import Pattern, Templates, fill_each
from numtok.data.tasks._unrepeated import DrawnRows, shared_out, without_repeats
from numtok.data.tasks.base import GivenFile, Made, TaskSplit, TextTask, WrittenRow
from numtok.errors import UsageError
from numtok.registry import name_of, spec_of

_LABELS = np.array(["incorrect", "correct"])


@dataclass(frozen=True, eq=False)
class TextKind:
    """A kind of text: its pattern, and the values of ``group`` in its rows."""

    group: dict[str, str]
    pattern: Pattern


class JudgedTask(TextTask):
    """A task that generates correct and incorrect texts from a file of templates.

    fields
        Names of the fields for numbers in a template.
    templates
        Path of a file to use instead of numtok's own, which is named after the task.
    """

    unit_rows: ClassVar[int] = 1 << 16
    split: ClassVar[str] = "train=0.8,test=0.2"
    fields: ClassVar[tuple[str, ...]]

    templates: str

    @property
    def generates(self) -> bool:
        """True if models generate the last number of each text; false if they judge the text."""
        return False

    @property
    @abstractmethod
    def _kinds(self) -> Sequence[TextKind]:
        """Kinds of texts. Raises UsageError if the file of templates is invalid."""

    @property
    @abstractmethod
    def _possible(self) -> list[int]:
        """Number (nearly exact) of pairs of rows of each kind in all splits."""

    @abstractmethod
    def _draw(self, seed: int, split: TaskSplit, which: Ints) -> Sequence[Ints]:
        """Sample all rows of a split: one column per field, then the labels (1 is correct).

        ``which`` [rows] is the kind of each row; both rows of a pair follow each other.
        """

    @cached_property
    def _file(self) -> Templates:
        return Templates(self.templates, f"{name_of(self)}.toml")

    @property
    def files(self) -> Mapping[str, GivenFile]:
        return {"templates": self._file.given} if self.templates else {}

    @property
    def possible(self) -> int:
        return 2 * sum(self._possible)

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        drawn = _drawn(self, self._file.given.digest, seed, split)
        first, kinds = index * self.unit_rows, self._kinds
        which, *columns, label = drawn[:, first : first + self.rows_of(split, index)]
        numbers = dict(zip(self.fields, columns, strict=True))
        texts = fill_each([kind.pattern for kind in kinds], which, numbers)
        lines = []
        rows = zip(texts, _LABELS[label].tolist(), which.tolist(), strict=True)
        for number, (text, name, kind) in enumerate(rows, first):
            line = WrittenRow(id=f"{split.name}-{number}", text=text, group=kinds[kind].group)
            if self.generates:
                line.answer_start = text.rindex(" ") + 1
                line.targets = {"answer": [(line.answer_start, len(text))]}
            else:
                line.label = name
            lines.append(line)
        return Made(msgspec.json.Encoder().encode_lines(lines), {})

    def _of_kinds(self, which: Ints, *names: str) -> Ints:
        """Return attributes of each row's kind, [names, rows]."""
        every = [[getattr(kind, name) for name in names] for kind in self._kinds]
        attributes: Ints = np.array(every, np.int64)[which].T
        return attributes

    def _without_repeats(
        self, split: TaskSplit, rows: int, tries: int, draw: Callable[[Ints, int], DrawnRows]
    ) -> Ints:
        """Sample numbers [columns, rows] with different hashes; UsageError if there are too few.

        ``tries`` is the number of candidates per row needed by a split that owns all hashes.
        """
        numbers = without_repeats(rows, len(self.fields), int(tries / split.share) + 1, draw)
        if numbers is None:
            raise UsageError(
                f"{spec_of(self)}: some texts have too few different numbers for the split "
                f"{split.name!r}. Reduce --rows, or choose wider ranges"
            )
        return numbers

    def _too_few(self, split: TaskSplit) -> UsageError:
        return UsageError(
            f"{spec_of(self)} has {self.possible:,} different rows, of which about 75% can be "
            f"sampled: too few for {split.rows:,} in the split {split.name!r}, which has "
            f"{split.share:.3g} of them. Reduce --rows, or choose wider ranges"
        )


@lru_cache(maxsize=2)
def _drawn(task: JudgedTask, digest: str, seed: int, split: TaskSplit) -> Ints:
    """Sample kind, numbers and label of all rows of a split in random order [2 + numbers, rows].

    Kinds are as balanced as possible. ``digest`` is that of the templates.
    """
    counts = shared_out(-(-split.rows // 2), task._possible, split)
    if counts is None:
        raise task._too_few(split)
    which = np.repeat(np.arange(len(counts)), 2 * counts)
    purpose = f"{name_of(task)} {split.name} {seed}"
    order = random_order(f"order {purpose}", len(which))
    if len(order) > split.rows:  # drop either row of the last pair
        last = len(order) - 1 - int(random_order(f"order odd {purpose}", 2)[0])
        order = order[order != last]
    return np.array([which, *task._draw(seed, split, which)])[:, order]
