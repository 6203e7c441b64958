"""measurement: questions about the sizes of objects. ``Q: How many grams are 2 eggs? A: 80``"""

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
from numtok.setting_values import Range

_LARGEST = 1 << 53  # maximum answer: integers up to this are exact in float64


class _MeasurementQuestion(Entry):
    """A template of a question."""

    text: str


class _MeasuredObject(Entry):
    """An object: its plural, and the range of one object by template."""

    plural: str
    ranges: dict[str, tuple[int, int]]


@dataclass(frozen=True, eq=False, kw_only=True)
class _MeasurementKind(TextKind):
    """An object with one of its templates: index of the object, and of its template (``part``)."""

    number: int
    part: int
    parts: int
    low: int
    high: int


@dataclass(frozen=True)
class Measurement(JudgedTask):
    """Questions about the weight or size of several objects, with correct and incorrect answers.

    The task follows NumGPT's Multiple Measurement Estimation (MME), with 20 objects and 4
    templates. All objects and templates are used in the same number of rows, half of which are
    correct. The multiplier is the number of objects in a question. Correct answers are from ANS_MIN
    to ANS_MAX, the range for one object times the multiplier. Incorrect answers are below ANS_MIN,
    down to 0.01 ANS_MIN, or above ANS_MAX, up to 100 ANS_MAX (``--reach`` sets the factor 100). All
    numbers are integers sampled log-uniformly: n from low to high has probability
    log((n + 1) / n) / log((high + 1) / low). The paper samples the multiplier this way, but does
    not state its range or the distribution of answers. In this task, multipliers are from 1 to 100,
    and incorrect answers are equally often too small and too large.

    Rows come in pairs with the same question, one with a correct and one with an incorrect answer,
    so the question alone reveals nothing about the label. Very small and very large answers,
    however, can be recognized as incorrect. The answer and the object together also reveal part of
    the label: knowing which answers are correct for 1 to 100 eggs gives 75% accuracy. A larger
    range of multipliers or a smaller reach reduces this leak.

    No combination of multiplier, object and answer appears twice in the data. A hash of the
    combination and the seed determines the split and the template. ``--templates`` reads your own
    objects and questions instead of numtok/data/tasks/templates/measurement.toml. Rows have the
    groups ``template`` and ``object``.

    >>> made = Measurement().unit(0, TaskSplit("train", 1), 0)
    >>> print(made.rows.decode().strip())  # doctest: +NORMALIZE_WHITESPACE
    {"id":"train-0","text":"Q: How many millimetres long is a row of 33 walnuts laid end to end?
    A: 1157","label":"correct","group":{"template":"length","object":"walnut"}}

    Raises UsageError if a setting or the file of templates is invalid.
    """

    revision = 1
    source = "NumGPT, synthetic tasks"
    digest = "1ce71636cb9ce422"
    samples: ClassVar[int] = 20_000
    fields: ClassVar[tuple[str, ...]] = ("INT", "ANSWER")

    multipliers: Range = setting(Range(1, 100), "Number of objects, sampled log-uniformly.")
    reach: float = setting(
        100.0, "Maximum factor by which incorrect answers are off.", at_least=2, at_most=1_000_000
    )
    templates: str = setting("", "TOML file with your own objects and questions.")

    def __post_init__(self) -> None:
        check_range(self, "multipliers", 1, 10**9)
        largest = max(kind.high for kind in self._kinds)
        if largest * self.multipliers.high * self.reach > _LARGEST:
            raise UsageError(
                f"measurement: multipliers={self.multipliers} and reach={self.reach:g} give "
                f"answers above {_LARGEST:,}. Reduce one of them"
            )

    @cached_property
    def _kinds(self) -> Sequence[_MeasurementKind]:
        """Every object with each template for which it has a range."""
        file, kinds, questions = self._file, [], {}
        templates = file.entries("templates", _MeasurementQuestion, ["objects"])
        for entry, question in templates.items():
            file.pattern(entry, question.text, ["INT", "OBJ"])
            questions[question.name] = question.text
        objects = file.entries("objects", _MeasuredObject, ["templates"])
        for number, (entry, thing) in enumerate(objects.items()):
            if not thing.ranges:
                raise file.wrong(entry, "the object needs a range for at least one template")
            for part, (name, ends) in enumerate(thing.ranges.items()):
                if name not in questions:
                    names = ", ".join(questions)
                    raise file.wrong(
                        entry, f"the range {name!r} is not for a template (templates: {names})"
                    )
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
        """Number of pairs of each kind, limited by the correct answers of all multipliers."""
        first, last = int(self.multipliers.low), int(self.multipliers.high)
        count = last - first + 1
        total = (first + last) * count // 2
        return [((kind.high - kind.low) * total + count) // kind.parts for kind in self._kinds]

    def _draw(self, seed: int, split: TaskSplit, which: Ints) -> Sequence[Ints]:
        pairs, columns = which[::2], ("number", "part", "parts", "low", "high")
        properties = self._of_kinds(pairs, *columns)
        tries = int(max(properties[2], default=1))

        def tried(purpose: str, multipliers: Ints | None, rows: Ints, attempt: int) -> DrawnRows:
            """Sample answers for pairs, and multipliers unless they are passed."""
            number, part, parts, low, high = properties[:, rows]
            chance = uniforms_of_rows(
                f"measurement {purpose} {split.name} {attempt} {seed}", range(len(rows)), 3
            )
            if multipliers is None:
                ends = int(self.multipliers.low), int(self.multipliers.high)
                multiplier = log_draw(chance[0], *ends)
                answer = log_draw(chance[1], multiplier * low, multiplier * high)
            else:
                multiplier = multipliers[rows]
                low, high = multiplier * low, multiplier * high
                least = np.ceil(low / self.reach).astype(np.int64)
                most = np.floor(high * self.reach).astype(np.int64)
                is_below = chance[2] < 0.5
                first, last = np.where(is_below, least, high + 1), np.where(is_below, low - 1, most)
                answer = log_draw(chance[1], first, last)
            hashes = identities(seed, number, multiplier, answer)
            usable = are_of(split, hashes) & (parts_of(hashes, parts) == part)
            return DrawnRows(np.array([multiplier, answer]), hashes, usable)

        def drawn(purpose: str, multipliers: Ints | None) -> Ints:
            return self._without_repeats(
                split, len(pairs), tries, lambda *args: tried(purpose, multipliers, *args)
            )

        right = drawn("correct", None)
        wrong = drawn("incorrect", right[0])
        labels = np.ones_like(pairs)
        rows = np.stack([[*right, labels], [*wrong, 0 * labels]], axis=-1)  # [3, pairs, 2]
        return list(rows.reshape(3, -1))
