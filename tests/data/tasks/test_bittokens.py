"""BitTokens tasks: answers checked by a separate evaluator, sizes, digits and signs."""

import operator
import statistics
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from numtok.data.tasks import _unrepeated
from numtok.data.tasks._bittokens_lists import LETTERS
from numtok.data.tasks._contract import rows_in
from numtok.data.tasks._decimal_draws import LEAST, MOST, rounded
from numtok.data.tasks.base import TASKS, TaskSplit, TextTask
from numtok.errors import UsageError
from numtok.row import Row
from numtok.training.curriculum import Curriculum
from tests.cases import case, each

SPLIT = TaskSplit("train", 300)
ROOT = Path(__file__).parents[3]
SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def rows(operation: str, form: str = "symbols", split: TaskSplit = SPLIT) -> list[Row]:
    task = TASKS.build(f"bittokens,operation={operation},form={form}")
    assert isinstance(task, TextTask)
    return rows_in(task.unit(0, split, 0).rows)


def answers(row: Row) -> list[str]:
    assert row.targets is not None
    return [row.text[begin:end] for begin, end in row.targets["answer"]]


def to_fifteen(value: Fraction) -> Fraction:
    """Round to 15 significant digits, half to even."""
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        context.prec = 15
        return Fraction(+exact)


@each("operation", ["addition", "multiplication", "division"])
def test_answers_are_exact_to_fifteen_digits(operation: str) -> None:
    for row in rows(operation):
        first, sign, second, _, answer = row.text.split()
        with case(row.text):
            value = SIGNS[sign](Fraction(first), Fraction(second))
            assert Fraction(answer) == to_fifteen(value)
            for number in (first, second, answer):
                assert "e" not in number.lower()
                assert Fraction(1, 10**14) <= abs(Fraction(number)) <= 10**15
                assert len(number.strip("-0.").replace(".", "")) <= 17
            assert row.answer_start == row.text.rindex(" ") + 1 and answers(row) == [answer]


def test_powers_and_roots_are_those_of_floats() -> None:
    exponents = set()
    for row in rows("exponentiation"):
        base, _, exponent, _, answer = row.text.split()
        assert float(answer) == pytest.approx(float(base) ** float(exponent), rel=1e-12)
        exponents.add(exponent)
    assert exponents == {"2", "3", "4", "5", "0.5", "0.25", "0.2"}


def numbers(row: Row) -> list[Fraction]:
    return [Fraction(one) for one in row.text.partition("(")[2].partition(")")[0].split(", ")]


def test_means_and_deviations_are_those_of_their_numbers() -> None:
    for row in rows("mean"):
        values = numbers(row)
        assert 2 <= len(values) <= 5
        assert [Fraction(one) for one in answers(row)] == [
            to_fifteen(Fraction(sum(values), len(values)))
        ]
    for row in rows("std"):
        wanted = statistics.pstdev(numbers(row))
        assert float(answers(row)[0]) == pytest.approx(float(wanted), rel=1e-12)


def test_means_have_a_size_that_the_benchmark_has() -> None:
    """Numbers that cancel out, such as 0.387 and -0.387, are drawn again."""
    for row in rows("mean", split=TaskSplit("train", 20_000)):
        assert LEAST <= abs(float(answers(row)[0])) < MOST, row.text


def test_lists_are_sorted_as_they_say() -> None:
    for row in rows("sorting"):
        falling = row.text.startswith("desc")
        found = [Fraction(one) for one in answers(row)]
        assert found == sorted(numbers(row), reverse=falling) and len(set(found)) == len(found)
    for row in rows("minmax"):
        wanted = (min if row.text.startswith("min") else max)(numbers(row))
        assert [Fraction(one) for one in answers(row)] == [wanted]


def test_a_letter_says_in_which_gap_a_number_lies() -> None:
    found: Counter[tuple[int, str]] = Counter()
    for row in rows("interval", split=TaskSplit("train", 1 << 15)):
        looked_for, _, gaps = row.text.partition(": ")
        values = [Decimal(one) for one in gaps.split()[1::2]]
        assert values == sorted(values) and len({Decimal(looked_for), *values}) == len(values) + 1
        place = sum(value < Decimal(looked_for) for value in values)
        assert row.label == LETTERS[place] and row.targets is None
        found[len(values), row.label] += 1
    for length in range(2, 6):  # all gaps are equally likely
        counts = [found[length, letter] for letter in LETTERS[: length + 1]]
        assert min(counts) > 0.5 * max(counts), counts


def test_signs_digits_and_sizes_are_drawn_as_the_benchmark_does() -> None:
    found = rows("multiplication", split=TaskSplit("train", 4000))
    pairs = [row.text.split()[0:3:2] for row in found]
    minus = [sum(one.startswith("-") for one in pair) for pair in pairs]
    shares = np.bincount(minus, minlength=3) / len(found)
    assert shares == pytest.approx([0.4, 0.4, 0.2], abs=0.03)
    assert all(row.group is not None for row in found)
    digits = [int(str((row.group or {})["difficulty"])) for row in found]
    assert min(digits) == 2 and 26 < max(digits) <= 33
    sums = rows("addition", split=TaskSplit("train", 2000))
    assert Counter(row.text.split()[1] for row in sums)["+"] == pytest.approx(1000, abs=120)


def test_wordings_differ_and_numbers_do_not() -> None:
    plain, english = rows("addition"), rows("addition", "english")
    for one, other in zip(plain, english, strict=True):
        assert other.text.startswith("What is ") and answers(one) == answers(other)
        assert one.text.partition(" =")[0] == other.text[8:].partition("?")[0]


def test_numbers_are_rounded_to_their_digits() -> None:
    random = np.random.default_rng(0)
    values = random.choice([-1, 1], 500) * 10.0 ** random.uniform(-14, 15, 500)
    digits = random.integers(1, 16, 500)
    made = rounded(values, digits)
    for value, count, mantissa, place in zip(values, digits, *made, strict=True):
        wanted = Fraction(f"{value:.{count - 1}e}")
        unit = Fraction(10) ** int(place)
        assert abs(int(mantissa) * unit - wanted) <= (unit if count == 15 else 0)


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_unrepeated, "_ROUNDS", 1)
    monkeypatch.setattr(_unrepeated, "_AT_ONCE", 100)
    tiny = TaskSplit("test", 40, 0, 100)  # hardly any rows belong to this split
    with pytest.raises(UsageError, match="Reduce --rows"):
        rows("multiplication", split=tiny)


def test_the_curriculum_goes_through_all_that_is_drawn() -> None:
    phases = Curriculum.read(ROOT / "pipelines/curricula/bittokens.toml").phase
    assert len(phases) == 5 and phases[-1].rows[0].where == {}
