"""Numbers written token by token: they match a regular expression, and all matches are possible."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.encoding.number_pattern import NumberPattern, State, TokenStates
from numtok.errors import UsageError
from tests.cases import check_examples, each
from tests.messages import Says

PIECES = [*"0123456789+-.eE,% x", "12", " 7", " -", "00", ".5", ",0", "e-3", "%.", "-1", " x", ""]


def expression(of: NumberPattern) -> str:
    """Return what a pattern allows, without the state machine; digits in groups count as digits."""
    sign = f"[{re.escape(of.signs)}]?" if of.signs else ""
    whole = r"(?P<whole>\d*|\d{1,3}(,\d{3})+)" if of.groups else r"(?P<whole>\d*)"
    after = r"(\.(?P<decimals>\d*))?"
    exponent = r"(?P<exponent>[eE][-+]?\d+)?" if of.exponent else "(?P<exponent>$^)?"
    return rf" ?{sign}{whole}{after}{exponent}{'%?' if of.percent else ''}"


def is_number(of: NumberPattern, text: str) -> bool:
    match = re.fullmatch(expression(of), text)
    if match is None:
        return False
    digits, decimals = len(match["whole"].replace(",", "")), match["decimals"]
    if decimals == "" and not (match["exponent"] and digits and of.max_decimals != 0):
        return False  # a point with nothing after it
    if not digits and not decimals:
        return False
    count = len(decimals or "")
    return of.min_digits <= digits <= (
        digits if of.max_digits is None else of.max_digits
    ) and of.min_decimals <= count <= (count if of.max_decimals is None else of.max_decimals)


PATTERNS = [
    NumberPattern(),
    NumberPattern(max_digits=2, max_decimals=0, signs=""),
    NumberPattern(min_digits=2, max_digits=3, min_decimals=1, max_decimals=2),
    NumberPattern(min_digits=0, max_digits=1, max_decimals=1, signs="+-"),
    NumberPattern(min_digits=2, groups=True, percent=True),
    NumberPattern(exponent=True, min_decimals=1),
    NumberPattern(exponent=True, max_decimals=0),
]


@given(st.sampled_from(PATTERNS), st.text("0123.,-+eE% ", max_size=8))
def test_a_pattern_is_its_expression(of: NumberPattern, text: str) -> None:
    after = of.read(State("begin"), text)
    assert (after is not None and of.may_end(after)) == is_number(of, text)


@given(st.sampled_from(PATTERNS), st.data())
def test_every_walk_over_tokens_ends_in_a_number(of: NumberPattern, data: st.DataObject) -> None:
    states, state, text = TokenStates.of(of, PIECES), 0, ""
    for _ in range(12):
        following = states.after[state]
        assert following or states.may_end[state]  # never stuck
        if states.may_end[state]:
            assert is_number(of, text)
        if not following:
            break
        token = data.draw(st.sampled_from(sorted(following)))
        state, text = following[token], text + PIECES[token]
    if of.longest is not None:
        assert len(text) <= of.longest


def test_every_number_that_tokens_spell_can_be_written() -> None:
    for of in PATTERNS:
        states = TokenStates.of(of, PIECES)
        for tokens in product(range(len(PIECES)), repeat=3):
            text = "".join(PIECES[token] for token in tokens)
            if not all(PIECES[token] for token in tokens) or not is_number(of, text):
                continue
            state = 0
            for token in tokens:
                state = states.after[state][token]
            assert states.may_end[state], text


def test_tokens_from_which_no_number_ends_are_not_allowed() -> None:
    texts = ["12", "1", ".", "5", "-", "x"]
    states = TokenStates.of(NumberPattern(min_digits=2, max_digits=2, max_decimals=1), texts)
    assert set(states.after[0]) == {0, 1, 3, 4}
    assert set(states.after[states.after[0][1]]) == {1, 3}  # 12 would be one digit too many
    only_pairs = TokenStates.of(NumberPattern(max_digits=3, max_decimals=0), ["12", "."])
    assert set(only_pairs.after[0]) == {0} and not only_pairs.after[only_pairs.after[0][0]]


@each(
    ("settings", "named"),
    [
        ({"min_digits": 3, "max_digits": 2}, "max_digits"),
        ({"min_decimals": -1}, "min_decimals"),
        ({"max_digits": 101}, "max_digits"),
        ({"max_digits": 0, "min_digits": 0, "max_decimals": 0}, "max_decimals"),
        ({"signs": "~"}, "signs"),
    ],
)
def test_what_is_no_pattern_is_refused(settings: dict[str, int], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        NumberPattern(**settings)  # type: ignore[arg-type]


def test_a_tokenizer_without_digits_is_refused(says: Says) -> None:
    with says.raises(UsageError, "cannot write a number"):
        TokenStates.of(NumberPattern(), ["a", "."])


def test_examples() -> None:
    check_examples("encoding.number_pattern")
