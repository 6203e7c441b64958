"""measurement: weights and sizes of several objects. ``Q: How many grams are 2 eggs? A: 80``"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

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
    parts_of,
    without_repeats,
)
from numtok.data.tasks.base import GivenFile, Made, TaskSplit, TextTask, setting
from numtok.errors import UsageError
from numtok.registry import Range

_LARGEST = 1 << 53  # of any answer: what a float64 holds exactly


class _MeasurementQuestion(Entry):
    """A template."""

    text: str


class _MeasuredObject(Entry):
    """An object: its plural, and by template the range of one."""

    plural: str
    ranges: dict[str, tuple[int, int]]


class _MeasurementKind(NamedTuple):
    """An object and a template: its place among the objects, and among the templates of that."""

    template: str
    object: str
    number: int
    part: int
    parts: int
    low: int
    high: int
    pattern: Pattern


@dataclass(frozen=True)
class Measurement(TextTask):
    """Questions for the weight or size of several objects, each with an answer: is it correct?

    As NumGPT's Multiple Measurement Estimation (MME): 20 objects, 4 templates, as many rows of
    each object and template, half of them correct. An answer is ``correct`` from ANS_MIN to
    ANS_MAX, the multiplier times the range of one object, and ``incorrect`` from 0.01 ANS_MIN to
    below ANS_MIN or from above ANS_MAX to 100 ANS_MAX (``--reach`` is that factor). Numbers are
    whole and drawn by their logarithm: n from low to high with the probability log((n + 1) / n) /
    log((high + 1) / low). The paper says so of the multiplier, but neither its range nor how
    answers are drawn: here all are drawn so, from 1 to 100 and from their ranges, and incorrect
    answers are as often too small as too large.

    Each multiplier that is drawn gets two rows of the split, one correct and one incorrect: so a
    question alone tells nothing. An answer without its question tells something where it is very
    small or very large, and with the object alone much: who knows which answers are correct for 1
    to 100 eggs is right in three of four rows. More multipliers, or a smaller reach, make it less.

    No multiplier, object and answer come together twice in the data, whatever the template: a hash
    of the seed and the three says which split and which template may have them. ``--templates``
    names a file of own objects and questions in place of those of numtok, which are in
    numtok/data/tasks/templates/measurement.toml. Groups are ``template`` and ``object``.

    >>> made = Measurement().unit(0, TaskSplit("train", 1), 0)
    >>> print(made.rows.decode().strip())  # doctest: +NORMALIZE_WHITESPACE
    {"id":"train-0","text":"Q: How many millimetres long is a row of 33 walnuts laid end to end?
    A: 1157","label":"correct","group":{"template":"length","object":"walnut"}}

    Raises UsageError for settings that cannot be, and for a file of templates that is not right.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, synthetic tasks"
    unit_rows: ClassVar[int] = 1 << 16
    digest: ClassVar[str] = "1ce71636cb9ce422"
    samples: ClassVar[int] = 20_000
    split: ClassVar[str] = "train=0.8,test=0.2"

    multipliers: Range = setting(Range(1, 100), "How many objects, drawn by their logarithm.")
    reach: float = setting(
        100.0, "Incorrect answers are off by this factor at most.", at_least=2, at_most=1_000_000
    )
    templates: str = setting("", "A TOML file of own objects and questions.")

    def __post_init__(self) -> None:
        low, high = self.multipliers.low, self.multipliers.high
        if low % 1 or high % 1 or low < 1 or high > 1e9:
            raise UsageError(
                f"measurement: multipliers={self.multipliers} is not possible; allowed are whole "
                "numbers from 1 to 1,000,000,000, one or a range"
            )
        largest = max(kind.high for kind in self._kinds)
        if largest * high * self.reach > _LARGEST:
            raise UsageError(
                f"measurement: multipliers={self.multipliers} and reach={self.reach:g} make "
                f"answers of more than {_LARGEST:,}; give smaller ones"
            )

    @cached_property
    def _file(self) -> Templates:
        return Templates(self.templates, "measurement.toml")

    @cached_property
    def _kinds(self) -> Sequence[_MeasurementKind]:
        """Every object with every template that it has a range for."""
        file, kinds = self._file, []
        questions = {
            one.name: one for one in file.entries("templates", _MeasurementQuestion, ["objects"])
        }
        for place, one in enumerate(questions.values(), 1):
            file.pattern(f"templates {place} ({one.name})", one.text, ["INT", "OBJ"])
        for number, thing in enumerate(file.entries("objects", _MeasuredObject, ["templates"])):
            entry = f"objects {number + 1} ({thing.name})"
            if not thing.ranges:
                raise file.wrong(entry, "it has no range; give one for a template at least")
            for part, (name, ends) in enumerate(thing.ranges.items()):
                if name not in questions:
                    known = ", ".join(questions)
                    raise file.wrong(entry, f"a range for {name!r}, which is no template: {known}")
                file.checked_range(f"{entry}, {name}", ends, 2, 10**9)
                named = questions[name].text.replace("[OBJ]", f"[INT {thing.name}/{thing.plural}]")
                text = f"Q: {named} A: [ANSWER]"
                pattern = file.pattern(f"{entry}, {name}", text, ["INT", "ANSWER"])
                kind = (name, thing.name, number, part, len(thing.ranges), *ends, pattern)
                kinds.append(_MeasurementKind(*kind))
        return kinds

    @property
    def files(self) -> Mapping[str, GivenFile]:
        return {"templates": self._file.given} if self.templates else {}

    @property
    def _possible(self) -> list[int]:
        """Of each kind, how many pairs: limited by the correct answers, of all multipliers."""
        first, last = int(self.multipliers.low), int(self.multipliers.high)
        count = last - first + 1
        total = (first + last) * count // 2
        return [((kind.high - kind.low) * total + count) // kind.parts for kind in self._kinds]

    @property
    def possible(self) -> int:
        return 2 * sum(self._possible)

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        drawn = _drawn(self, self._file.given.digest, seed, split)
        first = index * self.unit_rows
        which, multiplier, answer, label = drawn[:, first : first + self.rows_of(split, index)]
        kinds = self._kinds
        numbers = {"INT": multiplier, "ANSWER": answer}
        texts = fill_each([kind.pattern for kind in kinds], which, numbers)
        groups = [{"template": kind.template, "object": kind.object} for kind in kinds]
        return judged(split, first, texts, label, groups, which)


@lru_cache(maxsize=2)
def _drawn(task: Measurement, digest: str, seed: int, split: TaskSplit) -> Whole:
    """Kind, multiplier, answer and label of all rows of a split, [4, rows]; ``digest`` is that of
    the templates."""
    which = pairs_of_kinds(task, task._possible, split)
    columns = ("number", "part", "parts", "low", "high")
    known = np.array([[getattr(kind, name) for name in columns] for kind in task._kinds])[which].T
    tries = int(max(known[2], default=1) / split.share) + 1

    def tried(purpose: str, given: Whole | None, rows: Whole, attempt: int) -> DrawnRows:
        """A multiplier, where it is not given, and an answer for each of some pairs."""
        number, part, parts, low, high = known[:, rows]
        chance = uniforms_of_rows(
            f"measurement {purpose} {split.name} {attempt} {seed}", range(len(rows)), 3
        )
        if given is None:
            ends = int(task.multipliers.low), int(task.multipliers.high)
            multiplier = log_draw(chance[0], *ends)
            answer = log_draw(chance[1], multiplier * low, multiplier * high)
        else:
            multiplier = given[rows]
            low, high = multiplier * low, multiplier * high
            least = np.ceil(low / task.reach).astype(np.int64)
            most = np.floor(high * task.reach).astype(np.int64)
            is_below = chance[2] < 0.5
            first, last = np.where(is_below, least, high + 1), np.where(is_below, low - 1, most)
            answer = log_draw(chance[1], first, last)
        hashes = identities(seed, number, multiplier, answer)
        usable = are_of(split, hashes) & (parts_of(hashes, parts) == part)
        return DrawnRows(np.array([multiplier, answer]), hashes, usable)

    right = without_repeats(len(which), 2, tries, lambda *of: tried("correct", None, *of))
    if right is None:
        raise too_few(task, split)
    multiplier = right[0]
    wrong = without_repeats(len(which), 2, tries, lambda *of: tried("incorrect", multiplier, *of))
    if wrong is None:
        raise too_few(task, split)
    labels = np.ones(len(which), np.int64)
    pairs = [np.stack([which, *right, labels], 1), np.stack([which, *wrong, 0 * labels], 1)]
    rows = np.stack(pairs, 1).reshape(-1, 4).T
    return np.array(shuffled(f"measurement {split.name} {seed}", split.rows, list(rows)))
