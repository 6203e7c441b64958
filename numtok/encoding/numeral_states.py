"""State machine that reads numerals character by character.

docs/reference/numbers.md describes the complete syntax.
"""

from collections.abc import Collection, Mapping, Sequence

CHARACTERS = "0123456789+-.eE,%\u2212"

DIGITS, SIGNS, EXPONENTS = "0123456789", "+-\u2212", "eE"

_AFTER_WHOLE = {".": "point", EXPONENTS: "e", "%": "percent"}
# For each state: the characters that may follow, mapped to the state after them.
FOLLOWS: dict[str, dict[str, str]] = {
    "": {SIGNS: "sign", DIGITS: "one digit", ".": "leading point"},
    "sign": {DIGITS: "one digit", ".": "leading point"},
    "one digit": {DIGITS: "two digits", ",": "comma", **_AFTER_WHOLE},
    "two digits": {DIGITS: "three digits", ",": "comma", **_AFTER_WHOLE},
    "three digits": {DIGITS: "many digits", ",": "comma", **_AFTER_WHOLE},
    "many digits": {DIGITS: "many digits", **_AFTER_WHOLE},
    "comma": {DIGITS: "one of three"},
    "one of three": {DIGITS: "two of three"},
    "two of three": {DIGITS: "group"},
    "group": {",": "comma", **_AFTER_WHOLE},
    "point": {DIGITS: "fraction", EXPONENTS: "e"},
    "leading point": {DIGITS: "fraction"},
    "fraction": {DIGITS: "fraction", EXPONENTS: "e", "%": "percent"},
    "e": {"+-": "signed exponent", DIGITS: "exponent"},
    "signed exponent": {DIGITS: "exponent"},
    "exponent": {DIGITS: "exponent", "%": "percent"},
    "percent": {},
    "extra": {},  # NAN and the infinities, one token each
}
_BEGUN = ("", "sign", "comma", "one of three", "two of three", "point", "leading point", "e")
WHOLE = frozenset(FOLLOWS) - {*_BEGUN, "signed exponent"}  # where a numeral may end
BEGIN, EXTRA = "begin", "extra"  # states: nothing read yet; NAN or an infinity
BROKEN = "broken"  # state of sequences that cannot begin a number; nothing may follow


def steps_of(
    after: Mapping[str, Mapping[str, str]], marks: Collection[str]
) -> dict[str, dict[str, str]]:
    """Return the next states, keyed by state and then by mark or character.

    ``after`` maps each state to the symbols that may follow: either one of ``marks``, or a string
    of characters that all lead to the same state.
    """
    steps: dict[str, dict[str, str]] = {state: {} for state in after}
    for state, follows in after.items():
        for some, to in follows.items():
            steps[state] |= dict.fromkeys([some] if some in marks else some, to)
    return steps


def reached(steps: Mapping[str, Mapping[str, str]], state: str, symbols: Sequence[str]) -> str:
    """Return the state that a sequence of marks and characters leads to from ``state``."""
    for symbol in symbols:
        state = steps.get(state, {}).get(symbol, BROKEN)
    return state
