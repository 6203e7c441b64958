"""comparison: two numbers in a sentence. ``A parcel of 7 grams is lighter than ... 12 grams.``"""

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
_COUNTED = 1 << 20  # numbers of a range whose near ones are counted: the rest only adds to these


class _Sentence(Entry):
    """A template."""

    text: str
    numbers: tuple[int, int]
    correct: Literal["NUMA < NUMB", "NUMA > NUMB"]


@dataclass(frozen=True, eq=False)
class _ComparisonKind(TextKind):
    low: int
    high: int
    first_is_smaller: bool  # in a correct sentence


@dataclass(frozen=True)
class ComparisonTask(JudgedTask):
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

    revision = 2
    source = "NumGPT, synthetic tasks"
    digest = "072f5861dffdc308"
    samples: ClassVar[int] = 40_000
    fields: ClassVar[tuple[str, ...]] = ("NUMA", "NUMB")

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
                raise self._file.wrong(
                    kind.group["template"],
                    f"no two different numbers from {kind.low} to {kind.high} can be drawn{told}; "
                    "give a wider range",
                )

    @cached_property
    def _kinds(self) -> Sequence[_ComparisonKind]:
        kinds = []
        for entry, one in self._file.entries("templates", _Sentence).items():
            self._file.checked_range(entry, one.numbers, 1, _LARGEST)
            pattern = self._file.pattern(entry, one.text, self.fields)
            group = {"template": one.name}
            kinds.append(_ComparisonKind(group, pattern, *one.numbers, "<" in one.correct))
        return kinds

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

    def _draw(self, seed: int, split: TaskSplit, which: Ints) -> Sequence[Ints]:
        label = np.arange(len(which)) % 2
        known = self._of_kinds(which, "low", "high", "first_is_smaller")

        def tried(rows: Ints, attempt: int) -> DrawnRows:
            low, high, first_is_smaller = known[:, rows]
            purpose = f"comparison {split.name} {attempt} {seed}"
            one, other = _two(uniforms_of_rows(purpose, range(len(rows)), 2), low, high, self.near)
            smaller, larger = np.minimum(one, other), np.maximum(one, other)
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
    """Two numbers each [n] by their logarithm; some may be out of range where they are near."""
    if not near:
        return log_draw(chance[0], low, high), log_draw(chance[1], low, high)
    one = low * np.exp(chance[0] * np.log((high + 1) / low))
    other = one * near ** (2 * chance[1] - 1)
    return one.astype(np.int64), other.astype(np.int64)
