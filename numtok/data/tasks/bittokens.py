"""bittokens: arithmetic and list questions with 64-bit numbers. ``1.5 * -0.02 = -0.03``"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain, pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Ints
from numtok.data.tasks import _bittokens_lists as lists
from numtok.data.tasks import _bittokens_pairs as pairs
from numtok.data.tasks._decimal_draws import exact, plain
from numtok.data.tasks._draws import uniforms_of_rows
from numtok.data.tasks._unrepeated import DrawnRows, are_of, identities, without_repeats
from numtok.data.tasks.base import Made, TaskSplit, TextTask, WrittenRow, setting
from numtok.errors import UsageError

_PAIRS = ("addition", "multiplication", "division", "exponentiation")
_LISTS = ("mean", "std", "minmax", "sorting", "interval")
_NAMES = {"mean": ("mean",), "std": ("std",), "minmax": ("min", "max"), "sorting": ("asc", "desc")}
_ENGLISH = {
    "mean": "mean",
    "std": "standard deviation",
    "min": "minimum",
    "max": "maximum",
    "asc": "ascending order",
    "desc": "descending order",
}
_FORMS = ("symbols", "english")
_TRIES = 3  # candidates per row, if the split owns all hashes
_AT_ONCE = 1 << 16  # candidates generated at a time


@dataclass(frozen=True)
class BitTokensTask(TextTask):
    """Number tasks of the BitTokens benchmark (Kreitner et al. 2025).

    Numbers have magnitudes from 1e-14 to 1e15 and up to 17 digits, and are written without
    exponents. Answers have 15 digits.

    - ``addition`` (including differences), ``multiplication``, ``division``: pairs of operands
      whose result is also in this range. In sums, operands of similar magnitude are more likely.
      The two operands have 2 to 33 digits in total. For division, the quotient and the divisor are
      sampled. Both operands are positive in 40% of the pairs. The first, the second or both are
      negative in 20% each.
    - ``exponentiation``: a base raised to the power 2, 3, 4, 5, 1/2, 1/4 or 1/5.
    - ``mean``, ``std`` (of a population), ``minmax``, ``sorting``, ``interval``: questions about
      two to five numbers around a center. For ``interval``, the label is the letter of the gap that
      contains the first number; it is B for ``2: A 1 B 3 C``.

    The benchmark has 30 million training rows per task, and 10,000 rows each for validation and
    test. Its files are on Hugging Face (``KreitnerL/BitTokens-dataset``). This task follows the
    rules that the authors have published. They have not published the exponents of the benchmark,
    its other English wordings and the uniform bits in its curriculum.

    No text appears twice, within or across splits. Rows have the target ``answer`` (several numbers
    for ``sorting``) and the groups ``operation``, ``operator`` and ``difficulty``. The difficulty
    is the number of nonzero digits. In sums, however, each digit position counts 1 if one operand
    has a nonzero digit in it, and 3 if both do. For comparisons, the difficulty is the length of
    the longest common prefix of two numbers.

    >>> made = BitTokensTask("multiplication").unit(0, TaskSplit("train", 1), 0)
    >>> import json; row = json.loads(made.rows)
    >>> row["text"], row["targets"]
    ('-0.00000000985588671669084 * -406504478.956446 = 4.00646209442217', {'answer': [[49, 65]]})
    """

    revision = 2
    source = "BitTokens (arXiv 2510.06824), Appendix; public code"
    unit_rows = 1 << 15
    digest = "c148d6045faaae87"

    operation: str = setting("addition", "Operation.", choices=(*_PAIRS, *_LISTS))
    form: str = setting(
        "symbols", "Wording: 1 + 2 = 3 (symbols) or What is 1 + 2? 3 (english).", choices=_FORMS
    )

    def __post_init__(self) -> None:
        if self.operation == "interval" and self.form != _FORMS[0]:
            raise UsageError(
                f"bittokens: form={self.form} cannot be combined with operation=interval, whose "
                "rows have no words"
            )

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        first = index * self.unit_rows
        columns = _drawn(self, seed, split)[:, first : first + self.rows_of(split, index)]
        lines = self._pairs(columns) if self.operation in _PAIRS else self._lists(columns)
        rows = []
        for number, line in enumerate(lines, first):
            line.id = f"{split.name}-{number}"
            rows.append(line)
        return Made(msgspec.json.Encoder().encode_lines(rows), {})

    def _pairs(self, columns: Ints) -> Iterator[WrittenRow]:
        for kind, *numbers in columns.T.tolist():
            first, second = exact(*numbers[:2]), exact(*numbers[2:])
            operator = pairs.symbol(self.operation, kind)
            prompt = f"{plain(first)} {operator} {plain(second)}"
            hard = pairs.difficulty(operator, first, second)
            answer = pairs.answer(operator, first, second)
            yield self._line(prompt, [answer], operator, hard)

    def _lists(self, columns: Ints) -> Iterator[WrittenRow]:
        for length, choice, *flat in columns.T.tolist():
            reference, *numbers = (exact(*flat[k : k + 2]) for k in range(0, 2 + 2 * length, 2))
            hard = lists.difficulty(self.operation, numbers)
            yield self._list(reference, numbers, choice, hard)

    def _list(
        self, reference: Decimal, numbers: list[Decimal], choice: int, hard: int
    ) -> WrittenRow:
        written = [plain(number) for number in numbers]
        if self.operation == "interval":
            shown = [plain(number) for number in sorted(numbers)]
            gaps = " ".join(f"{a} {b}" for a, b in zip(lists.LETTERS, [*shown, ""], strict=False))
            return WrittenRow(
                id="",
                text=f"{plain(reference)}: {gaps.strip()}",
                label=lists.LETTERS[choice],
                group={"operation": self.operation, "difficulty": hard},
            )
        names = _NAMES[self.operation]
        name = names[choice % len(names)]
        if self.operation == "mean":
            answers = [lists.mean(numbers)]
        elif self.operation == "std":
            answers = [lists.deviation(numbers)]
        else:
            ordered = sorted(numbers, reverse=name in ("max", "desc"))
            answers = [plain(number) for number in ordered]
            answers = answers[:1] if self.operation == "minmax" else answers
        prompt = f"{name}({', '.join(written)})"
        if self.form == "english":
            prompt = f"the {_ENGLISH[name]} of {', '.join(written)}"
        return self._line(prompt, answers, name, hard)

    def _line(self, prompt: str, answers: list[str], operator: str, hard: int) -> WrittenRow:
        text = f"{prompt} = " if self.form == "symbols" else f"What is {prompt}? "
        start = len(text)
        spans: list[tuple[int, int]] = []
        for answer in answers:
            text += ", " if spans else ""
            spans.append((len(text), len(text) + len(answer)))
            text += answer
        return WrittenRow(
            id="",
            text=text,
            targets={"answer": spans},
            answer_start=start,
            group={"operation": self.operation, "operator": operator, "difficulty": hard},
        )


@lru_cache(maxsize=2)
def _drawn(task: BitTokensTask, seed: int, split: TaskSplit) -> Ints:
    """Sample the numbers of all rows of a split, [columns, rows].

    For pairs, the operator, then mantissa and power of ten of both operands. For lists, the length,
    the question, then mantissa and power of ten of the reference and of all numbers.
    """
    of_pairs = task.operation in _PAIRS
    columns = 5 if of_pairs else 4 + 2 * lists.LONGEST

    def tried(rows: Ints, attempt: int) -> DrawnRows:
        purpose = f"bittokens {task.operation} {split.name} {attempt} {seed}"
        parts = []
        for begin in range(0, len(rows), _AT_ONCE):
            these = range(begin, min(begin + _AT_ONCE, len(rows)))
            numbers, usable = (_of_pairs if of_pairs else _of_lists)(task, purpose, these)
            hashes = _identities(task, seed, numbers)
            parts.append(DrawnRows(numbers, hashes, usable & are_of(split, hashes)))
        return DrawnRows(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))

    rows = without_repeats(split.rows, columns, int(_TRIES / split.share) + 1, tried)
    if rows is None:
        raise UsageError(
            f"bittokens: the split {split.name!r}, with {split.share:.3g} of all rows, does not "
            f"have {split.rows:,} different rows of {task.operation}. Reduce --rows"
        )
    return rows


def _of_pairs(task: BitTokensTask, purpose: str, rows: range) -> tuple[Ints, NDArray[np.bool_]]:
    """Sample candidate columns of pairs (see :func:`_drawn`) and which rows are usable."""
    questions = pairs.drawn(task.operation, uniforms_of_rows(purpose, rows, pairs.CHANCES))
    numbers = [*questions.first.shortest, *questions.second.shortest]
    return np.array([questions.operators, *numbers]), questions.usable


def _of_lists(task: BitTokensTask, purpose: str, rows: range) -> tuple[Ints, NDArray[np.bool_]]:
    """Sample candidate columns of lists (see :func:`_drawn`) and which rows are usable."""
    sampled = lists.drawn(task.operation, uniforms_of_rows(purpose, rows, lists.CHANCES))
    mantissas, places = sampled.numbers.shortest
    numbers = [*sampled.references.shortest, *chain(*zip(mantissas, places, strict=True))]
    return np.array([sampled.lengths, sampled.choices, *numbers]), sampled.usable


def _identities(task: BitTokensTask, seed: int, numbers: Ints) -> NDArray[np.uint64]:
    """Return hashes [n] of the content that two rows must not share."""
    kinds = np.full(numbers.shape[1], (*_PAIRS, *_LISTS).index(task.operation))
    hashes = identities(seed, kinds, numbers[0], kinds)
    for first, second in pairwise(numbers[1:]):
        hashes = identities(seed, hashes.view(np.int64), first, second)
    return hashes
