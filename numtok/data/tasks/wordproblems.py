"""wordproblems: addition and subtraction word problems. ``Q: A ship carries 6518 ... A: 10060``"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.data.tasks._draws import uniforms_of_rows
from numtok.data.tasks._judged import JudgedTask, TextKind
from numtok.data.tasks._templates import Entry
from numtok.data.tasks._unrepeated import DrawnRows, are_of, identities, log_draw
from numtok.data.tasks.base import TaskSplit, setting
from numtok.errors import UsageError
from numtok.registry import spec_of
from numtok.setting_values import Range

_LARGEST = 10**15
_ROUNDS = 1000
_OPERATIONS = {1: "addition", -1: "subtraction"}  # by the sign of the second number
_FORMS = ("judge", "generate")
_DRAWN = "drawn"
_EVERY_ANSWER = Range(-inf, inf)
_OFF = Range(0.01, 1)


class _Way(Protocol):
    """Function that generates wrong answers [n], some of which may happen to be right.

    Arguments are both numbers, the sign of the operation and the right answer (all [n]), uniform
    numbers ``chance`` [2, n], and ``off``, the relative error of near answers.
    """

    def __call__(
        self, a: Ints, b: Ints, *, sign: Ints, right: Ints, chance: Floats, off: Range
    ) -> Ints: ...


def _near(a: Ints, b: Ints, *, sign: Ints, right: Ints, chance: Floats, off: Range) -> Ints:
    """Add or subtract a log-uniform fraction of the right answer, at least 1."""
    share = off.low * np.exp(chance[0] * np.log(off.high / off.low))
    amount = np.maximum(1, np.rint(share * np.abs(right))).astype(np.int64)
    wrong: Ints = right + np.where(chance[1] < 0.5, -amount, amount)
    return wrong


def _operation(a: Ints, b: Ints, *, sign: Ints, right: Ints, chance: Floats, off: Range) -> Ints:
    """Return the result of the other operation; for differences, their absolute value."""
    return np.where(sign > 0, np.abs(a - b), a + b)


def _digit(a: Ints, b: Ints, *, sign: Ints, right: Ints, chance: Floats, off: Range) -> Ints:
    """Change one digit of the right answer without losing the first digit."""
    size = np.abs(right)
    digits = np.floor(np.log10(np.maximum(size, 1) + 0.5)).astype(np.int64) + 1
    power = 10 ** np.floor(chance[0] * digits).astype(np.int64)
    digit = size // power % 10
    # The first digit does not become 0, unless it is the only one of a positive number.
    is_first = (size // power < 10) & ((size > 9) | (right < 0))
    more = 1 + np.floor(chance[1] * 9).astype(np.int64)
    new_digit = (digit + more) % 10
    new_digit = np.where(is_first & (new_digit == 0), digit, new_digit)  # unchanged: sampled again
    changed = size + (new_digit - digit) * power
    signed: Ints = np.where(right < 0, -changed, changed)
    return signed


# Kinds of wrong answers, which determine the difficulty; the task also implements ``drawn``.
_WAYS: dict[str, _Way] = {"near": _near, "operation": _operation, "digit": _digit}


class _Story(Entry):
    """A template."""

    text: str
    answer: Literal["NUMA + NUMB", "NUMA - NUMB"]
    signed: bool = False


@dataclass(frozen=True, eq=False)
class _ProblemKind(TextKind):
    sign: int  # of the second number in the answer
    least: int  # smallest answer


@dataclass(frozen=True)
class Wordproblems(JudgedTask):
    """Short stories with two numbers, a question about their sum or difference, and an answer.

    The task follows NumGPT's Math Word Problem Addition and Subtraction (MWPAS), with 20 templates,
    ten per operation, all used in the same number of rows. With ``--form judge`` (the default),
    half of the answers are correct and rows are labeled. With ``--form generate``, all answers are
    correct, and models generate the answer (``targets``, ``answer_start``) instead of a label.

    Both numbers are sampled log-uniformly from ``--numbers``: n from low to high has probability
    log((n + 1) / n) / log((high + 1) / low). Answers are at least 1, except in two stories in which
    they may be 0 or negative (an overdrawn account, a loss). The paper does not state the range of
    the numbers. With 1..100000, about as many answers exceed 10,000 as in the paper (6,850 of
    20,000). For generation, the paper only uses answers above 10,000; ``--answers 10001..inf``
    selects this subset, for right and wrong answers.

    The paper does not state how wrong answers are generated, which determines the difficulty.
    ``--wrong`` is one of:

    - ``near`` (the default): the right answer plus or minus a log-uniform fraction of it
      (``--off``, 1% to 100%), but at least 1 away from it.
    - ``digit``: the right answer with one digit changed.
    - ``drawn``: the right answer for other numbers in the same story.
    - ``operation``: the absolute value of the result of the other operation.

    Wrong answers of the last two kinds can be recognized by their magnitude, without arithmetic.
    The paper probably did not use such answers, because GPT stayed at chance level while NumGPT
    reached 88%. ``near`` gives easy and hard answers; ``--off`` sets the difficulty.

    Within a template, a pair of numbers appears at most once in each order, and never in two
    splits: a hash of the seed, the template and the numbers determines the split, so it is the
    same for both forms. ``--templates`` reads your own stories instead of
    numtok/data/tasks/templates/wordproblems.toml. Rows have the groups ``template`` and
    ``operation``.

    >>> made = Wordproblems().unit(0, TaskSplit("train", 1), 0)
    >>> print(made.rows.decode().strip())  # doctest: +NORMALIZE_WHITESPACE
    {"id":"train-0","text":"Q: A lorry drove 8043 kilometres last year and 3774 kilometres this
    year. How many kilometres did it drive in the two years? A:
    11817","label":"correct","group":{"template":"lorry","operation":"addition"}}

    Raises UsageError if a setting or the file of templates is invalid.
    """

    revision = 1
    source = "NumGPT, synthetic tasks and generation evaluation"
    digest = "b485f6d153806d86"
    samples: ClassVar[int] = 40_000
    fields: ClassVar[tuple[str, ...]] = ("NUMA", "NUMB", "ANSWER")

    form: str = setting("judge", "judge (correct or incorrect), or generate.", choices=_FORMS)
    numbers: Range = setting(Range(1, 100_000), "Integers in the stories.")
    answers: Range = setting(_EVERY_ANSWER, "Allowed answers; 10001..inf for the paper's subset.")
    wrong: str = setting("near", "Kind of wrong answers.", choices=(*_WAYS, _DRAWN))
    off: Range = setting(_OFF, "Relative error of wrong answers (wrong=near).")
    templates: str = setting("", "TOML file with your own stories.")

    def __post_init__(self) -> None:
        for name, default, is_unused, where, needed in (
            ("wrong", "near", self.generates, "form=generate", "form=judge"),
            ("off", _OFF, self.generates, "form=generate", "form=judge"),
            ("off", _OFF, self.wrong != "near", f"wrong={self.wrong}", "wrong=near"),
        ):
            if is_unused and getattr(self, name) != default:
                raise UsageError(
                    f"wordproblems: {name}={getattr(self, name)} cannot be combined with {where}; "
                    f"it only applies to {needed}"
                )
        low, high = self.numbers.low, self.numbers.high
        if low % 1 or high % 1 or not 1 <= low < high <= _LARGEST:
            raise UsageError(
                f"wordproblems: numbers must be a range of whole numbers from 1 to {_LARGEST:,} "
                f"(got {self.numbers})"
            )
        if not 0 < self.off.low <= self.off.high <= 1000:
            raise UsageError(
                "wordproblems: off must be a number, or a range, above 0 and at most 1000 (got "
                f"{self.off})"
            )
        for kind, possible in zip(self._kinds, self._possible, strict=True):
            if not possible:
                raise self._file.wrong(
                    kind.group["template"],
                    f"no numbers={self.numbers} have an answer in answers={self.answers}. Choose "
                    "wider ranges",
                )

    @property
    def generates(self) -> bool:
        return self.form == "generate"

    @cached_property
    def _kinds(self) -> Sequence[_ProblemKind]:
        kinds = []
        for entry, story in self._file.entries("templates", _Story).items():
            self._file.pattern(entry, story.text, self.fields[:2])
            pattern = self._file.pattern(entry, f"Q: {story.text} A: [ANSWER]", self.fields)
            sign, least = 1 if "+" in story.answer else -1, -2 * _LARGEST if story.signed else 1
            group = {"template": story.name, "operation": _OPERATIONS[sign]}
            kinds.append(_ProblemKind(group, pattern, sign, least))
        return kinds

    def _answers_of(self, least: Ints | int) -> tuple[Ints, Ints]:
        """Return the smallest and largest allowed answers, given the smallest of each story."""
        low = np.maximum(np.ceil(max(self.answers.low, -2.0 * _LARGEST)), least)
        high = np.full_like(low, np.floor(min(self.answers.high, 2.0 * _LARGEST)))
        return low.astype(np.int64), high.astype(np.int64)

    @property
    def _possible(self) -> list[int]:
        """Number of pairs of rows of each template."""
        rows_each = 1 if self.generates else 2
        low, high = int(self.numbers.low), int(self.numbers.high)
        size = high - low + 1
        counts = []
        for kind in self._kinds:
            least, most = (int(end) for end in self._answers_of(kind.least))
            # Shift both numbers to start at 0; count the second one of a difference from above.
            shift = 2 * low if kind.sign > 0 else 1 - size
            rows = _sums(size, most - shift) - _sums(size, least - 1 - shift)
            counts.append(rows // rows_each // (2 // rows_each))
        return counts

    def _draw(self, seed: int, split: TaskSplit, which: Ints) -> Sequence[Ints]:
        drawing = _Drawing(self, seed, split, which)
        a, b, answer = self._without_repeats(split, len(which), 1, drawing.story)
        label = np.ones_like(which)
        if not self.generates:
            label = np.arange(len(which)) % 2
            wrong = np.flatnonzero(label == 0)
            answer[wrong] = drawing.wrong_answers(wrong, a[wrong], b[wrong], answer[wrong])
        return [a, b, answer, label]


def _sums(size: int, most: int) -> int:
    """Count the pairs (i, j) with 0 <= i, j < size and i + j <= most.

    >>> [_sums(3, most) for most in (-1, 0, 2, 3, 9)]
    [0, 1, 6, 8, 9]
    """
    if most < size:
        return max(0, most + 1) * max(0, most + 2) // 2
    rest = max(0, 2 * size - 2 - most)
    return size * size - rest * (rest + 1) // 2


class _Drawing:
    """Samples the numbers of one split, whose rows [n] have the templates ``which`` [n]."""

    def __init__(self, task: Wordproblems, seed: int, split: TaskSplit, which: Ints) -> None:
        self._task, self._seed, self._split, self._which = task, seed, split, which
        self._sign, least = task._of_kinds(which, "sign", "least")
        self._low, self._high = task._answers_of(least)

    def _chances(self, purpose: str, rows: int) -> Floats:
        whole = f"wordproblems {purpose} {self._split.name} {self._seed}"
        return uniforms_of_rows(whole, range(rows), 2)

    def _numbers(self, rows: Ints, chance: Floats) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
        """Sample both numbers [n]; return also the right answer [n] and whether it is allowed."""
        ends = int(self._task.numbers.low), int(self._task.numbers.high)
        a, b = log_draw(chance[0], *ends), log_draw(chance[1], *ends)
        answer: Ints = a + self._sign[rows] * b
        return a, b, answer, self._is_possible(rows, answer)

    def _is_possible(self, rows: Ints, answer: Ints) -> NDArray[np.bool_]:
        return (answer >= self._low[rows]) & (answer <= self._high[rows])

    def story(self, rows: Ints, attempt: int) -> DrawnRows:
        """Sample the numbers of stories and their right answers."""
        a, b, answer, usable = self._numbers(rows, self._chances(f"{attempt}", len(rows)))
        hashes = identities(self._seed, self._which[rows], np.minimum(a, b), np.maximum(a, b))
        usable = usable & are_of(self._split, hashes)
        if not self._task.generates and self._task.wrong == "operation":
            # Only this kind has a single wrong answer. Require that it is allowed in all rows, so
            # that this does not reveal the label.
            sign, off, unused = self._sign[rows], self._task.off, np.empty(0)
            wrong = _operation(a, b, sign=sign, right=answer, chance=unused, off=off)
            usable &= self._is_possible(rows, wrong) & (wrong != answer)
        return DrawnRows(np.array([a, b, answer]), hashes ^ (a > b).astype(np.uint64), usable)

    def wrong_answers(self, rows: Ints, a: Ints, b: Ints, right: Ints) -> Ints:
        """Sample a wrong answer for each row [n], repeatedly until it is allowed."""
        answers = right.copy()
        left = np.arange(len(rows))
        for attempt in range(_ROUNDS):
            if not len(left):
                return answers
            these = rows[left]
            chance = self._chances(f"wrong {attempt}", len(left))
            if self._task.wrong == _DRAWN:
                _, _, wrong, usable = self._numbers(these, chance)
            else:
                way = _WAYS[self._task.wrong]
                sign, off = self._sign[these], self._task.off
                wrong = way(a[left], b[left], sign=sign, right=right[left], chance=chance, off=off)
                usable = self._is_possible(these, wrong)
            usable = usable & (wrong != right[left])
            answers[left[usable]] = wrong[usable]
            left = left[~usable]
        template = self._task._kinds[self._which[rows[left[0]]]].group["template"]
        raise UsageError(
            f"{spec_of(self._task)}: {template}: none of {_ROUNDS:,} wrong answers to "
            f"{a[left[0]]} and {b[left[0]]} is allowed. Choose a wider range of answers"
        )
