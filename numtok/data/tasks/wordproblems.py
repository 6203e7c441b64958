"""wordproblems: sums and differences in short stories. ``Q: A ship carries 6518 ... A: 10060``"""

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
from numtok.registry import Range, spec_of

_LARGEST = 10**15
_ROUNDS = 1000
_OPERATIONS = {1: "addition", -1: "subtraction"}  # by the sign of the second number
_FORMS = ("judge", "generate")
_DRAWN = "drawn"
_EVERY_ANSWER = Range(-inf, inf)
_OFF = Range(0.01, 1)


class _Way(Protocol):
    """Makes wrong answers [n], some of which may be right after all, from both numbers, the sign
    of the operation, the right answer (all [n]) and chances [2, n]; ``off``: how far off near
    answers are."""

    def __call__(
        self, a: Ints, b: Ints, *, sign: Ints, right: Ints, chance: Floats, off: Range
    ) -> Ints: ...


def _near(a: Ints, b: Ints, *, sign: Ints, right: Ints, chance: Floats, off: Range) -> Ints:
    """Off by a share of the right answer, drawn by its logarithm, by 1 at least, either way."""
    share = off.low * np.exp(chance[0] * np.log(off.high / off.low))
    amount = np.maximum(1, np.rint(share * np.abs(right))).astype(np.int64)
    made: Ints = right + np.where(chance[1] < 0.5, -amount, amount)
    return made


def _operation(a: Ints, b: Ints, *, sign: Ints, right: Ints, chance: Floats, off: Range) -> Ints:
    """The other operation, of a difference without its sign."""
    return np.where(sign > 0, np.abs(a - b), a + b)


def _digit(a: Ints, b: Ints, *, sign: Ints, right: Ints, chance: Floats, off: Range) -> Ints:
    """One digit of the right answer is another, none is lost at the beginning."""
    size = np.abs(right)
    digits = np.floor(np.log10(np.maximum(size, 1) + 0.5)).astype(np.int64) + 1
    power = 10 ** np.floor(chance[0] * digits).astype(np.int64)
    digit = size // power % 10
    # The first digit becomes no 0, unless it is the only one, without a sign.
    is_first = (size // power < 10) & ((size > 9) | (right < 0))
    more = 1 + np.floor(chance[1] * 9).astype(np.int64)
    other = (digit + more) % 10
    other = np.where(is_first & (other == 0), digit, other)  # no change, so it is drawn again
    made = size + (other - digit) * power
    signed: Ints = np.where(right < 0, -made, made)
    return signed


# How a wrong answer is drawn, which decides how hard it is to tell; the task makes ``drawn``, too.
_WAYS: dict[str, _Way] = {"near": _near, "operation": _operation, "digit": _digit}


class _Story(Entry):
    """A template."""

    text: str
    answer: Literal["NUMA + NUMB", "NUMA - NUMB"]
    signed: bool = False


@dataclass(frozen=True, eq=False)
class _ProblemKind(TextKind):
    sign: int  # of the second number in the answer
    least: int  # of the answer


@dataclass(frozen=True)
class Wordproblems(JudgedTask):
    """Short stories with two numbers and a question for their sum or difference, and an answer.

    As NumGPT's Math Word Problem Addition and Subtraction (MWPAS): 20 templates, ten of each
    operation, as many rows of each. ``--form judge`` (the default): half of the answers are
    correct, and the label says which. ``--form generate``: all are, and the answer is the target
    that a model is to write (``targets``, ``answer_start``); no label.

    Both numbers are drawn by their logarithm from ``--numbers``: n from low to high with the
    probability log((n + 1) / n) / log((high + 1) / low). Answers are 1 or more, but for two stories
    in which they may be 0 or negative (an account that may be overdrawn, a loss). The range is not
    in the paper; with 1..100000 the share of answers above 10,000 is about that of the paper, where
    6,850 of 20,000 are used for generation. ``--answers 10001..inf`` is that subset, wrong answers
    too.

    How wrong answers are drawn is not in the paper either, and decides how hard it is. ``--wrong``:

    - ``near`` (the default): the right answer, more or less an amount drawn by its logarithm, of
      ``--off`` 1% to 100% of the answer, 1 at least.
    - ``digit``: one digit of the right answer is another.
    - ``drawn``: the right answer for other numbers in the same story.
    - ``operation``: the other operation, of a difference without its sign.

    Magnitudes alone, without arithmetic, tell nearly all of the last two. The paper's GPT stayed at
    chance where its NumGPT came to 88%, so its wrong answers were hardly of these kinds. ``near``
    has easy ones and hard ones, and ``--off`` says how hard.

    No template has the same two numbers in the same order twice, and none has them in two splits,
    in either order: a hash of the seed and the three says which split has them, the same for both
    forms. ``--templates`` names a file of own stories in place of those of numtok, which are in
    numtok/data/tasks/templates/wordproblems.toml. Groups are ``template`` and ``operation``.

    >>> made = Wordproblems().unit(0, TaskSplit("train", 1), 0)
    >>> print(made.rows.decode().strip())  # doctest: +NORMALIZE_WHITESPACE
    {"id":"train-0","text":"Q: A lorry drove 8043 kilometres last year and 3774 kilometres this
    year. How many kilometres did it drive in the two years? A:
    11817","label":"correct","group":{"template":"lorry","operation":"addition"}}

    Raises UsageError for settings that cannot be, and for a file of templates that is not right.
    """

    revision = 1
    source = "NumGPT, synthetic tasks and generation evaluation"
    digest = "b485f6d153806d86"
    samples: ClassVar[int] = 40_000
    fields: ClassVar[tuple[str, ...]] = ("NUMA", "NUMB", "ANSWER")

    form: str = setting("judge", "judge (correct or incorrect), or generate.", choices=_FORMS)
    numbers: Range = setting(Range(1, 100_000), "The numbers of the stories, whole.")
    answers: Range = setting(_EVERY_ANSWER, "Only such answers; 10001..inf in the paper's subset.")
    wrong: str = setting("near", "How answers are wrong.", choices=(*_WAYS, _DRAWN))
    off: Range = setting(_OFF, "Of near: how far off, as a share of the right answer.")
    templates: str = setting("", "A TOML file of own stories.")

    def __post_init__(self) -> None:
        for name, default, is_unused, where in (
            ("wrong", "near", self.generates, "form=generate"),
            ("off", _OFF, self.generates, "form=generate"),
            ("off", _OFF, self.wrong != "near", f"wrong={self.wrong}"),
        ):
            if is_unused and getattr(self, name) != default:
                raise UsageError(
                    f"wordproblems: {name}={getattr(self, name)} means nothing with {where}; "
                    "leave it out"
                )
        low, high = self.numbers.low, self.numbers.high
        if low % 1 or high % 1 or not 1 <= low < high <= _LARGEST:
            raise UsageError(
                f"wordproblems: numbers={self.numbers} is not possible; allowed is a range of "
                f"whole numbers from 1 to {_LARGEST:,}"
            )
        if not 0 < self.off.low <= self.off.high <= 1000:
            raise UsageError(
                f"wordproblems: off={self.off} is not possible; allowed are shares above 0 and up "
                "to 1000, one or a range"
            )
        for kind, possible in zip(self._kinds, self._possible, strict=True):
            if not possible:
                raise self._file.wrong(
                    kind.group["template"],
                    f"no numbers={self.numbers} have an answer of answers={self.answers}; give "
                    "wider ranges",
                )

    @property
    def generates(self) -> bool:
        return self.form == "generate"

    @cached_property
    def _kinds(self) -> Sequence[_ProblemKind]:
        kinds = []
        for entry, one in self._file.entries("templates", _Story).items():
            self._file.pattern(entry, one.text, self.fields[:2])
            pattern = self._file.pattern(entry, f"Q: {one.text} A: [ANSWER]", self.fields)
            sign, least = 1 if "+" in one.answer else -1, -2 * _LARGEST if one.signed else 1
            group = {"template": one.name, "operation": _OPERATIONS[sign]}
            kinds.append(_ProblemKind(group, pattern, sign, least))
        return kinds

    def _answers_of(self, least: Ints | int) -> tuple[Ints, Ints]:
        """The smallest and the largest answer that is allowed where ``least`` is the story's."""
        low = np.maximum(np.ceil(max(self.answers.low, -2.0 * _LARGEST)), least)
        high = np.full_like(low, np.floor(min(self.answers.high, 2.0 * _LARGEST)))
        return low.astype(np.int64), high.astype(np.int64)

    @property
    def _possible(self) -> list[int]:
        """Of each template, how many pairs of rows there are."""
        rows_each = 1 if self.generates else 2
        low, high = int(self.numbers.low), int(self.numbers.high)
        size = high - low + 1
        found = []
        for kind in self._kinds:
            least, most = (int(end) for end in self._answers_of(kind.least))
            # Both numbers from 0 on; the second of a difference counted from above.
            shift = 2 * low if kind.sign > 0 else 1 - size
            rows = _sums(size, most - shift) - _sums(size, least - 1 - shift)
            found.append(rows // rows_each // (2 // rows_each))
        return found

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
    """How many (i, j) with 0 <= i, j < size have i + j <= most.

    >>> [_sums(3, most) for most in (-1, 0, 2, 3, 9)]
    [0, 1, 6, 8, 9]
    """
    if most < size:
        return max(0, most + 1) * max(0, most + 2) // 2
    rest = max(0, 2 * size - 2 - most)
    return size * size - rest * (rest + 1) // 2


class _Drawing:
    """The draws of one split, whose rows [n] have these templates."""

    def __init__(self, task: Wordproblems, seed: int, split: TaskSplit, which: Ints) -> None:
        self._task, self._seed, self._split, self._which = task, seed, split, which
        self._sign, least = task._of_kinds(which, "sign", "least")
        self._low, self._high = task._answers_of(least)

    def _chances(self, purpose: str, rows: int, columns: int) -> Floats:
        whole = f"wordproblems {purpose} {self._split.name} {self._seed}"
        return uniforms_of_rows(whole, range(rows), columns)

    def _numbers(self, rows: Ints, chance: Floats) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
        """Both numbers, the right answer, and whether it may be one."""
        ends = int(self._task.numbers.low), int(self._task.numbers.high)
        a, b = log_draw(chance[0], *ends), log_draw(chance[1], *ends)
        answer: Ints = a + self._sign[rows] * b
        return a, b, answer, self._is_possible(rows, answer)

    def _is_possible(self, rows: Ints, answer: Ints) -> NDArray[np.bool_]:
        return (answer >= self._low[rows]) & (answer <= self._high[rows])

    def story(self, rows: Ints, attempt: int) -> DrawnRows:
        """Numbers of stories, and the right answers."""
        a, b, answer, usable = self._numbers(rows, self._chances(f"{attempt}", len(rows), 2))
        hashes = identities(self._seed, self._which[rows], np.minimum(a, b), np.maximum(a, b))
        usable = usable & are_of(self._split, hashes)
        if not self._task.generates and self._task.wrong == "operation":
            # No other way has one wrong answer alone; whether it is possible must not show.
            sign, off, unused = self._sign[rows], self._task.off, np.empty(0)
            other = _operation(a, b, sign=sign, right=answer, chance=unused, off=off)
            usable &= self._is_possible(rows, other) & (other != answer)
        return DrawnRows(np.array([a, b, answer]), hashes ^ (a > b).astype(np.uint64), usable)

    def wrong_answers(self, rows: Ints, a: Ints, b: Ints, right: Ints) -> Ints:
        """A wrong answer for each of some rows [n], drawn until it is possible."""
        found = right.copy()
        left = np.arange(len(rows))
        for attempt in range(_ROUNDS):
            if not len(left):
                return found
            these = rows[left]
            chance = self._chances(f"wrong {attempt}", len(left), 2)
            if self._task.wrong == _DRAWN:
                _, _, made, usable = self._numbers(these, chance)
            else:
                way = _WAYS[self._task.wrong]
                sign, off = self._sign[these], self._task.off
                made = way(a[left], b[left], sign=sign, right=right[left], chance=chance, off=off)
                usable = self._is_possible(these, made)
            usable = usable & (made != right[left])
            found[left[usable]] = made[usable]
            left = left[~usable]
        template = self._task._kinds[self._which[rows[left[0]]]].group["template"]
        raise UsageError(
            f"{spec_of(self._task)}: {template}: of {_ROUNDS:,} wrong answers to "
            f"{a[left[0]]} and {b[left[0]]} none is possible; give a wider range of answers"
        )
