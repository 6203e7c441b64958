"""Arithmetic, checked by a separate evaluator: values, forms and frequencies."""

import ast
import operator
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import sqrt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.data.tasks._contract import rows_in
from numtok.data.tasks.arithmetic import Arithmetic
from numtok.data.tasks.base import SHARES, TASKS, TaskSplit
from numtok.encoding.texts import Texts
from numtok.errors import UsageError
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan
from numtok.registry import spec_of
from numtok.row import Row
from tests.cases import case
from tests.messages import Says

NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
OPERATIONS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.USub: operator.neg,
}

SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def rows(task: Arithmetic, count: int, seed: int = 0) -> list[Row]:
    """Return some rows, all in one split."""
    return rows_in(task.unit(seed, TaskSplit("train", count), 0).rows)


def texts(spec: str, count: int) -> list[str]:
    task = TASKS.build(spec)
    assert isinstance(task, Arithmetic)
    return [row.text for row in rows(task, count)]


def value_of(node: ast.AST, source: str) -> Fraction:
    """Return the exact value of a parsed expression; literals are read as text, not as floats."""
    if isinstance(node, ast.BinOp):
        left, right = value_of(node.left, source), value_of(node.right, source)
        result = OPERATIONS[type(node.op)](left, right)
    elif isinstance(node, ast.UnaryOp):
        result = OPERATIONS[type(node.op)](value_of(node.operand, source))
    else:
        assert isinstance(node, ast.Constant)
        result = Fraction(source[node.col_offset : node.end_col_offset])
    assert isinstance(result, Fraction)
    return result


def written(value: Fraction) -> str:
    """Return the shortest exact decimal."""
    places = next(places for places in range(40) if (value * 10**places).denominator == 1)
    digits = str(abs(value.numerator * 10**places // value.denominator)).zfill(places + 1)
    point = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return "-" * (value < 0) + point


def parsed(text: str) -> tuple[ast.expr, str, str]:
    """Return the parsed expression, its source and the written answer."""
    source, _, answer = (part.strip() for part in text.partition("="))
    return ast.parse(source, mode="eval").body, source, answer


# --- the text and its value --------------------------------------------------------------------

FIRST = [
    ("arithmetic", "(61.7 * (8.31 + 64.8)) = 4510.887"),
    ("arithmetic,operands=2", "(7.55 + 5.28) = 12.83"),
    ("arithmetic,operands=4", "(86.2 - ((78.9 + 1.06) * 6.64)) = -444.7344"),
    ("arithmetic,decimals=2,low=-9.99,high=9.99,spaces=no", "((-6.85-5.37)*-2.88)=35.1936"),
    ("arithmetic,kind=product", "305 * 876 = 267180"),
]


def test_expressions_are_written_as_in_the_paper() -> None:
    for spec, text in FIRST:
        assert texts(spec, 1) == [text], (spec, text)


@st.composite
def tasks(draw: st.DrawFn) -> Arithmetic:
    """Draw settings of all kinds, up to the limits of 64 bits."""
    spaces = draw(st.booleans())
    if draw(st.integers(0, 4)) == 0:
        return Arithmetic(kind="product", digits=draw(st.integers(1, 9)), spaces=spaces)
    operands = draw(st.integers(2, 8))
    operators = "".join(draw(st.permutations("+-*")))[: draw(st.integers(1, 3))]
    if draw(st.booleans()):
        places = draw(st.integers(0, 18 // operands - 1))
        most = int(2 ** (63 / operands)) - 1
        low, high = sorted([draw(st.integers(-most, most)), draw(st.integers(-most, most))])
        if high - low < 20:  # enough expressions to draw from
            low, high = (low - 20, high) if high > 0 else (low, high + 20)
        ends = [Decimal(end).scaleb(-places) for end in (max(low, -most), min(high, most))]
        return Arithmetic(
            operands=operands, operators=operators, places=places, spaces=spaces,
            low=f"{ends[0]:f}", high=f"{ends[1]:f}",
        )  # fmt: skip
    ranges = [("1", "50", 2), ("0.3", "4.20", 2), ("10", "8000", 1), ("5", "120", 1)]
    first, last, figures = draw(st.sampled_from(ranges))
    return Arithmetic(
        operands=min(operands, 4), operators=operators, figures=figures, spaces=spaces,
        low=first, high=last,
    )  # fmt: skip


@given(tasks(), st.integers(-5, 5))
def test_every_answer_is_the_exact_value_in_its_shortest_form(task: Arithmetic, seed: int) -> None:
    for row in rows(task, 40, seed):
        tree, source, answer = parsed(row.text)
        assert answer == written(value_of(tree, source)), row.text
        start = row.answer_start
        assert start is not None
        assert row.targets == {"answer": [(start, len(row.text))]}
        assert row.text[start:] == answer
        assert row.group is not None
        assert isinstance(tree, ast.BinOp)
        assert row.group["operator"] == SIGNS[type(tree.op)]
        assert row.group["operands"] == len(leaves(tree, source))
        assert (row.group.get("digits") == task.digits) == (task.kind == "product")


@given(tasks())
def test_the_scanner_reads_operands_and_answer_and_no_operator_as_a_sign(task: Arithmetic) -> None:
    made = [row.text for row in rows(task, 40)]
    column = Texts.of(pa.array(made, pa.string()))
    starts, ends, counts = scan(*column, NumeralPolicy())
    found = [
        column.data[start:end].tobytes().decode()
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    for text, count in zip(made, counts.tolist(), strict=True):
        tree, source, answer = parsed(text)
        assert found[:count] == [*leaves(tree, source), answer], text
        del found[:count]


def leaves(tree: ast.AST, source: str) -> list[str]:
    """Return the operands as written, from left to right."""
    if isinstance(tree, ast.BinOp):
        return leaves(tree.left, source) + leaves(tree.right, source)
    return [source[tree.col_offset : tree.end_col_offset]] if isinstance(tree, ast.expr) else []


def test_values_are_exact_up_to_the_largest_that_is_allowed() -> None:
    for operators in ["*", "+-*"]:
        for operands in range(2, 9):
            with case(operators, operands):
                most = int(2 ** (63 / operands) * (1 - 1e-9))
                for low, high in ((most - 9, most), (-most, 9 - most)):
                    task = Arithmetic(
                        "tree", operands, operators, places=0, low=str(low), high=str(high)
                    )
                    for row in rows(task, 60):
                        tree, source, answer = parsed(row.text)
                        assert answer == written(value_of(tree, source)), row.text


SPACED = re.compile(r"(\(?)*" + NUMBER + r"( [-+*] \(*" + NUMBER + r"\)*)+ = " + NUMBER)


def test_spaces_are_around_operators_or_nowhere() -> None:
    with_spaces = texts("arithmetic,operands=4,decimals=1,low=-9", 300)
    without = texts("arithmetic,operands=4,decimals=1,low=-9,spaces=no", 300)
    assert all(SPACED.fullmatch(text) for text in with_spaces)
    assert without == [text.replace(" ", "") for text in with_spaces]


def test_figures_keep_their_zeros_and_places_their_number() -> None:
    def operands(spec: str) -> set[str]:
        return {one for text in texts(spec, 2000) for one in leaves(*parsed(text)[:2])}

    three = operands("arithmetic")
    assert all(re.fullmatch(r"[1-9]\.[0-9]{2}|[1-9][0-9]\.[0-9]", one) for one in three)
    assert three >= {"8.20", "9.99", "10.0", "99.0"}
    assert operands("arithmetic,figures=2,low=0.09,high=1200") >= {"0.090", "0.10", "99", "1200"}
    assert operands("arithmetic,decimals=1,low=-0.25,high=0.2") == {
        "-0.2", "-0.1", "0.0", "0.1", "0.2",
    }  # fmt: skip


# --- samples -----------------------------------------------------------------------------------


def check_uniform(counts: Counter[Any], kinds: int) -> None:
    """Check that all kinds are equally likely: chi-square within 5 standard deviations."""
    assert len(counts) == kinds
    expected = counts.total() / kinds
    assert expected >= 20, "too few for the approximation"
    chi_square = sum((count - expected) ** 2 for count in counts.values()) / expected
    assert abs(chi_square - (kinds - 1)) < 5 * sqrt(2 * (kinds - 1))


def shape_of(text: str) -> str:
    """Return the shape of an expression: ``(x?(x?x))``."""
    return re.sub(" [-+*] ", "?", re.sub(NUMBER, "x", text.partition(" = ")[0]))


def split_of_all(spec: str, count: int, begin: int = 0, end: int = SHARES) -> list[str]:
    """Return the texts of one split."""
    task = TASKS.build(spec)
    assert isinstance(task, Arithmetic)
    made = task.unit(0, TaskSplit("train", count, begin, end), 0).rows
    return [row.text for row in rows_in(made)]


@pytest.mark.integration
@pytest.mark.parametrize("begin", [0, SHARES - SHARES // 10], ids=["all", "a tenth"])
def test_shapes_operators_and_operands_are_uniform_and_independent(begin: int) -> None:
    made = split_of_all("arithmetic,operands=3", 40_000, begin)
    trees = [parsed(text)[:2] for text in made]
    shapes = [shape_of(text) for text in made]
    operators = [tuple(re.findall(r" ([-+*]) ", text)) for text in made]
    check_uniform(Counter(zip(shapes, operators, strict=True)), 2 * 9)
    operands = [leaves(*tree) for tree in trees]
    for place in range(3):
        check_uniform(Counter(row[place] for row in operands), 1800)
    tens = [tuple(int(float(one) >= 10) for one in row) for row in operands]
    check_uniform(Counter(zip(operators, tens, strict=True)), 9 * 8)


def test_trees_of_four_operands_have_all_five_shapes_alike() -> None:
    made = texts("arithmetic,operands=4,operators=+", 20_000)
    check_uniform(Counter(map(shape_of, made)), 5)


@pytest.mark.integration
def test_the_factors_of_a_product_are_uniform_and_independent() -> None:
    made = [
        text.partition(" = ")[0].split(" * ") for text in texts("arithmetic,kind=product", 60_000)
    ]
    for place in (0, 1):
        check_uniform(Counter(row[place] for row in made), 900)
    check_uniform(Counter((a[0], b[0]) for a, b in made), 81)
    check_uniform(Counter((a[-1], b[-1]) for a, b in made), 100)


def test_all_products_of_one_digit_are_drawn_once() -> None:
    made = texts("arithmetic,kind=product,digits=1", 81)
    assert sorted(made) == sorted(
        f"{a} * {b} = {a * b}" for a, b in product(range(1, 10), repeat=2)
    )


def test_all_trees_are_drawn_once() -> None:
    spec = "arithmetic,operands=3,decimals=0,low=-1,high=1"
    assert TASKS.build(spec).possible == 2 * 9 * 27
    made = texts(spec, 2 * 9 * 27)
    assert len(set(made)) == len(made)


def canonical(tree: ast.AST, source: str) -> str:
    """Return one text for all expressions that differ only in the order of sides of + and *."""
    if not isinstance(tree, ast.BinOp):
        return leaves(tree, source)[0]
    sides = [canonical(tree.left, source), canonical(tree.right, source)]
    if not isinstance(tree.op, ast.Sub):
        sides.sort()
    return f"({sides[0]} {type(tree.op).__name__} {sides[1]})"


def classes(made: Iterable[str]) -> set[str]:
    return {canonical(*parsed(text)[:2]) for text in made}


def test_data_of_one_seed_share_no_expression_between_splits() -> None:
    for one, other in [
        ("arithmetic,kind=product,digits=2", "arithmetic,kind=product,digits=2,spaces=no"),
        ("arithmetic,decimals=0,low=-2,high=3", "arithmetic,decimals=0,low=-3,high=2"),
        (
            "arithmetic,operands=4,decimals=0,low=1,high=2",
            "arithmetic,operands=4,decimals=0,low=1,high=3",
        ),
    ]:
        with case(one, other):
            half = SHARES // 2
            below, above = split_of_all(one, 900, 0, half), split_of_all(other, 900, half)
            assert not classes(below) & classes(above)
            shared = classes(below) & classes(split_of_all(other, 900, 0, half))
            assert shared, "or the test shows nothing"
            assert len(classes(below)) < len(below), "some are there in both orders"


# --- errors ------------------------------------------------------------------------------------

WRONG = [
    ("kind=sum", ["kind must be tree or product (got 'sum')"]),
    ("kind=product,operands=4", ["operands=4", "product", "kind=tree"]),
    ("digits=4", ["digits=4", "tree", "kind=product"]),
    ("operands=1", ["operands must be from 2 to 8 (got 1)"]),
    ("operands=9", ["operands must be from 2 to 8 (got 9)"]),
    ("kind=product,digits=10", ["digits must be from 1 to 9 (got 10)"]),
    ("figures=0", ["figures must be from 1 to 18 (got 0)"]),
    ("decimals=19", ["decimals must be from -1 to 18 (got 19)"]),
    ("decimals=2,figures=4", ["figures=4", "decimals=2", "one"]),
    ("operators=+/", ["operators", "+/", "some of +-*, each once"]),
    ("operators=++", ["operators", "++", "some of +-*, each once"]),
    ("low=1e3", ["low", "1e3", "at most 18 digits on each side of the"]),
    ("low=-1", ["low", "-1", "figures=3", "decimals=2"]),
    ("low=99.95", ["low=99.95", "high=99.9", "wider range"]),
    ("decimals=0,low=0.2,high=0.8", ["low=0.2", "high=0.8", "decimals=0", "wider range"]),
    ("operands=5", ["1.00", "99.9", "fewer operands, a smaller range or"]),
]


def test_settings_that_cannot_be_are_refused(says: Says) -> None:
    for settings, parts in WRONG:
        with case(settings, parts):
            with pytest.raises(UsageError) as refused:
                TASKS.build(f"arithmetic,{settings}")
            says(refused, "arithmetic: ", *parts)
            assert refused.value.exit_code == 2


def test_running_out_of_expressions_is_an_error(says: Says) -> None:
    task = Arithmetic(kind="product", digits=1)
    with says.raises(
        UsageError, "kind=product,digits=1 has 81", "40 in the split 'test'", "--rows"
    ):
        task.unit(0, TaskSplit("test", 40, 0, SHARES // 10), 0)


def test_a_unit_beyond_all_expressions_is_an_error() -> None:
    task = Arithmetic(kind="product", digits=2)
    with pytest.raises(UsageError, match="too few for 400,000 in the split 'train'"):
        task.unit(0, TaskSplit("train", 400_000), 1)


@given(tasks())
def test_a_spec_is_read_back(task: Arithmetic) -> None:
    assert TASKS.build(spec_of(task)) == task
