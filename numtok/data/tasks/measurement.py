"""measurement: weights and sizes of several objects. ``Q: How many grams are 2 eggs? A: 80``"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.arrays import Ints
from numtok.data.tasks._draws import uniforms_of_rows
from numtok.data.tasks._judged import JudgedTask, TextKind
from numtok.data.tasks._templates import Entry
from numtok.data.tasks._unrepeated import DrawnRows, are_of, identities, log_draw, parts_of
from numtok.data.tasks.base import TaskSplit, check_range, setting
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


@dataclass(frozen=True, eq=False, kw_only=True)
class _MeasurementKind(TextKind):
    """An object and a template: its place among the objects, and among the templates of that."""

    number: int
    part: int
    parts: int
    low: int
    high: int


@dataclass(frozen=True)
class Measurement(JudgedTask):
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

    revision = 1
    source = "NumGPT, synthetic tasks"
    digest = "1ce71636cb9ce422"
    samples: ClassVar[int] = 20_000
    fields: ClassVar[tuple[str, ...]] = ("INT", "ANSWER")

    multipliers: Range = setting(Range(1, 100), "How many objects, drawn by their logarithm.")
    reach: float = setting(
        100.0, "Incorrect answers are off by this factor at most.", at_least=2, at_most=1_000_000
    )
    templates: str = setting("", "A TOML file of own objects and questions.")

    def __post_init__(self) -> None:
        check_range(self, "multipliers", 1, 10**9)
        largest = max(kind.high for kind in self._kinds)
        if largest * self.multipliers.high * self.reach > _LARGEST:
            raise UsageError(
                f"measurement: multipliers={self.multipliers} and reach={self.reach:g} make "
                f"answers of more than {_LARGEST:,}; give smaller ones"
            )

    @cached_property
    def _kinds(self) -> Sequence[_MeasurementKind]:
        """Every object with every template that it has a range for."""
        file, kinds, questions = self._file, [], {}
        for entry, one in file.entries("templates", _MeasurementQuestion, ["objects"]).items():
            file.pattern(entry, one.text, ["INT", "OBJ"])
            questions[one.name] = one.text
        objects = file.entries("objects", _MeasuredObject, ["templates"])
        for number, (entry, thing) in enumerate(objects.items()):
            if not thing.ranges:
                raise file.wrong(entry, "it has no range; give one for a template at least")
            for part, (name, ends) in enumerate(thing.ranges.items()):
                if name not in questions:
                    known = ", ".join(questions)
                    raise file.wrong(entry, f"a range for {name!r}, which is no template: {known}")
                file.checked_range(f"{entry}, {name}", ends, 2, 10**9)
                named = questions[name].replace("[OBJ]", f"[INT {thing.name}/{thing.plural}]")
                pattern = file.pattern(f"{entry}, {name}", f"Q: {named} A: [ANSWER]", self.fields)
                group = {"template": name, "object": thing.name}
                low, high = ends
                kinds.append(
                    _MeasurementKind(
                        group=group, pattern=pattern, number=number, part=part,
                        parts=len(thing.ranges), low=low, high=high,
                    )
                )  # fmt: skip
        return kinds

    @property
    def _possible(self) -> list[int]:
        """Of each kind, how many pairs: limited by the correct answers, of all multipliers."""
        first, last = int(self.multipliers.low), int(self.multipliers.high)
        count = last - first + 1
        total = (first + last) * count // 2
        return [((kind.high - kind.low) * total + count) // kind.parts for kind in self._kinds]

    def _draw(self, seed: int, split: TaskSplit, which: Ints) -> Sequence[Ints]:
        pairs, columns = which[::2], ("number", "part", "parts", "low", "high")
        known = self._of_kinds(pairs, *columns)
        tries = int(max(known[2], default=1))

        def tried(purpose: str, given: Ints | None, rows: Ints, attempt: int) -> DrawnRows:
            """A multiplier, where it is not given, and an answer for each of some pairs."""
            number, part, parts, low, high = known[:, rows]
            chance = uniforms_of_rows(
                f"measurement {purpose} {split.name} {attempt} {seed}", range(len(rows)), 3
            )
            if given is None:
                ends = int(self.multipliers.low), int(self.multipliers.high)
                multiplier = log_draw(chance[0], *ends)
                answer = log_draw(chance[1], multiplier * low, multiplier * high)
            else:
                multiplier = given[rows]
                low, high = multiplier * low, multiplier * high
                least = np.ceil(low / self.reach).astype(np.int64)
                most = np.floor(high * self.reach).astype(np.int64)
                is_below = chance[2] < 0.5
                first, last = np.where(is_below, least, high + 1), np.where(is_below, low - 1, most)
                answer = log_draw(chance[1], first, last)
            hashes = identities(seed, number, multiplier, answer)
            usable = are_of(split, hashes) & (parts_of(hashes, parts) == part)
            return DrawnRows(np.array([multiplier, answer]), hashes, usable)

        def drawn(purpose: str, given: Ints | None) -> Ints:
            return self._without_repeats(
                split, len(pairs), tries, lambda *of: tried(purpose, given, *of)
            )

        right = drawn("correct", None)
        wrong = drawn("incorrect", right[0])
        labels = np.ones_like(pairs)
        rows = np.stack([[*right, labels], [*wrong, 0 * labels]], axis=-1)  # [3, pairs, 2]
        return list(rows.reshape(3, -1))
