"""What schemes share that write a literal as it is, in pieces of one or more characters, with or
without marks between them.

Any pieces whose characters together are a numeral are a number. ``FOLLOWS`` says what a numeral
is, character by character: signs, groups of thousands, fraction, exponent and percent as
docs/NUMERALS.md has them.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from numtok.arrays import Bools, Int32s, Ints, UInt8s, UInt32s, ranges
from numtok.encoding.schemes.base import (
    Bounds,
    Channel,
    DecodedNumbers,
    Encoded,
    Failure,
    LargestError,
    Next,
    Outcome,
    Scheme,
    outcomes_of,
)
from numtok.numerals.column import Numerals
from numtok.numerals.literals import value_of

CHARACTERS = "0123456789+-.eE,%\u2212"
VALUES_OF_EXTRAS = {"NAN": np.nan, "+INF": np.inf, "-INF": -np.inf}

_DIGITS, _SIGNS, _E = "0123456789", "+-\u2212", "eE"
_BEHIND_WHOLE = {".": "point", _E: "e", "%": "percent"}
# What has been read: what may follow, and what has been read then.
FOLLOWS: dict[str, dict[str, str]] = {
    "": {_SIGNS: "sign", _DIGITS: "one digit", ".": "leading point"},
    "sign": {_DIGITS: "one digit", ".": "leading point"},
    "one digit": {_DIGITS: "two digits", ",": "comma", **_BEHIND_WHOLE},
    "two digits": {_DIGITS: "three digits", ",": "comma", **_BEHIND_WHOLE},
    "three digits": {_DIGITS: "many digits", ",": "comma", **_BEHIND_WHOLE},
    "many digits": {_DIGITS: "many digits", **_BEHIND_WHOLE},
    "comma": {_DIGITS: "one of three"},
    "one of three": {_DIGITS: "two of three"},
    "two of three": {_DIGITS: "group"},
    "group": {",": "comma", **_BEHIND_WHOLE},
    "point": {_DIGITS: "fraction", _E: "e"},
    "leading point": {_DIGITS: "fraction"},
    "fraction": {_DIGITS: "fraction", _E: "e", "%": "percent"},
    "e": {"+-": "signed exponent", _DIGITS: "exponent"},
    "signed exponent": {_DIGITS: "exponent"},
    "exponent": {_DIGITS: "exponent", "%": "percent"},
    "percent": {},
    "extra": {},  # NAN and the infinities, a token each
}
_BEGUN = ("", "sign", "comma", "one of three", "two of three", "point", "leading point", "e")
WHOLE = frozenset(FOLLOWS) - {*_BEGUN, "signed exponent"}  # where a numeral may end
BEGIN, EXTRA = "begin", "extra"  # states: nothing read yet; NAN or an infinity
BROKEN = "broken"  # what no number begins with; nothing may follow

_DROPPED = 255
_POINT, _PERCENT = CHARACTERS.index("."), CHARACTERS.index("%")
_EXPONENTS, _SIGN_IDS = (tuple(map(CHARACTERS.index, some)) for some in (_E, _SIGNS))
_ID_OF_BYTE = np.full(256, _DROPPED, np.uint8)
_ID_OF_BYTE[list(CHARACTERS[:-1].encode())] = range(len(CHARACTERS) - 1)
_ID_OF_BYTE[0xE2] = len(CHARACTERS) - 1  # of the three bytes of U+2212 only the first counts


class Spelt(NamedTuple):
    """``n`` numbers by their characters, ids in :data:`CHARACTERS`."""

    characters: UInt8s  # [sum of lengths]
    lengths: Int32s  # [n]; 0 for an extra
    outcomes: UInt8s  # [n]


class MarkedParts(NamedTuple):
    """The parts of numbers, mantissa and exponent of scientific notation and else the whole number;
    of P parts, in order:"""

    number: Ints  # [P] which number it is of
    first: Ints  # [P] index of its first character, its sign if it has one
    digit: Ints  # [P] that of the first character behind the sign
    end: Ints  # [P] behind its last digit, comma or point
    digits: Ints  # [P] how many digits stand before the point
    decimals: Ints  # [P] digits behind the point, -1 without a point


class Marks(NamedTuple):
    """M marks: before which character each is put, rising (the number of characters: behind the
    last one), which number it is of, and its token."""

    before: Ints  # [M]
    number: Ints  # [M]
    tokens: UInt32s  # [M]


class Follows(NamedTuple):
    """A table of states.

    after
        By state, by token, the state after it: by a mark, or by each of some characters.
    whole
        The states in which a number may end.
    silent
        Those into which a character leads that is no part of the literal.
    """

    after: Mapping[str, Mapping[str, str]]
    whole: frozenset[str]
    silent: frozenset[str] = frozenset()


class WrittenScheme(Scheme):
    """Numbers as they are written, in whatever tokens: nothing is lost, and lengths vary.

    The vocabulary is first the pieces, which are characters, one or more, or marks between them,
    and then the extras.
    """

    @property
    @abstractmethod
    def pieces(self) -> tuple[str, ...]:
        """The tokens of which numbers consist, by id."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Those of them that are no part of a literal."""
        return ()

    @property
    def follows(self) -> Follows:
        """What may follow what, from the state :data:`BEGIN` on; an extra is a number by itself."""
        return Follows(FOLLOWS | {BEGIN: FOLLOWS[""]}, WHOLE)

    @abstractmethod
    def read_tokens(self, tokens: Sequence[int]) -> tuple[str, str]:
        """The state after some tokens, and the literal in them, or of what is no number the
        characters that there are."""

    def vocabulary(self) -> tuple[str, ...]:
        return (*self.pieces, *VALUES_OF_EXTRAS)

    @property
    def tokens_per_number(self) -> None:
        return None

    @property
    def bounds(self) -> Bounds:
        return Bounds(0.0, np.inf)

    @property
    def error(self) -> LargestError:
        return LargestError(0.0)

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        value = float(
            self.decode(np.array(tokens, np.uint32), np.array([len(tokens)], np.int32)).values[0]
        )
        return Bounds(value, value)

    def decode(
        self, tokens: UInt32s, lengths: Int32s, channel: Channel | None = None
    ) -> DecodedNumbers:
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        written = []
        ids, end = tokens.tolist(), 0
        for index, length in enumerate(lengths.tolist()):
            literal, value = self.number_of(ids[end : end + length])
            end += length
            if value is not None:
                values[index], failures[index] = value, Failure.NONE
            written.append(literal)
        return DecodedNumbers(values, failures, tuple(written))

    def number_of(self, tokens: Sequence[int]) -> tuple[str, float | None]:
        """What some tokens write, and its value, which nothing but a number has."""
        state, literal = self.read_tokens(tokens)
        if state == EXTRA:
            value = list(VALUES_OF_EXTRAS.values())[tokens[0] - len(self.pieces)]
            return repr(value), value
        return literal, value_of(literal) if state in self.follows.whole else None

    def next(self, prefix: tuple[int, ...]) -> Next:
        state, _ = self.read_tokens(prefix)
        return Next(self._allowed[state], may_end=state in self.follows.whole)

    @cached_property
    def _after(self) -> dict[str, dict[int, str]]:
        """By state and token, the state after it."""
        steps = steps_of(self.follows.after, self.marks)
        found: dict[str, dict[int, str]] = {EXTRA: {}, BROKEN: {}}
        for state in steps:
            symbols = ((piece,) if piece in self.marks else piece for piece in self.pieces)
            states = (reached(steps, state, some) for some in symbols)
            found[state] = {token: to for token, to in enumerate(states) if to != BROKEN}
        extras = range(len(self.pieces), len(self.pieces) + len(VALUES_OF_EXTRAS))
        found[BEGIN] |= dict.fromkeys(extras, EXTRA)
        return found

    @cached_property
    def _allowed(self) -> dict[str, Bools]:
        """By state, bool[vocabulary]: what may follow."""
        tokens = np.arange(len(self.vocabulary()))
        return {state: np.isin(tokens, list(after)) for state, after in self._after.items()}


class LiteralScheme(WrittenScheme):
    """Numbers in pieces of their literals: first the characters, then longer ones."""

    def literal(self, pieces: Sequence[str]) -> str:
        """The literal that some tokens write."""
        return "".join(pieces)

    def read_tokens(self, tokens: Sequence[int]) -> tuple[str, str]:
        state, names = BEGIN, self._names
        for token in tokens:
            state = self._after[state].get(token, BROKEN)
        return state, self.literal([names[min(token, len(names) - 1)] for token in tokens])

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The tokens, and what stands for one that is none."""
        return (*self.vocabulary(), "?")


class MarkedScheme(WrittenScheme):
    """Numbers as they are written, with marks between their characters."""

    @abstractmethod
    def marked(self, spelt: Spelt) -> Marks:
        """What is put between the characters."""

    @property
    def pieces(self) -> tuple[str, ...]:
        return (*CHARACTERS, *self.marks)

    def encode(self, numerals: Numerals) -> Encoded:
        spelt = spell(numerals)
        return self.woven(spelt, self.marked(spelt))

    def woven(self, spelt: Spelt, marks: Marks) -> Encoded:
        """The characters with the marks between."""
        tokens, lengths = with_marks(spelt.characters.astype(np.uint32), spelt.lengths, marks)
        return with_extras(tokens, lengths, spelt.outcomes, len(self.pieces))

    def read_tokens(self, tokens: Sequence[int]) -> tuple[str, str]:
        """Of what no number begins with all characters but those of counts."""
        state, literal, broken = BEGIN, "", False
        for token in tokens:
            after = self._after[state]
            if token not in after:
                broken, after = True, self._after[BEGIN]  # with a mark another part may begin
            state = after.get(token, BROKEN)
            if token < len(CHARACTERS) and state not in self.follows.silent:
                literal += CHARACTERS[token]
        return BROKEN if broken else state, literal


def spell(numerals: Numerals) -> Spelt:
    """Each literal by its characters."""
    data, starts, ends = numerals.literals
    widths = ends - starts
    bounds = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)])
    characters = _ID_OF_BYTE[data[ranges(starts, widths)]]
    outcomes = outcomes_of(numerals)  # nan, inf and -inf are no ordinary numbers
    kept = characters != _DROPPED
    if outcomes.any():
        kept &= ~np.repeat(outcomes > 0, widths)
    before = np.concatenate([[0], np.cumsum(kept)])
    lengths = np.diff(before[bounds]).astype(np.int32)
    return Spelt(characters[kept], lengths, outcomes)


def with_extras(tokens: UInt32s, lengths: Int32s, outcomes: UInt8s, first: int) -> Encoded:
    """Numbers [n] as encoded; an extra, which has no token yet, gets its own, from ``first`` on."""
    extras = np.flatnonzero(outcomes)
    ends = np.cumsum(lengths, dtype=np.int64)
    own = first + outcomes[extras].astype(np.uint32) - np.uint32(Outcome.NAN)
    lengths = lengths.copy()
    lengths[extras] = 1
    return Encoded(np.insert(tokens, ends[extras], own), lengths, outcomes)


def occurs(piece: str) -> bool:
    """Whether some numeral has these characters in it, one after the other.

    >>> occurs("0."), occurs("--")
    (True, False)
    """
    steps = steps_of(FOLLOWS, ())
    return any(reached(steps, state, piece) != BROKEN for state in steps)


def steps_of(
    after: Mapping[str, Mapping[str, str]], marks: Collection[str]
) -> dict[str, dict[str, str]]:
    """By state, and by mark or character, the state after it."""
    found: dict[str, dict[str, str]] = {state: {} for state in after}
    for state, follows in after.items():
        for some, to in follows.items():
            found[state] |= dict.fromkeys([some] if some in marks else some, to)
    return found


def reached(steps: Mapping[str, Mapping[str, str]], state: str, symbols: Sequence[str]) -> str:
    """The state after some marks and characters."""
    for symbol in symbols:
        state = steps.get(state, {}).get(symbol, BROKEN)
    return state


def parts_of(spelt: Spelt) -> MarkedParts:
    """The parts of some numbers.

    >>> parts = parts_of(spell(Numerals.of_literals(["-60.25e3", "7"])))
    >>> parts.number.tolist(), parts.first.tolist(), parts.digit.tolist(), parts.end.tolist()
    ([0, 0, 1], [0, 7, 8], [1, 7, 8], [6, 8, 9])
    >>> parts.digits.tolist(), parts.decimals.tolist()
    ([2, 1, 1], [2, -1, -1])
    """
    characters, lengths = spelt.characters, spelt.lengths.astype(np.int64)
    ends = np.cumsum(lengths)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    exponents = np.flatnonzero(np.isin(characters, _EXPONENTS))
    some = np.flatnonzero(lengths)
    first = np.concatenate([(ends - lengths)[some], exponents + 1])
    end = np.concatenate([ends[some], ends[owner[exponents]]])
    # A mantissa ends before the exponent of its number; a percent sign is of no part.
    end[np.searchsorted(some, owner[exponents])] = exponents
    order = np.argsort(first, kind="stable")
    first, end = first[order], end[order]
    end = end - (characters[end - 1] == _PERCENT)
    points = np.append(np.flatnonzero(characters == _POINT), len(characters))
    point = np.minimum(points[np.searchsorted(points, first)], end)
    count = np.concatenate([[0], np.cumsum(characters < len(_DIGITS))])
    return MarkedParts(
        number=owner[first],
        first=first,
        digit=first + np.isin(characters[first], _SIGN_IDS),
        end=end,
        digits=count[point] - count[first],
        decimals=np.where(point < end, count[end] - count[point], -1),
    )


def with_marks(tokens: UInt32s, lengths: Int32s, marks: Marks) -> tuple[UInt32s, Int32s]:
    """Tokens, and how many each of n numbers has, [n], with marks between; these are before tokens
    here."""
    more = np.bincount(marks.number, minlength=len(lengths)).astype(np.int32)
    return np.insert(tokens, marks.before, marks.tokens), lengths + more
