"""comparison: sentences that compare two numbers. ``A parcel of 7 grams is lighter than ...``"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from numtok.arrays import Ints
from numtok.data.tasks._draws import uniforms_of_rows
from numtok.data.tasks._judged import JudgedTask, TextKind
from numtok.data.tasks._templates import Entry
from numtok.data.tasks._unrepeated import DrawnRows, are_of, identities, log_draw
from numtok.data.tasks.base import TaskSplit, setting
from numtok.errors import UsageError

_LARGEST = 1 << 53
_COUNTED = 1 << 20  # maximum number of a range's values whose close partners are counted


class _Sentence(Entry):
    """A template with the range of its numbers."""

    text: str
    numbers: tuple[int, int]
    correct: Literal["NUMA < NUMB", "NUMA > NUMB"]


@dataclass(frozen=True, eq=False)
class _ComparisonKind(TextKind):
    low: int
    high: int
    first_is_smaller: bool  # in correct sentences


@dataclass(frozen=True)
class ComparisonTask(JudgedTask):
    """Sentences that compare two numbers, labeled as correct or incorrect.

    The task follows NumGPT's General Number Comparison (GNC), with 20 templates about ages,
    weights, prices and so on: "A person of 23 years is younger than a person of 40 years." All
    templates are used in the same number of rows, half of which are correct. Each template has its
    own range of numbers, from 15..104 for people's ages, as in the paper, to 10000..1500000000.
    The two numbers in a sentence always differ and are sampled log-uniformly: in a range from low
    to high, n has probability log((n + 1) / n) / log((high + 1) / low).

    ``--near 1.1`` samples hard pairs: the larger number is less than 1.1 times the smaller one (up
    to rounding).

    Within a template, a pair of numbers appears at most once in each order, and never in two
    splits: a hash of the seed, the template and the numbers determines the split. If a range has
    too few pairs for its rows (15..104 has 8,010), more rows use the other templates.

    ``--templates`` reads your own sentences instead of
    numtok/data/tasks/templates/comparison.toml. Rows have the group ``template``.

    >>> made = ComparisonTask().unit(0, TaskSplit("train", 1), 0)
    >>> print(made.rows.decode().strip())  # doctest: +NORMALIZE_WHITESPACE
    {"id":"train-0","text":"A village 427 kilometres away is nearer than a village 6 kilometres
    away.","label":"incorrect","group":{"template":"village-nearer"}}

    Raises UsageError if a setting or the file of templates is invalid.
    """

    revision = 2
    source = "NumGPT, synthetic tasks"
    digest = "072f5861dffdc308"
    samples: ClassVar[int] = 40_000
    fields: ClassVar[tuple[str, ...]] = ("NUMA", "NUMB")

    near: float = setting(0.0, "Maximum ratio of the larger to the smaller number; 0: no limit.")
    templates: str = setting("", "TOML file with your own sentences.")

    def __post_init__(self) -> None:
        if self.near and not 1 < self.near < float("inf"):
            raise UsageError(
                f"comparison: near must be above 1, such as 1.1, or 0 for any two numbers (got "
                f"{self.near:g})"
            )
        for kind, possible in zip(self._kinds, self._possible, strict=True):
            if not possible:
                near = f" with near={self.near:g}" if self.near else ""
                raise self._file.wrong(
                    kind.group["template"],
                    f"there are no two different numbers from {kind.low} to {kind.high}{near}. "
                    "Choose a wider range",
                )

    @cached_property
    def _kinds(self) -> Sequence[_ComparisonKind]:
        kinds = []
        for entry, sentence in self._file.entries("templates", _Sentence).items():
            self._file.checked_range(entry, sentence.numbers, 1, _LARGEST)
            pattern = self._file.pattern(entry, sentence.text, self.fields)
            group = {"template": sentence.name}
            first_is_smaller = "<" in sentence.correct
            kinds.append(_ComparisonKind(group, pattern, *sentence.numbers, first_is_smaller))
        return kinds

    @property
    def _possible(self) -> list[int]:
        """Number of unordered pairs of numbers per template; with ``near`` a lower bound."""
        counts = []
        for kind in self._kinds:
            count = kind.high - kind.low + 1
            if self.near:
                smaller = kind.low + np.arange(min(count, _COUNTED), dtype=np.float64)
                largest = np.minimum(np.ceil((smaller + 1) * self.near) - 1, kind.high)
                counts.append(int((largest - smaller).sum()))
            else:
                counts.append(count * (count - 1) // 2)
        return counts

    def _draw(self, seed: int, split: TaskSplit, which: Ints) -> Sequence[Ints]:
        label = np.arange(len(which)) % 2
        properties = self._of_kinds(which, "low", "high", "first_is_smaller")

        def tried(rows: Ints, attempt: int) -> DrawnRows:
            low, high, first_is_smaller = properties[:, rows]
            purpose = f"comparison {split.name} {attempt} {seed}"
            a, b = _two(uniforms_of_rows(purpose, range(len(rows)), 2), low, high, self.near)
            smaller, larger = np.minimum(a, b), np.maximum(a, b)
            ascending = first_is_smaller == label[rows]
            hashes = identities(seed, which[rows], smaller, larger)
            is_inside = (smaller < larger) & (smaller >= low) & (larger <= high)
            numbers = np.where(ascending, [smaller, larger], [larger, smaller])
            usable = are_of(split, hashes) & is_inside
            return DrawnRows(numbers, hashes ^ ascending.astype(np.uint64), usable)

        return [*self._without_repeats(split, len(which), 1, tried), label]


def _two(
    chance: np.ndarray[tuple[int, int], np.dtype[np.float64]], low: Ints, high: Ints, near: float
) -> tuple[Ints, Ints]:
    """Sample two numbers per row [n] log-uniformly; with ``near`` some may be out of range."""
    if not near:
        return log_draw(chance[0], low, high), log_draw(chance[1], low, high)
    first = low * np.exp(chance[0] * np.log((high + 1) / low))
    second = first * near ** (2 * chance[1] - 1)
    return first.astype(np.int64), second.astype(np.int64)
