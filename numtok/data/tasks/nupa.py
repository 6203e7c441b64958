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
_MOST_ROWS = 1_000_000  # per stratum and split, because its questions are kept in memory
_ROWS: dict[str, Any] = {"at_least": _AS_PUBLISHED, "at_most": _MOST_ROWS}
_FEWEST_STRATA, _ROWS_OF_EACH = 16, 500  # in a sample of a split
_LACKING = "missing_in_small_strata"  # name of a count

#: First and second operand; the second is empty for tasks with one operand.
Question = tuple[str, str]

_FIRST_BLOCK, _LARGEST_BLOCK = 32, 4096  # candidates
_LAST_BLOCK, _NEW = 1024, 64  # stop after a block of at least 1024 with fewer than 1 in 64 new
_SHARE = 10  # test gets a tenth of a small stratum
_COMMUTATIVE = ("add", "multiply", "max", "min", "digit_max", "digit_min", "digit_add")


class _Stratum(NamedTuple):
    """A task and a digit key, with the numbers of questions for test and validation."""

    key: Key
    digits: int
    test: int
    validation: int


class _NupaRow(WrittenRow, kw_only=True):
    """A row with additional fields, which no stage reads."""

    operands: tuple[str, ...]
    operand_spans: list[tuple[int, int]]
    gold: str


@dataclass(frozen=True)
class NupaTask(TextTask):
    """NUPA, a benchmark for number understanding and processing (Yang et al. 2025).

    The tasks are arithmetic, comparison, digit tasks and conversion of integers, floats, fractions
    and scientific notation, with exact answers.

    ``--preset published`` contains the 44 task keys of the public data. ``paper`` contains the 41
    tasks of the paper, including ``min`` and ``digit_min`` but not the easier and harder variants.
    ``value-aware`` contains the 38 keys with up to 7 digits that Value-Aware used. ``--tasks``
    selects a subset: add (all representations), add_Fraction, or a complete key.

    A stratum is a task key with a digit key: the number of digits in an integer, of decimals in a
    float or a mantissa, or of digits in the longer side of a fraction. The number of test and
    validation rows per stratum is that of the published test split. The train split has ``--train``
    rows for each of its digit keys, by default the published digit keys: 1 to 8 (1 to 20 for
    comparison, digit tasks and conversion). ``--digits 1..4`` uses the digit keys 1 to 4 in all
    splits. Numbers are sampled as the paper describes. If fewer different questions exist than are
    requested, a stratum contains nearly all of them. If the row count of such a stratum is not
    published, at most a tenth of its questions are in test, and at most a tenth in validation.

    No question is repeated within a stratum or shared between splits. If swapping the operands does
    not change the answer, the two orders (12 + 7 and 7 + 12) never occur in different splits. A
    stratum depends only on the seed and its own row counts, so other settings do not change the
    test split. The order of rows is random within each unit of a split.

    The published answers to ``sig`` are rounded by looking only at the next digit, so they are
    wrong after a 5 or a carry; ``--rounding correct`` rounds ties to even. Rows have the target
    ``answer`` (two numbers for a fraction), the groups ``task``, ``operation``, ``representation``
    and ``digits``, and the fields ``operands``, ``operand_spans`` and ``gold``.

    >>> task = NupaTask(tasks="add_Integer", digits="3", prompt="short")
    >>> made = task.unit(0, TaskSplit("test", 1), 0)
    >>> import json; row = json.loads(made.rows)
    >>> row["text"], row["targets"], row["operands"], row["gold"]
    ('Add two numbers: 874 + 9 = 883', {'answer': [[27, 30]]}, ['874', '9'], '883')

    Raises UsageError if a setting is invalid.
    """

    revision = 2
    source = "Number Cookbook (Yang et al. 2025); Value-Aware, Appendix B"
    unit_rows = 1 << 15
    digest = "b327bb49911c7d53"

    preset: str = setting("value-aware", "Set of tasks: published, paper or value-aware.")
    tasks: str = setting("all", "Subset of the preset's tasks, joined by +: add+sub_Float.")
    digits: str = setting("published", "Digit keys of all splits: 5, 1..7, or published.")
    train: int = setting(
        USUAL, "Train rows per stratum; 0 omits the split.", at_least=0, at_most=_MOST_ROWS
    )
    validation: int = setting(
        _AS_PUBLISHED, "Validation rows per stratum; -1 uses the published number.", **_ROWS
    )
    test: int = setting(
        _AS_PUBLISHED, "Test rows per stratum; -1 uses the published number.", **_ROWS
    )
    rounding: str = setting(
        "published", "Rounding of sig; many published answers are wrong.", choices=_ROUNDINGS
    )
    prompt: str = setting(
        "published", "Wording; short omits the hint about the form.", choices=PROMPTS
    )

    def __post_init__(self) -> None:
        chosen(self.preset, self.tasks)
        digit_keys(self.digits)
        if not self.own_splits:
            raise UsageError(
                f"nupa: no rows with digits={self.digits}, train={self.train}, validation="
                f"{self.validation} and test={self.test}. Increase one of them"
            )

    @property
    def own_splits(self) -> list[TaskSplit]:
        counts = {name: sum(rows for _, rows in self._strata[name]) for name in _SPLITS}
        return [TaskSplit(name, rows) for name, rows in sorted(counts.items()) if rows]

    @cached_property
    def _strata(self) -> dict[str, list[tuple[_Stratum, int]]]:
        """Strata of each split, with their numbers of rows."""
        keys = chosen(self.preset, self.tasks)
        by_split: dict[str, list[tuple[_Stratum, int]]] = {}
        for split in _SPLITS:
            pairs = [(key, digits) for key in keys for digits in self._digits(key, split)]
            strata = [(self._stratum(*pair), self._wanted(*pair, split)) for pair in pairs]
            by_split[split] = [(stratum, rows) for stratum, rows in strata if rows]
        return by_split

    def _digits(self, key: Key, split: str) -> range:
        """Return the digit keys of a task in a split."""
        if (selected := digit_keys(self.digits)) is not None:
            return selected
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
        mixed = [lines[index] for index in order.tolist()]
        lacking = {_LACKING: wanted - len(lines)} if len(lines) < wanted else {}
        return Made(b"".join(mixed), lacking)

    def _parts(
        self, seed: int, split: TaskSplit, begin: int, end: int
    ) -> Iterator[tuple[_Stratum, int, int, int]]:
        """Yield the strata of rows ``begin`` to ``end`` of a split.

        Yields (stratum, its number of rows, begin, end within it). Strata follow each other in
        random order. A split with fewer rows than requested, such as the sample of a dry run, has a
        part of each of some strata.
        """
        strata = self._strata[split.name]
        order = random_order(f"nupa strata {split.name} {seed}", len(strata))
        if split.rows < sum(rows for _, rows in strata):
            order = order[: max(_FEWEST_STRATA, split.rows // _ROWS_OF_EACH)]
        ends = np.cumsum([strata[index][1] for index in order.tolist()])
        ends = ends * split.rows // ends[-1]
        starts = np.append(0, ends[:-1])
        for index, start, stop in zip(order.tolist(), starts.tolist(), ends.tolist(), strict=True):
            low, high = max(start, begin), min(stop, end)
            if low < high:
                yield strata[index][0], stop - start, low - start, high - start

    def _questions(self, seed: int, split: str, stratum: _Stratum, rows: int) -> list[Question]:
        """Return the first questions of a stratum in a split."""
        if split == "test":
            return tested(seed, stratum)[:rows]
        keys = variants(stratum.key)
        related = [self._stratum(key, stratum.digits) for key in keys if key != stratum.key]
        if split == "validation":
            return validated(seed, stratum, tuple(related))[:rows]
        return trained(seed, stratum, tuple(related), rows)

    def _lines(
        self, split: str, stratum: _Stratum, begin: int, questions: list[Question]
    ) -> list[bytes]:
        """Encode questions as JSONL; the first one has the number ``begin`` in its stratum."""
        key = stratum.key
        words, group = wording(key, self.prompt), key.group(stratum.digits)
        first, second = zip(*questions, strict=True) if questions else ((), ())
        golds = answers(key, first, second, self.rounding)
        encode = msgspec.json.Encoder().encode
        lines = []
        for number, (question, gold) in enumerate(zip(questions, golds, strict=True), begin):
            operands = question if words.between else question[:1]
            worded = row(words, operands, gold)
            line = _NupaRow(
                id=f"{split}-{key.name}-{stratum.digits}-{number}",
                text=worded.text,
                targets={"answer": worded.answer},
                answer_start=worded.answer[0][0],
                group=group,
                operands=operands,
                operand_spans=worded.operands,
                gold=gold,
            )
            lines.append(encode(line) + b"\n")
        return lines


# --- questions of each split ----------------------------------------------------------------------
#
# Candidates are sampled in blocks, from one sequence for test and validation and another one for
# train. Test gets the first distinct questions, validation the next, train those in neither.
#
# Variants of a task, such as ``mod`` and ``mod_easy``, have the same wording. Test questions of one
# variant are in no validation or train split of the others, and validation questions are in no
# train split. Within a split variants may share questions, as in the published data.
#
# Two splits do not share a question with exchanged operands if the order does not change the
# answer. (The published train split only excludes the exact strings of the test split.)


def variants(key: Key) -> list[Key]:
    """Return the keys with the same wording as ``key``, including ``key`` itself.

    >>> [key.task for key in variants(KEYS["mod_Integer_Integer_Integer"])]
    ['mod', 'mod_easy']
    """
    words = wording(key, "published")
    candidates = (variant for variant in KEYS.values() if variant.first == key.first)
    return [variant for variant in candidates if wording(variant, "published") == words]


def tested(seed: int, stratum: _Stratum) -> list[Question]:
    """Return the test questions of a stratum (a task key with a digit key)."""
    return _dealt(seed, stratum._replace(validation=0), frozenset())[0]


def validated(seed: int, stratum: _Stratum, related: tuple[_Stratum, ...]) -> list[Question]:
    """Return the validation questions of a stratum.

    ``related`` are the strata of the task's other variants, whose test questions are excluded.
    """
    return _held(seed, stratum, related)[1]


@lru_cache(maxsize=2)  # several units may have the same stratum
def trained(
    seed: int, stratum: _Stratum, related: tuple[_Stratum, ...], rows: int
) -> list[Question]:
    """Return the first ``rows`` train questions of a stratum, or all if there are fewer.

    ``related`` are the strata of the task's other variants. Test and validation questions of all
    variants are excluded.
    """
    every = (stratum, *related)
    held: set[Question] = set()
    for variant in every:
        for questions in _held(seed, variant, [other for other in every if other != variant]):
            held.update(_unordered(stratum.key, questions))
    train: list[Question] = []
    for new in _different(seed, stratum, is_held=False):
        train += _outside(stratum.key, new, held)
        if len(train) >= rows:
            break
    return train[:rows]


def _held(
    seed: int, stratum: _Stratum, related: Sequence[_Stratum]
) -> tuple[list[Question], list[Question]]:
    tests = [question for variant in related for question in tested(seed, variant)]
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
    count = 0
    for new in _different(seed, stratum, is_held=True):
        count += len(new)
        if count >= enough:
            return test, validation
    if is_published:
        return test, min(validation, (count - test) // 2)
    share = max(1, count // _SHARE)
    return min(test, share), min(validation, share)


def _about(key: Key, digits: int) -> int:
    """Return a lower bound on the number of distinct questions of a stratum."""
    if key.task == "to_float":
        return int(10 ** (digits - 1))
    each = {INTEGER: 10 ** (digits - 1), FLOAT: 10 ** (2 * digits - 1)}
    each |= {FRACTION: 10 ** (2 * digits - 1), SCIENTIFIC: 10 ** (digits + 2)}
    return int(each[key.first] ** (1 if key.second in ("none", "int") else 2))


def _different(seed: int, stratum: _Stratum, *, is_held: bool) -> Iterator[list[Question]]:
    """Yield the distinct questions of a sequence by blocks, until hardly any are new."""
    key, digits = stratum.key, stratum.digits
    previous: set[Question] = set()
    size, drawn = _FIRST_BLOCK, 0
    while True:
        purpose = f"nupa {key.name} {digits} {'held' if is_held else 'train'} {drawn} {seed}"
        first, second = candidates(Draws(purpose), key, digits, is_held, size)
        new = []
        for question in zip(first, second or [""] * len(first), strict=True):
            if question not in previous:
                previous.add(question)
                new.append(question)
        yield new
        if len(new) * _NEW < size >= _LAST_BLOCK:
            return
        drawn += size
        size = min(drawn, _LARGEST_BLOCK)
