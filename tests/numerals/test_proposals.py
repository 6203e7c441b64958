"""The policy that is proposed for texts, and what each flag would change."""

import random
from collections.abc import Callable

from numtok.encoding.texts import Texts
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.proposals import PolicyProposal, policy_for, propose
from tests.cases import each

Draw = Callable[[int, int], int]


def proposed(texts: list[str], spec: str = "default") -> PolicyProposal:
    return propose(*Texts.of(texts), NumeralPolicy.parse(spec))


ONE_NOTATION: dict[str, Callable[[Draw], str]] = {
    "thousands": lambda draw: f"cost {draw(1, 99)},{draw(100, 999)}.{draw(10, 99)}",
    "percent": lambda draw: f"up {draw(1, 99)} % today",
    "suffixes": lambda draw: f"raised {draw(1, 9)}.{draw(1, 9)}M",
    "fractions": lambda draw: f"add {draw(1, 3)}/{draw(4, 9)} cup",
    "units": lambda draw: f"lab Na{draw(120, 160)} K{draw(3, 6)}.{draw(0, 9)}",
    "dimensions": lambda draw: f"crate {draw(10, 90)}x{draw(10, 90)}",
    "unicode": lambda draw: f"about {draw(1, 9)}×10^{draw(3, 9)} cells",
    "decimal=comma": lambda draw: f"wiegt {draw(1, 99)},{draw(1, 9)} kg",
    "thousands,decimal=comma": lambda draw: f"{draw(1, 9)}.{draw(100, 999)},{draw(10, 99)} EUR",
    "groups=apostrophe": lambda draw: f"CHF {draw(1, 99)}'{draw(100, 999)}.50",
    "groups=space": lambda draw: f"used {draw(1, 99)} {draw(100, 999)} kWh",
    "groups=underscore": lambda draw: f"n = {draw(1, 99)}_{draw(100, 999)}",
    "groups=indian": lambda draw: f"INR {draw(1, 99)},{draw(10, 99)},{draw(100, 999)}",
    "signs=dash": lambda draw: f"it was \u2013{draw(1, 40)} deg",
    "signs=paren": lambda draw: f"net ({draw(1, 900)}.{draw(10, 99)})",
    "signs=trailing": lambda draw: f"balance {draw(1, 900)}.{draw(10, 99)}- in May",
}


@each("spec", ONE_NOTATION)
def test_a_file_in_one_notation_gets_the_policy_that_reads_it(spec: str) -> None:
    rng = random.Random(spec)
    texts = [ONE_NOTATION[spec](rng.randint) for _ in range(300)]
    found = proposed(texts)
    assert found.proposed == spec
    assert found.texts == 300
    assert {flag for flag in spec.split(",")} & {effect.flag for effect in found.effects}
    assert proposed(texts, spec).proposed == spec  # nothing is left to propose


@each("text", ["sum of 3.25 and -1e5", "no digits", "x1 utf8 1.2.3", "[1,2,345]", "at 7:30"])
def test_nothing_is_proposed_for_the_notation_of_the_rule(text: str) -> None:
    assert proposed([text] * 100).proposed == "default"


def test_a_rare_notation_is_counted_but_not_proposed() -> None:
    found = proposed(["2.5k users", *["7 rooms"] * 99])
    (effect,) = found.effects
    assert (effect.flag, effect.texts, effect.example, effect.value) == (
        "suffixes",
        1,
        "2.5k",
        2500,
    )
    assert found.proposed == "default"


def test_digits_that_become_numbers_are_counted() -> None:
    (effect,) = proposed(["pH6.5", "x 1"]).effects
    assert (effect.flag, effect.digits, effect.changed) == ("units", 2, 1)


@each(
    ("text", "spec"),
    [("1.234,56", "thousands,decimal=comma"), ("(5 %)", "percent,signs=paren"), ("7", None)],
)
def test_the_policy_for_a_text_has_no_flag_too_many(text: str, spec: str | None) -> None:
    policy = policy_for(text)
    assert (policy and policy.spec()) == spec
