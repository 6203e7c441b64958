"""numerologic: the digit count of a number, then its digits. ``71`` -> ``{ 2 : 7 1 }``."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from numtok.arrays import UInt32s, ranges
from numtok.declaration import setting
from numtok.encoding.numeral_states import BEGIN, CHARACTERS, EXTRA, FOLLOWS, SIGNS, WHOLE
from numtok.encoding.schemes._literals import Follows, MarkedScheme, Marks, Spelt, parts_of, spell
from numtok.encoding.schemes.base import Encoded, SchemeDefaults
from numtok.numerals.column import Numerals

ALL, ANSWER = "all", "answer"
_WORDS = "words"
_DIGITS, _E = "0123456789", "eE"
_COUNTS = ("count", "counted", "count decimals", "counted decimals", "count e", "counted e")
_MANTISSA = (
    "one digit", "two digits", "three digits", "many digits", "comma", "one of three",
    "two of three", "group", "point", "leading point", "fraction",
)  # fmt: skip
_ENDS = {_E: "behind e", "%": "percent"}  # what may follow a mantissa
_BARE = "bare "  # prefix of the states of numbers without braces


class _Form(NamedTuple):
    """Tokens around digit counts: before the first count, between the counts, and after them, and
    the token after the number, if there is one."""

    begin: str
    decimals: str
    number: str
    end: str | None


_FORMS = {
    "braces": _Form("{", ".", ":", "}"),
    _WORDS: _Form("digits:", "decimals:", "number:", None),
}


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
    form
        ``braces``, as in NumeroLogic. ``words``: the counts are described in natural language
        before the sign, ``digits: 2 decimals: 1 number: -71.5``, with one token for each of the
        three words. This is the baseline of Value-Aware (Section 4.2), which does not give its
        words; ``numerologic:answer,form=words`` describes the numbers to predict only.
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
    form: str = setting("braces", choices=tuple(_FORMS))

    @property
    def _form(self) -> _Form:
        return _FORMS[self.form]

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(mark for mark in self._form if mark is not None and mark not in CHARACTERS)

    @cached_property
    def follows(self) -> Follows:
        form, words = self._form, self.form == _WORDS
        digits, sign = {_DIGITS: "one digit", ".": "leading point"}, {SIGNS: "signed"}
        count, count_e = {form.begin: "count"}, {form.begin: "count e"}
        exponent, sign_e = {_DIGITS: "exponent"}, {"+-": "signed e"}
        after: dict[str, dict[str, str]] = {
            BEGIN: count if words else sign | count,
            "signed": digits if words else count,
            "count": {_DIGITS: "counted"},
            "counted": {
                _DIGITS: "counted",
                form.decimals: "count decimals",
                form.number: "mantissa",
            },
            "count decimals": {_DIGITS: "counted decimals"},
            "counted decimals": {_DIGITS: "counted decimals", form.number: "mantissa"},
            "mantissa": sign | digits if words else digits,
            "behind e": count_e if words else sign_e | count_e,
            "signed e": exponent if words else count_e,
            "count e": {_DIGITS: "counted e"},
            "counted e": {_DIGITS: "counted e", form.number: "exponent begun"},
            "exponent begun": sign_e | exponent if words else exponent,
            "percent": {},
        }
        for state in _MANTISSA:
            after[state] = {some: to for some, to in FOLLOWS[state].items() if some not in _ENDS}
        if form.end is None:
            for state in _MANTISSA:
                after[state] |= {some: to for some, to in _ENDS.items() if some in FOLLOWS[state]}
            after["exponent"] = exponent | {"%": "percent"}
            whole = frozenset({*WHOLE.intersection(_MANTISSA), "exponent", "percent", EXTRA})
        else:
            for state in WHOLE.intersection(_MANTISSA):
                after[state][form.end] = "closed"
            after["point"][form.end] = "closed point"
            after |= {
                "closed point": {_E: "behind e"},
                "closed": _ENDS,
                "exponent": exponent | {form.end: "closed exponent"},
                "closed exponent": {"%": "percent"},
            }
            whole = frozenset({"closed", "closed exponent", "percent", EXTRA})
        if self.numbers == ANSWER:
            bare = {
                _BARE + state: {some: _BARE + to for some, to in follows.items()}
                for state, follows in FOLLOWS.items()
            }
            after[BEGIN] = bare[_BARE] | after[BEGIN]
            if not words:
                after["signed"] = bare[_BARE + "sign"] | after["signed"]
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
        # The marks of a part are consecutive; the one at its end follows its last digit.
        before = np.repeat(parts.first if self.form == _WORDS else parts.digit, own)
        if self._form.end is not None:
            before[np.cumsum(own) - 1] = parts.end
        return Marks(before, np.repeat(parts.number, own), table[ranges(first, own)])

    def _marks(self, digits: int, decimals: int) -> UInt32s:
        """Return the tokens that describe a part with this many digits before and after the
        decimal point, such as ``{2.3:`` and ``}``. ``decimals`` is -1 without a point."""
        form, pieces = self._form, self.pieces
        counts = [form.begin, *f"{digits}"]
        if decimals >= 0:
            counts += [form.decimals, *f"{decimals}"]
        tokens = [*counts, form.number, *([] if form.end is None else [form.end])]
        return np.array([pieces.index(token) for token in tokens], np.uint32)
