"""numerologic: the digit count of a number, then its digits. ``71`` -> ``{ 2 : 7 1 }``."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.arrays import UInt32s, ranges
from numtok.declaration import setting
from numtok.encoding.numeral_states import BEGIN, CHARACTERS, EXTRA, FOLLOWS, WHOLE
from numtok.encoding.schemes._literals import Follows, MarkedScheme, Marks, Spelt, parts_of, spell
from numtok.encoding.schemes.base import Encoded, SchemeDefaults
from numtok.numerals.column import Numerals

_OPEN, _COLON, _CLOSE = "{", ":", "}"
ALL, ANSWER = "all", "answer"
_DIGITS, _E = "0123456789", "eE"
_COUNTS = ("count", "counted", "count decimals", "counted decimals", "count e", "counted e")
_MANTISSA = (
    "one digit", "two digits", "three digits", "many digits", "comma", "one of three",
    "two of three", "group", "point", "leading point", "fraction",
)  # fmt: skip
_DROPPED = (_E, "%")  # these follow after the closing brace, not after the mantissa
_BARE = "bare "  # prefix of the states of numbers without braces


@dataclass(frozen=True)
class NumeroLogic(MarkedScheme):
    """NumeroLogic (Schwartz et al. 2024): each number is preceded by its digit counts, before and
    after the decimal point: ``{2:71}``, ``{1.1:0.5}``.

    The digits of the mantissa and the exponent are counted separately: ``1.5e-12`` is
    ``{1.1:1.5}e-{2:12}``. Numerator and denominator of a fraction are treated as two numbers. A
    sign comes before the brace. Decoding uses only the digits; a wrong count in a prediction is
    ignored.

    numbers
        Which numbers are preceded by their digit counts: ``all`` numbers, or only the numbers in
        the ``answer``, that is, after the row's ``answer_start``. With ``answer``, all other
        numbers are written as in the scheme ``digits``. Decoding accepts both forms.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumeroLogic (Schwartz et al. 2024); Value-Aware, Section 4.2"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(digits=False)  # counts have digits, too
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("71", "{ 2 : 7 1 }", "71"),
        ("4473", "{ 4 : 4 4 7 3 }", "4473"),
        ("0.5", "{ 1 . 1 : 0 . 5 }", "0.5"),
        ("-12345678901", "- { 1 1 : 1 2 3 4 5 6 7 8 9 0 1 }", "-12345678901"),
        ("1.25e-12", "{ 1 . 2 : 1 . 2 5 } e - { 2 : 1 2 }", "1.25e-12"),
        ("5.E+7", "{ 1 . 0 : 5 . } E + { 1 : 7 }", "5.E+7"),
        ("1,234%", "{ 4 : 1 , 2 3 4 } %", "1,234%"),
        ("inf", "+INF", "inf"),
    )
    digest: ClassVar[str] = "f3003c014a54e63a"
    positional: ClassVar[str] = "numbers"
    numbers: str = setting(ALL, choices=(ALL, ANSWER))

    @property
    def marks(self) -> tuple[str, ...]:
        return (_OPEN, _COLON, _CLOSE)

    @cached_property
    def follows(self) -> Follows:
        after: dict[str, dict[str, str]] = {
            BEGIN: {"+-\u2212": "signed", _OPEN: "count"},
            "signed": {_OPEN: "count"},
            "count": {_DIGITS: "counted"},
            "counted": {_DIGITS: "counted", ".": "count decimals", _COLON: "mantissa"},
            "count decimals": {_DIGITS: "counted decimals"},
            "counted decimals": {_DIGITS: "counted decimals", _COLON: "mantissa"},
            "mantissa": {_DIGITS: "one digit", ".": "leading point"},
            "closed point": {_E: "behind e"},
            "closed": {_E: "behind e", "%": "percent"},
            "behind e": {"+-": "signed e", _OPEN: "count e"},
            "signed e": {_OPEN: "count e"},
            "count e": {_DIGITS: "counted e"},
            "counted e": {_DIGITS: "counted e", _COLON: "exponent begun"},
            "exponent begun": {_DIGITS: "exponent"},
            "exponent": {_DIGITS: "exponent", _CLOSE: "closed exponent"},
            "closed exponent": {"%": "percent"},
            "percent": {},
        }
        for state in _MANTISSA:
            own = {some: to for some, to in FOLLOWS[state].items() if some not in _DROPPED}
            closed = {_CLOSE: "closed"} if state in WHOLE else {}
            after[state] = own | closed
        after["point"][_CLOSE] = "closed point"
        whole = frozenset({"closed", "closed exponent", "percent", EXTRA})
        if self.numbers == ANSWER:
            bare = {
                _BARE + state: {some: _BARE + to for some, to in follows.items()}
                for state, follows in FOLLOWS.items()
            }
            for state, begun in ((BEGIN, ""), ("signed", "sign")):
                after[state] = bare[_BARE + begun] | after[state]
            after, whole = after | bare, whole | {_BARE + state for state in WHOLE}
        return Follows(after, whole, frozenset(_COUNTS))

    def encode(self, numerals: Numerals) -> Encoded:
        if self.numbers == ALL or numerals.in_answer is None:
            return super().encode(numerals)
        spelt = spell(numerals)
        marks = self.marked(spelt)
        chosen = numerals.in_answer[marks.number]
        kept = Marks(marks.before[chosen], marks.number[chosen], marks.tokens[chosen])
        return self.woven(spelt, kept)

    def marked(self, spelt: Spelt) -> Marks:
        parts = parts_of(spelt)
        pairs = np.stack([parts.digits, parts.decimals], axis=1)
        distinct, which = np.unique(pairs, axis=0, return_inverse=True)
        marks = [self._marks(digits, decimals) for digits, decimals in distinct.tolist()]
        table = np.concatenate([np.empty(0, np.uint32), *marks])
        sizes = np.array([len(tokens) for tokens in marks], np.int64)
        first, own = (np.cumsum(sizes) - sizes)[which.reshape(-1)], sizes[which.reshape(-1)]
        # The marks of a part are consecutive; all but the last precede its first digit.
        before = np.repeat(parts.digit, own)
        before[np.cumsum(own) - 1] = parts.end
        return Marks(before, np.repeat(parts.number, own), table[ranges(first, own)])

    def _marks(self, digits: int, decimals: int) -> UInt32s:
        """Return the tokens ``{2.3:`` (two digits before the decimal point, three after) and
        ``}``."""
        count = f"{digits}" if decimals < 0 else f"{digits}.{decimals}"
        first = len(CHARACTERS)
        return np.array([first, *map(CHARACTERS.index, count), first + 1, first + 2], np.uint32)
