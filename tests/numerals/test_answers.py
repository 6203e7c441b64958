"""Numbers in generated answers: what each rule reads, with any markup around them."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.errors import UsageError
from numtok.numerals.answers.markup import without_markup
from numtok.numerals.answers.read import read_answers, same_form
from numtok.numerals.answers.rules import RULES, AnswerRule
from numtok.numerals.literals import exact_value
from numtok.numerals.policy import NumeralPolicy
from tests.cases import case, each
from tests.messages import Says

SHARED = Path(__file__).resolve().parents[3] / "shared/cases/answers/answers.jsonl"
#: Ways to write a number in an answer; ``{}`` is the number.
FRAMES = (
    *("{}", "The answer is {}.", "**{}**", "__{}__", "`{}`", "= {} km", "#### {}", "so: {}\n"),
    *(r"\boxed{{{}}}", r"$\boxed{{{}}}$", r"\( {} \)", "{}%", "{} m^2", r"{} \text{{ m}}^{{-3}}"),
    *("<b>{}</b>", "US$ {}", "{} cm<sup>2</sup>", "a_{{10}} = {}", "({})", "~{}", '"{}"'),
)


def read(text: str | None, rule: str, policy: str = "default,thousands=yes") -> Decimal | None:
    [literal] = read_answers([text], AnswerRule.parse(rule), NumeralPolicy.parse(policy))
    return None if literal is None else exact_value(literal)


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9
    ),
    st.sampled_from(FRAMES),
    st.sampled_from(["{:f}", "{:,f}", "{:+f}", "{:e}"]),
)
def test_the_number_of_any_frame_is_read_exactly(value: Decimal, frame: str, notation: str) -> None:
    text = frame.format(notation.format(value))
    for rule in ("only-number", "first-number", "last-number"):
        assert read(text, rule) == value
    assert read(text, "boxed") == (value if "boxed" in frame else None)
    written = notation.format(value) in (frame.strip(), text.strip())
    assert read(text, "strict") == (value if written else None)


#: Texts that rules read differently, with the result of each rule.
TEXTS: dict[str, tuple[str | None, ...]] = {
    # strict, only-number, first-number, last-number, boxed
    "At 6:45 there are 31.": (None, None, "6", "31", None),
    r"7 or \boxed{8}, not 9": (None, None, "7", "9", "8"),
    r"\boxed{3} no, \boxed{x = \frac{14}{2}}": (None, None, "3", "2", "2"),
    r"\fbox 12 and 13": (None, None, "12", "13", "12"),
    r"\boxed{unknown} 5": (None, "5", "5", "5", None),
    r"\boxed{40": (None, "40", "40", "40", "40"),
    "-3.50": ("-3.50", "-3.50", "-3.50", "-3.50", None),
    " 17 \n": ("17", "17", "17", "17", None),
    "17 apples": (None, "17", "17", "17", None),
    "none": (None, None, None, None, None),
    "": (None, None, None, None, None),
}


def test_each_rule_chooses_its_number() -> None:
    for text, literals in TEXTS.items():
        for rule, literal in zip(RULES, literals, strict=True):
            with case(text, rule):
                assert read(text, rule) == (None if literal is None else Decimal(literal))
    assert [read(None, rule) for rule in RULES] == [None] * len(RULES)


@each(
    ("text", "number"),
    [
        (r"2{,}750", "2750"),
        (r"2,\!750", "2750"),
        (r"2\,750\,000", "2750000"),
        (r"-\$4.25", "-4.25"),
        ("-€ 4.25", "-4.25"),
        (r"$-\$4$", "-4"),
        ("\u22124", "-4"),
        (r"3.1 \times 10^{5}", "3.1e5"),
        ("3.1 × 10⁻⁵", "3.1e-5"),
        ("3.1*10**5", "3.1e5"),
        ("3.1 x 10<sup>5</sup>", "3.1e5"),
        ("10^{-3}", "1e-3"),
        ("-10^3", "-1e3"),
        ("８１．５", "81.5"),
        ("٤٢", "42"),
        ("_-6_", "-6"),
        (r"45\%", "45"),
        ("R^2 = 0.5", "0.5"),
        (r"x_{3}^{2} is 7", "7"),
        (r"\log_{10} x = 2", "2"),
        ("12 kg m^{-3}", "12"),
        ("12 s^-1", "12"),
    ],
)
def test_markup_hides_no_number_and_adds_none(text: str, number: str) -> None:
    assert read(text, "only-number") == Decimal(number)


@each("text", ["2 ** 3", "5 * 10 = 50", "x1 and utf8", "2^{10}", "1_000", "a*b", "10 x 10"])
def test_what_is_no_markup_stays(text: str) -> None:
    assert without_markup(text) == text


def test_a_number_follows_the_last_match_of_an_expression() -> None:
    text = "Answer: 4\nLet me check. Answer: **1,250** of 3000"
    assert read(text, "after:Answer:") == 1250
    assert read(text, "after:answer:") is None
    assert read(text, "after:(?i)answer:") == 1250
    assert read(text, r"after:of\s") == 3000


def test_the_numeral_policy_decides_what_a_number_is() -> None:
    assert read("45%", "last-number", "default,percent=yes") == Decimal("0.45")
    assert read("1,250", "last-number", "default") == 250
    assert read("-7", "last-number", "xval") == -7


def test_long_columns_are_read_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [None if n % 7 == 0 else f"{n} and {n + 1}" for n in range(100)]
    rules = [AnswerRule.parse(rule) for rule in RULES]
    together = [read_answers(texts, rule) for rule in rules]
    monkeypatch.setattr("numtok.numerals.answers.read._BYTES", 20)
    assert [read_answers(texts, rule) for rule in rules] == together
    assert together[3][:3] == [None, "2", "3"]


def test_values_of_any_size_are_exact() -> None:
    assert read("9007199254740993", "strict") == 9007199254740993
    assert read("1e400", "strict") == Decimal("1e400")
    assert read("0." + "3" * 60, "strict") == Decimal("0." + "3" * 60)


def test_forms_are_alike_without_signs_and_lengths() -> None:
    for first, second in (
        ("1", "-20"),
        ("1.5", "-20.25"),
        ("1e3", "22E-4"),
        ("1,000", "9,000,000"),
    ):
        assert same_form(first, second)
    for first, second in (("1", "1.0"), ("1", "+1"), ("1000", "1,000"), ("1", "1e0"), ("1", "1%")):
        assert not same_form(first, second)


def test_rules_that_do_not_exist_are_one_line(says: Says) -> None:
    with says.raises(UsageError, "'last'", "last-number", "after:REGEX"):
        AnswerRule.parse("last")
    with says.raises(UsageError, "'after:('", "regular expression"):
        AnswerRule.parse("after:(")
    with says.raises(UsageError, "'after:'", "after:####"):
        AnswerRule.parse("after:")


@pytest.mark.skipif(not SHARED.is_file(), reason="needs ../shared/cases/answers")
def test_the_answers_of_the_shared_cases_are_judged_as_they_state() -> None:
    rows = [json.loads(line) for line in SHARED.read_text("utf-8").splitlines()]
    for row in rows:
        with case(row["id"]):
            last = read(row["answer"], "last-number")
            assert (last == Decimal(row["truth"])) == bool(row["right_by_value"])
