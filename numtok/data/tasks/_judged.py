"""Texts of templates that are right or wrong: what tasks that make such have in common.

Rows come in pairs, one of them right and one wrong; no two rows of a kind have the same numbers.
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
    """What texts there are of one kind: the groups of their rows, and their pattern."""

    group: dict[str, str]
    pattern: Pattern


class JudgedTask(TextTask):
    """A maker of texts that are right or wrong, of a file of templates.

    ``fields`` are those of the numbers of a text; ``templates`` is a setting, the path of a file in
    place of numtok's own, which is called as the task.
    """

    unit_rows: ClassVar[int] = 1 << 16
    split: ClassVar[str] = "train=0.8,test=0.2"
    fields: ClassVar[tuple[str, ...]]

    templates: str

    @property
    def generates(self) -> bool:
        """Whether the number at the end of each text is to be written; else it is judged."""
        return False

    @property
    @abstractmethod
    def _kinds(self) -> Sequence[TextKind]:
        """The kinds of texts; UsageError for a file of templates that is not right."""

    @property
    @abstractmethod
    def _possible(self) -> list[int]:
        """Of each kind, how many pairs of rows there are in all splits, or nearly so many."""

    @abstractmethod
    def _draw(self, seed: int, split: TaskSplit, which: Ints) -> Sequence[Ints]:
        """The numbers of all rows of a split, a column for each field, and their labels: 1 for
        right. ``which`` [rows] is the kind of each row, that of a pair twice in a row."""

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
        """What the kinds of rows say, [names, rows]."""
        every = [[getattr(kind, name) for name in names] for kind in self._kinds]
        found: Ints = np.array(every, np.int64)[which].T
        return found

    def _without_repeats(
        self, split: TaskSplit, rows: int, tries: int, draw: Callable[[Ints, int], DrawnRows]
    ) -> Ints:
        """Numbers [columns, rows] with different hashes; UsageError where too few are to be had.

        ``tries`` is how many draws of a row a split of all places would need.
        """
        found = without_repeats(rows, len(self.fields), int(tries / split.share) + 1, draw)
        if found is None:
            raise self._too_few(split)
        return found

    def _too_few(self, split: TaskSplit) -> UsageError:
        return UsageError(
            f"{spec_of(self)} has {self.possible:,} different rows, of which some three quarters "
            f"can be drawn: too few for {split.rows:,} in the split {split.name!r}, with "
            f"{split.share:.3g} of them; give fewer --rows, or wider ranges"
        )


@lru_cache(maxsize=2)
def _drawn(task: JudgedTask, digest: str, seed: int, split: TaskSplit) -> Ints:
    """Kind, numbers and label of all rows of a split, [2 + numbers, rows], in random order; kinds
    are as equally often as they can be. ``digest`` is that of the templates."""
    counts = shared_out(-(-split.rows // 2), task._possible, split)
    if counts is None:
        raise task._too_few(split)
    which = np.repeat(np.arange(len(counts)), 2 * counts)
    purpose = f"{name_of(task)} {split.name} {seed}"
    order = random_order(f"order {purpose}", len(which))
    if len(order) > split.rows:  # of the last pair one, either, is too many
        last = len(order) - 1 - int(random_order(f"order odd {purpose}", 2)[0])
        order = order[order != last]
    return np.array([which, *task._draw(seed, split, which)])[:, order]
