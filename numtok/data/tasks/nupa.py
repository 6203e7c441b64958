"""nupa: the tasks of the Number Cookbook's benchmark. ``Add two numbers: 744 + 543 = 1287``"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from numtok.data.nupa.keys import (
    FLOAT,
    FRACTION,
    INTEGER,
    KEYS,
    MOST_DIGITS_OF_VALUE_AWARE,
    SCIENTIFIC,
    USUAL,
    Key,
    chosen,
    digit_keys,
    published,
)
from numtok.data.nupa.wording import PROMPTS, row, wording
from numtok.data.tasks._draws import random_order
from numtok.data.tasks._nupa_answers import answers
from numtok.data.tasks._nupa_operands import Draws, candidates
from numtok.data.tasks.base import Made, TaskSplit, TextTask, WrittenRow, setting
from numtok.errors import UsageError

_SPLITS = ("train", "validation", "test")
_ROUNDINGS = ("published", "correct")
_AS_PUBLISHED = -1
_MOST_ROWS = 1_000_000  # of a stratum in one split: its questions are kept in memory
_ROWS: dict[str, Any] = {"at_least": _AS_PUBLISHED, "at_most": _MOST_ROWS}
_FEWEST_STRATA, _ROWS_OF_EACH = 16, 500  # of a sample of a split
_LACKING = "missing_in_small_strata"  # what is counted

#: The first and the second operand; the second is empty for tasks with one operand.
Question = tuple[str, str]

_FIRST_BLOCK, _LARGEST_BLOCK = 32, 4096  # candidates
_LAST_BLOCK, _NEW = 1024, 64  # stop after a block of 1024 or more with fewer than 1 in 64 new
_SHARE = 10  # of a small stratum, a tenth for test
_COMMUTATIVE = ("add", "multiply", "max", "min", "digit_max", "digit_min", "digit_add")


class _Stratum(NamedTuple):
    """A task and a digit key, and how many questions are wanted for test and for validation."""

    key: Key
    digits: int
    test: int
    validation: int


class _NupaRow(WrittenRow, kw_only=True):
    """A row with fields that no stage reads."""

    operands: tuple[str, ...]
    operand_spans: list[tuple[int, int]]
    gold: str


@dataclass(frozen=True)
class NupaTask(TextTask):
    """NUPA, the benchmark of number understanding and processing (Yang et al. 2025): arithmetic,
    comparison, digits and conversion of integers, floats, fractions and scientific notation, with
    exact answers.

    ``--preset published`` has the 44 task keys of the public data, ``paper`` the 41 tasks of the
    paper (``min`` and ``digit_min`` among them, without the easier and harder variants), and
    ``value-aware`` the 38 keys up to 7 digits that Value-Aware uses. ``--tasks`` chooses of them:
    add (in all representations), add_Fraction, or a whole key.

    A stratum is a task key and a digit key: the digits of an integer, the decimals of a float or
    of a mantissa, the longer side of a fraction. Test and validation have as many rows of each as
    the published test split; train has ``--train`` rows of each of its digit keys, which are
    published as 1 to 8 (1 to 20 for comparison, digits and conversion). ``--digits 1..4`` has
    these digit keys in all splits. Numbers are drawn as NUPA says. Where a stratum has fewer
    questions than asked for, it has nearly all of them: those that were met until hardly any was
    new. Where its counts are not published, at most a tenth of them goes to test, and as many to
    validation.

    No question of a stratum comes twice or is in two splits, nor are 12 + 7 and 7 + 12 in two. A
    stratum depends on the seed and on its own counts alone, so the test is the same whatever else
    is made. The order of rows is random within a unit of a split.

    Published answers of ``sig`` look at the next digit alone and are wrong where a 5 or a carry
    is met; ``--rounding correct`` rounds half to even. Rows have the target ``answer`` (of a
    fraction two numbers), the groups ``task``, ``operation``, ``representation`` and ``digits``,
    and the fields ``operands``, ``operand_spans`` and ``gold``.

    >>> task = NupaTask(tasks="add_Integer", digits="3", prompt="short")
    >>> made = task.unit(0, TaskSplit("test", 1), 0)
    >>> import json; row = json.loads(made.rows)
    >>> row["text"], row["targets"], row["operands"], row["gold"]
    ('Add two numbers: 874 + 9 = 883', {'answer': [[27, 30]]}, ['874', '9'], '883')

    Raises UsageError for settings that cannot be.
    """

    revision = 2
    source = "Number Cookbook (Yang et al. 2025); Value-Aware, Appendix B"
    unit_rows = 1 << 15
    digest = "b327bb49911c7d53"

    preset: str = setting("value-aware", "published, paper or value-aware.")
    tasks: str = setting("all", "Some of its tasks, joined by +: add+sub_Float.")
    digits: str = setting("published", "Digit keys of all splits: 5, 1..7, or published.")
    train: int = setting(
        USUAL, "Rows of each stratum; 0 for no such split.", at_least=0, at_most=_MOST_ROWS
    )
    validation: int = setting(_AS_PUBLISHED, "Likewise; -1: as many as published.", **_ROWS)
    test: int = setting(_AS_PUBLISHED, "Likewise.", **_ROWS)
    rounding: str = setting(
        "published", "Of sig; what is published is wrong for many.", choices=_ROUNDINGS
    )
    prompt: str = setting("published", "Without a hint at the form: short.", choices=PROMPTS)

    def __post_init__(self) -> None:
        chosen(self.preset, self.tasks)
        digit_keys(self.digits)
        if not self.own_splits:
            raise UsageError(
                f"nupa: digits={self.digits} with train={self.train}, validation="
                f"{self.validation} and test={self.test} leaves no row; give more of one of them"
            )

    @property
    def own_splits(self) -> list[TaskSplit]:
        counts = {name: sum(rows for _, rows in self._strata[name]) for name in _SPLITS}
        return [TaskSplit(name, rows) for name, rows in sorted(counts.items()) if rows]

    @cached_property
    def _strata(self) -> dict[str, list[tuple[_Stratum, int]]]:
        """The strata of each split, and how many rows of each are wanted."""
        keys = chosen(self.preset, self.tasks)
        found: dict[str, list[tuple[_Stratum, int]]] = {}
        for split in _SPLITS:
            pairs = [(key, digits) for key in keys for digits in self._digits(key, split)]
            strata = [(self._stratum(*pair), self._wanted(*pair, split)) for pair in pairs]
            found[split] = [one for one in strata if one[1]]
        return found

    def _digits(self, key: Key, split: str) -> range:
        """The digit keys of a task in a split."""
        if (given := digit_keys(self.digits)) is not None:
            return given
        first, last = key.trained if split == "train" else key.tested
        if self.preset == "value-aware":
            last = min(last, MOST_DIGITS_OF_VALUE_AWARE)
        return range(first, last + 1)

    def _wanted(self, key: Key, digits: int, split: str) -> int:
        rows: int = getattr(self, split)
        if digits not in self._digits(key, split):
            return 0
        return (published(key, digits) or USUAL) if rows == _AS_PUBLISHED else rows

    def _stratum(self, key: Key, digits: int) -> _Stratum:
        counts = (self._wanted(key, digits, split) for split in ("test", "validation"))
        return _Stratum(key, digits, *counts)

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        first = index * self.unit_rows
        wanted = self.rows_of(split, index)
        lines: list[bytes] = []
        for stratum, rows, begin, end in self._parts(seed, split, first, first + wanted):
            questions = self._questions(seed, split.name, stratum, rows)[begin:end]
            lines += self._lines(split.name, stratum, begin, questions)
        order = random_order(f"nupa order {split.name} {index} {seed}", len(lines))
        mixed = [lines[place] for place in order.tolist()]
        lacking = {_LACKING: wanted - len(lines)} if len(lines) < wanted else {}
        return Made(b"".join(mixed), lacking)

    def _parts(
        self, seed: int, split: TaskSplit, begin: int, end: int
    ) -> Iterator[tuple[_Stratum, int, int, int]]:
        """Some rows of a split: a stratum, how many rows it has, and which of them they are.

        Strata stand one after the other in random order. A split with fewer rows than asked for,
        such as the sample of a dry run, has a part of each of some strata.
        """
        strata = self._strata[split.name]
        order = random_order(f"nupa strata {split.name} {seed}", len(strata))
        if split.rows < sum(rows for _, rows in strata):
            order = order[: max(_FEWEST_STRATA, split.rows // _ROWS_OF_EACH)]
        ends = np.cumsum([strata[place][1] for place in order.tolist()])
        ends = ends * split.rows // ends[-1]
        starts = np.append(0, ends[:-1])
        for place, start, stop in zip(order.tolist(), starts.tolist(), ends.tolist(), strict=True):
            low, high = max(start, begin), min(stop, end)
            if low < high:
                yield strata[place][0], stop - start, low - start, high - start

    def _questions(self, seed: int, split: str, stratum: _Stratum, rows: int) -> list[Question]:
        """The first questions that a split has of a stratum."""
        if split == "test":
            return tested(seed, stratum)[:rows]
        keys = variants(stratum.key)
        others = [self._stratum(key, stratum.digits) for key in keys if key != stratum.key]
        if split == "validation":
            return validated(seed, stratum, tuple(others))[:rows]
        return trained(seed, stratum, tuple(others), rows)

    def _lines(
        self, split: str, stratum: _Stratum, begin: int, questions: list[Question]
    ) -> list[bytes]:
        """Rows as JSONL, the first one with the number ``begin`` of its stratum."""
        key = stratum.key
        asked, group = wording(key, self.prompt), key.group(stratum.digits)
        first, second = zip(*questions, strict=True) if questions else ((), ())
        golds = answers(key, first, second, self.rounding)
        encode = msgspec.json.Encoder().encode
        lines = []
        for number, (question, gold) in enumerate(zip(questions, golds, strict=True), begin):
            operands = question if asked.between else question[:1]
            made = row(asked, operands, gold)
            line = _NupaRow(
                id=f"{split}-{key.name}-{stratum.digits}-{number}",
                text=made.text,
                targets={"answer": made.answer},
                answer_start=made.answer[0][0],
                group=group,
                operands=operands,
                operand_spans=made.operands,
                gold=gold,
            )
            lines.append(encode(line) + b"\n")
        return lines


# --- which questions each split has ---------------------------------------------------------------
#
# Candidates are drawn a block at a time, from one sequence for test and validation and from another
# one for train. Test has the first distinct ones, validation the next, train what is in neither.
#
# Variants of a task, such as ``mod`` and ``mod_easy``, ask in the same words. What one of them has
# in test is in no validation or train split of the others, and what one has in validation is in no
# train split. Within a split they may share questions, as published.
#
# No two splits ask a question and the same one with its operands exchanged, if that does not change
# the answer. (The published train split excludes only the exact strings of the test split.)


def variants(key: Key) -> list[Key]:
    """The keys that ask as this one does, itself among them.

    >>> [one.task for one in variants(KEYS["mod_Integer_Integer_Integer"])]
    ['mod', 'mod_easy']
    """
    asked = wording(key, "published")
    same = (one for one in KEYS.values() if one.first == key.first)
    return [one for one in same if wording(one, "published") == asked]


def tested(seed: int, stratum: _Stratum) -> list[Question]:
    """Return the questions of the test split."""
    return _dealt(seed, stratum._replace(validation=0), frozenset())[0]


def validated(seed: int, stratum: _Stratum, others: tuple[_Stratum, ...]) -> list[Question]:
    """Return the questions of the validation split; ``others`` are strata of other variants."""
    return _held(seed, stratum, others)[1]


@lru_cache(maxsize=2)  # a stratum may be of several units
def trained(
    seed: int, stratum: _Stratum, others: tuple[_Stratum, ...], rows: int
) -> list[Question]:
    """Return the first ``rows`` questions of the train split, or all if there are fewer."""
    every = (stratum, *others)
    held: set[Question] = set()
    for one in every:
        for questions in _held(seed, one, [other for other in every if other != one]):
            held.update(_unordered(stratum.key, questions))
    found: list[Question] = []
    for new in _different(seed, stratum, is_held=False):
        found += _outside(stratum.key, new, held)
        if len(found) >= rows:
            break
    return found[:rows]


def _held(
    seed: int, stratum: _Stratum, others: Sequence[_Stratum]
) -> tuple[list[Question], list[Question]]:
    tests = [question for other in others for question in tested(seed, other)]
    return _dealt(seed, stratum, frozenset(_unordered(stratum.key, tests)))


@lru_cache(maxsize=16)
def _dealt(
    seed: int, stratum: _Stratum, elsewhere: frozenset[Question]
) -> tuple[list[Question], list[Question]]:
    """Return the questions of test and of validation; the latter exclude ``elsewhere``."""
    tests, validations = _counts(seed, stratum)
    test: list[Question] = []
    validation: list[Question] = []
    taken = set(elsewhere)
    for new in _different(seed, stratum, is_held=True):
        lacking = tests - len(test)
        test += new[:lacking]
        taken.update(_unordered(stratum.key, new[:lacking]))
        validation += _outside(stratum.key, new[lacking:], taken)
        if len(test) == tests and len(validation) >= validations:
            break
    return test, validation[:validations]


def _unordered(key: Key, questions: Sequence[Question]) -> Sequence[Question]:
    """Sort the operands of each question if their order does not change the answer."""
    if key.operation not in _COMMUTATIVE:
        return questions
    return [(b, a) if b < a else (a, b) for a, b in questions]


def _outside(key: Key, questions: Sequence[Question], taken: Set[Question]) -> Iterator[Question]:
    """Yield the questions that are not taken, in either order of the operands."""
    pairs = zip(questions, _unordered(key, questions), strict=True)
    return (question for question, unordered in pairs if unordered not in taken)


def _counts(seed: int, stratum: _Stratum) -> tuple[int, int]:
    """Return the number of questions of test and of validation.

    A small stratum gets fewer than wanted, since most of its questions are left for train.
    Published counts are kept.
    """
    key, digits, test, validation = stratum
    is_published = test <= (published(key, digits) or 0)
    enough = _SHARE * max(test, validation)
    if (is_published and not validation) or _about(key, digits) > 2 * enough:
        return test, validation
    there = 0
    for new in _different(seed, stratum, is_held=True):
        there += len(new)
        if there >= enough:
            return test, validation
    if is_published:
        return test, min(validation, (there - test) // 2)
    share = max(1, there // _SHARE)
    return min(test, share), min(validation, share)


def _about(key: Key, digits: int) -> int:
    """Estimate the number of distinct questions of a stratum, from below."""
    if key.task == "to_float":
        return int(10 ** (digits - 1))
    each = {INTEGER: 10 ** (digits - 1), FLOAT: 10 ** (2 * digits - 1)}
    each |= {FRACTION: 10 ** (2 * digits - 1), SCIENTIFIC: 10 ** (digits + 2)}
    return int(each[key.first] ** (1 if key.second in ("none", "int") else 2))


def _different(seed: int, stratum: _Stratum, *, is_held: bool) -> Iterator[list[Question]]:
    """Yield the distinct questions of a sequence by blocks, until hardly any are new."""
    key, digits = stratum.key, stratum.digits
    seen: set[Question] = set()
    size, drawn = _FIRST_BLOCK, 0
    while True:
        purpose = f"nupa {key.name} {digits} {'held' if is_held else 'train'} {drawn} {seed}"
        first, second = candidates(Draws(purpose), key, digits, is_held, size)
        new = []
        for question in zip(first, second or [""] * len(first), strict=True):
            if question not in seen:
                seen.add(question)
                new.append(question)
        yield new
        if len(new) * _NEW < size >= _LAST_BLOCK:
            return
        drawn += size
        size = min(drawn, _LARGEST_BLOCK)
