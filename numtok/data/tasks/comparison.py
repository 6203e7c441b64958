"""comparison: two numbers in a sentence. ``A parcel of 7 grams is lighter than ... 12 grams.``"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from numtok.data.tasks._draws import uniforms_of_rows
from numtok.data.tasks._judged import judged, pairs_of_kinds, shuffled, too_few
from numtok.data.tasks._templates import Entry, Pattern, Templates, fill_each
from numtok.data.tasks._unrepeated import (
    DrawnRows,
    Whole,
    are_of,
    identities,
    log_draw,
    without_repeats,
)
from numtok.data.tasks.base import GivenFile, Made, TaskSplit, TextTask, setting
from numtok.errors import UsageError

_LARGEST = 1 << 53
_COUNTED = 1 << 20  # numbers of a range whose near ones are counted: the rest only adds to these


class _Sentence(Entry):
    """A template."""

    text: str
    numbers: tuple[int, int]
    correct: Literal["NUMA < NUMB", "NUMA > NUMB"]


class _ComparisonKind(NamedTuple):
    template: str
    low: int
    high: int
    first_is_smaller: bool  # in a correct sentence
    pattern: Pattern


@dataclass(frozen=True)
class ComparisonTask(TextTask):
    """Sentences that compare two numbers: is it correct? Ages, weights, prices, distances, ...

    As NumGPT's General Number Comparison (GNC): 20 templates, such as "A person of 23 years is
    younger than a person of 40 years.", as many rows of each, half of them correct. Each template
    has a range of numbers, from 15..104 (persons, as in the paper) to 10000..1500000000. Both
    numbers are drawn from it by their logarithm: n from low to high with the probability
    log((n + 1) / n) / log((high + 1) / low). Equal ones are never drawn.

    ``--near 1.1`` draws numbers of which the larger is less than 1.1 times the smaller, or just
    that where they are rounded: these are hard to tell apart.

    No template has the same two numbers in the same order twice, and none has them in two splits,
    in either order: a hash of the seed and the three says which split has them. Where a range has
    too few for its part of the rows (that of persons has 8,010), others have more.

    ``--templates`` names a file of own sentences in place of those of numtok, which are in
    numtok/data/tasks/templates/comparison.toml. The group is ``template``.

    >>> made = ComparisonTask().unit(0, TaskSplit("train", 1), 0)
    >>> print(made.rows.decode().strip())  # doctest: +NORMALIZE_WHITESPACE
    {"id":"train-0","text":"A village 427 kilometres away is nearer than a village 6 kilometres
    away.","label":"incorrect","group":{"template":"village-nearer"}}

    Raises UsageError for settings that cannot be, and for a file of templates that is not right.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "NumGPT, synthetic tasks"
    unit_rows: ClassVar[int] = 1 << 16
    digest: ClassVar[str] = "072f5861dffdc308"
    samples: ClassVar[int] = 40_000
    split: ClassVar[str] = "train=0.8,test=0.2"

    near: float = setting(0.0, "The larger number is less than so many times the smaller; 0: any.")
    templates: str = setting("", "A TOML file of own sentences.")

    def __post_init__(self) -> None:
        if self.near and not 1 < self.near < float("inf"):
            raise UsageError(
                f"comparison: near={self.near:g} is not possible; allowed are numbers above 1, "
                "such as 1.1, and 0 for any two numbers"
            )
        for kind, possible in zip(self._kinds, self._possible, strict=True):
            if not possible:
                told = f" with near={self.near:g}" if self.near else ""
                raise UsageError(
                    f"{self._file.where}: {kind.template}: no two different numbers from "
                    f"{kind.low} to {kind.high} can be drawn{told}; give a wider range"
                )

    @cached_property
    def _file(self) -> Templates:
        return Templates(self.templates, "comparison.toml")

    @cached_property
    def _kinds(self) -> Sequence[_ComparisonKind]:
        kinds = []
        for number, one in enumerate(self._file.entries("templates", _Sentence), 1):
            entry = f"templates {number} ({one.name})"
            self._file.checked_range(entry, one.numbers, 1, _LARGEST)
            pattern = self._file.pattern(entry, one.text, ["NUMA", "NUMB"])
            kinds.append(_ComparisonKind(one.name, *one.numbers, "<" in one.correct, pattern))
        return kinds

    @property
    def files(self) -> Mapping[str, GivenFile]:
        return {"templates": self._file.given} if self.templates else {}

    @property
    def _possible(self) -> list[int]:
        """Of each template, how many sets of two numbers; with ``near`` at least so many."""
        found = []
        for kind in self._kinds:
            count = kind.high - kind.low + 1
            if self.near:
                smaller = kind.low + np.arange(min(count, _COUNTED), dtype=np.float64)
                largest = np.minimum(np.ceil((smaller + 1) * self.near) - 1, kind.high)
                found.append(int((largest - smaller).sum()))
            else:
                found.append(count * (count - 1) // 2)
        return found

    @property
    def possible(self) -> int:
        return 2 * sum(self._possible)

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        drawn = _drawn(self, self._file.given.digest, seed, split)
        first = index * self.unit_rows
        which, a, b, label = drawn[:, first : first + self.rows_of(split, index)]
        texts = fill_each([kind.pattern for kind in self._kinds], which, {"NUMA": a, "NUMB": b})
        groups = [{"template": kind.template} for kind in self._kinds]
        return judged(split, first, texts, label, groups, which)


@lru_cache(maxsize=2)
def _drawn(task: ComparisonTask, digest: str, seed: int, split: TaskSplit) -> Whole:
    """Template, both numbers and label of all rows of a split, [4, rows]; ``digest`` is that of
    the templates."""
    which = np.repeat(pairs_of_kinds(task, task._possible, split), 2)
    label = np.arange(len(which)) % 2
    columns = ("low", "high", "first_is_smaller")
    known = np.array([[getattr(kind, name) for name in columns] for kind in task._kinds])[which].T

    def tried(rows: Whole, attempt: int) -> DrawnRows:
        low, high, first_is_smaller = known[:, rows]
        purpose = f"comparison {split.name} {attempt} {seed}"
        one, other = _two(uniforms_of_rows(purpose, range(len(rows)), 2), low, high, task.near)
        smaller, larger = np.minimum(one, other), np.maximum(one, other)
        ascending = first_is_smaller == label[rows]
        hashes = identities(seed, which[rows], smaller, larger)
        usable = are_of(split, hashes) & (smaller < larger) & (smaller >= low) & (larger <= high)
        numbers = np.where(ascending, [smaller, larger], [larger, smaller])
        return DrawnRows(numbers, hashes ^ ascending.astype(np.uint64), usable)

    numbers = without_repeats(len(which), 2, int(1 / split.share) + 1, tried)
    if numbers is None:
        raise too_few(task, split)
    columns_of = [which, *numbers, label]
    return np.array(shuffled(f"comparison {split.name} {seed}", split.rows, columns_of))


def _two(
    chance: np.ndarray[tuple[int, int], np.dtype[np.float64]], low: Whole, high: Whole, near: float
) -> tuple[Whole, Whole]:
    """Two numbers each [n] by their logarithm; some may be out of range where they are near."""
    if not near:
        return log_draw(chance[0], low, high), log_draw(chance[1], low, high)
    one = low * np.exp(chance[0] * np.log((high + 1) / low))
    other = one * near ** (2 * chance[1] - 1)
    return one.astype(np.int64), other.astype(np.int64)
