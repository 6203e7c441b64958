"""Base classes for schemes that write literals unchanged, in pieces of one or more characters.

There may be marks between the pieces. Any pieces whose characters together form a numeral are a
number (:mod:`numtok.encoding.numeral_states`).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from numtok.arrays import Bools, Int32s, Ints, UInt8s, UInt32s, ranges
from numtok.encoding.numeral_states import (
    BEGIN,
    BROKEN,
    CHARACTERS,
    DIGITS,
    EXPONENTS,
    EXTRA,
    FOLLOWS,
    SIGNS,
    WHOLE,
    reached,
    steps_of,
)
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

VALUES_OF_EXTRAS = {"NAN": np.nan, "+INF": np.inf, "-INF": -np.inf}

_DROPPED = 255
_POINT, _PERCENT = CHARACTERS.index("."), CHARACTERS.index("%")
_EXPONENT_IDS, _SIGN_IDS = (tuple(map(CHARACTERS.index, some)) for some in (EXPONENTS, SIGNS))
_ID_OF_BYTE = np.full(256, _DROPPED, np.uint8)
_ID_OF_BYTE[list(CHARACTERS[:-1].encode())] = range(len(CHARACTERS) - 1)
_ID_OF_BYTE[0xE2] = len(CHARACTERS) - 1  # only the first of the three bytes of U+2212 counts


class Spelt(NamedTuple):
    """Characters of ``n`` numbers, as indices into :data:`CHARACTERS`."""

    characters: UInt8s  # [sum of lengths]
    lengths: Int32s  # [n]; 0 for an extra
    outcomes: UInt8s  # [n]


class MarkedParts(NamedTuple):
    """P parts of numbers, in order. A number in scientific notation has two parts, mantissa and
    exponent; any other number is one part."""

    number: Ints  # [P] index of the number
    first: Ints  # [P] index of the first character, including the sign
    digit: Ints  # [P] index of the first character after the sign
    end: Ints  # [P] index after the last digit, comma or point
    digits: Ints  # [P] number of digits before the decimal point
    decimals: Ints  # [P] number of digits after the decimal point, -1 without a point


class MantissaDigits(NamedTuple):
    """D digits of mantissas, in order."""

    at: Ints  # [D] index of the character
    part: Ints  # [D] index of the part
    place: Ints  # [D] decimal place: 0 for units, -1 for tenths


class Marks(NamedTuple):
    """M marks to insert between the characters of numbers."""

    before: Ints  # [M] index of the character after the mark, ascending; may be one past the last
    number: Ints  # [M] index of the number
    tokens: UInt32s  # [M]


class Follows(NamedTuple):
    """State machine of well-formed numbers.

    after
        Next state, for each state and each mark or string of characters. A string stands for any
        one of its characters.
    whole
        States in which a number may end.
    silent
        States reached by characters that are not part of the literal.
    """

    after: Mapping[str, Mapping[str, str]]
    whole: frozenset[str]
    silent: frozenset[str] = frozenset()


class WrittenScheme(Scheme):
    """Base class for lossless schemes that write literals unchanged. The number of tokens varies.

    The vocabulary consists of the pieces (one or more characters, or marks between them), followed
    by the extras.
    """

    @property
    @abstractmethod
    def pieces(self) -> tuple[str, ...]:
        """Tokens that numbers consist of, indexed by id."""

    @property
    def marks(self) -> tuple[str, ...]:
        """Pieces that are not part of the literal."""
        return ()

    @property
    def follows(self) -> Follows:
        """State machine of well-formed numbers. It starts at :data:`BEGIN`. Extras need not be
        included."""
        return Follows(FOLLOWS | {BEGIN: FOLLOWS[""]}, WHOLE)

    @abstractmethod
    def read_tokens(self, tokens: Sequence[int]) -> tuple[str, str]:
        """Return the state after the given tokens, and their literal. If the tokens are not a
        number, the literal consists of the characters that they contain."""

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
        """Return the literal that the given tokens spell, and its value. Returns None if the
        literal is not a number."""
        state, literal = self.read_tokens(tokens)
        if state == EXTRA:
            value = list(VALUES_OF_EXTRAS.values())[tokens[0] - len(self.pieces)]
            return repr(value), value
        return literal, value_of(literal) if state in self.follows.whole else None

    def next(self, prefix: tuple[int, ...]) -> Next:
        state, _ = self.read_tokens(prefix)
        return Next(self._allowed[state], may_end=state in self.follows.whole)

    def after(self, state: str, token: int) -> str:
        """Return the state that a token leads to."""
        if (state, token) not in self._reached:
            self._reached[state, token] = self._state_after(state, token)
        return self._reached[state, token]

    def _state_after(self, state: str, token: int) -> str:
        pieces, steps = self._pieces_and_steps
        if token < len(pieces):
            piece = pieces[token]
            return reached(steps, state, (piece,) if piece in self.marks else piece)
        is_extra = state == BEGIN and token < len(pieces) + len(VALUES_OF_EXTRAS)
        return EXTRA if is_extra else BROKEN

    @cached_property
    def _reached(self) -> dict[tuple[str, int], str]:
        """States so far, by state and token: few of all pairs occur."""
        return {}

    @cached_property
    def _pieces_and_steps(self) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
        return self.pieces, steps_of(self.follows.after, self.marks)

    @cached_property
    def _allowed(self) -> dict[str, Bools]:
        """Allowed tokens by state, bool[vocabulary]."""
        tokens = range(len(self.vocabulary()))
        states = {*self._pieces_and_steps[1], EXTRA, BROKEN}
        return {
            state: np.array([self._state_after(state, token) != BROKEN for token in tokens])
            for state in states
        }


class LiteralScheme(WrittenScheme):
    """Base class for schemes whose tokens are pieces of literals. Single characters come first,
    then longer pieces."""

    def literal(self, pieces: Sequence[str]) -> str:
        """Return the literal that the given tokens write."""
        return "".join(pieces)

    def read_tokens(self, tokens: Sequence[int]) -> tuple[str, str]:
        state, names = BEGIN, self._names
        for token in tokens:
            state = self.after(state, token)
        return state, self.literal([names[min(token, len(names) - 1)] for token in tokens])

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Tokens, plus a placeholder for ids outside the vocabulary."""
        return (*self.vocabulary(), "?")


class MarkedScheme(WrittenScheme):
    """Base class for schemes that write the characters of literals, with marks between them."""

    @abstractmethod
    def marked(self, spelt: Spelt) -> Marks:
        """Return the marks to insert between the characters."""

    @property
    def pieces(self) -> tuple[str, ...]:
        return (*CHARACTERS, *self.marks)

    def encode(self, numerals: Numerals) -> Encoded:
        spelt = spell(numerals)
        return self.woven(spelt, self.marked(spelt))

    def woven(self, spelt: Spelt, marks: Marks) -> Encoded:
        """Encode the characters with the marks inserted."""
        tokens, lengths = with_marks(spelt.characters.astype(np.uint32), spelt.lengths, marks)
        return with_extras(tokens, lengths, spelt.outcomes, len(self.pieces))

    def read_tokens(self, tokens: Sequence[int]) -> tuple[str, str]:
        """Return the state and the literal. If the tokens are not a number, the literal consists of
        all their characters, without the digit counts."""
        state, literal, broken = BEGIN, "", False
        for token in tokens:
            state = self.after(state, token)
            if state == BROKEN:
                broken, state = True, self.after(BEGIN, token)  # a mark may begin another part
            if token < len(CHARACTERS) and state not in self.follows.silent:
                literal += CHARACTERS[token]
        return BROKEN if broken else state, literal


def spell(numerals: Numerals) -> Spelt:
    """Split each literal into its characters."""
    data, starts, ends = numerals.literals
    widths = ends - starts
    bounds = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)])
    characters = _ID_OF_BYTE[data[ranges(starts, widths)]]
    outcomes = outcomes_of(numerals)  # nan, inf and -inf are not ordinary numbers
    kept = characters != _DROPPED
    if outcomes.any():
        kept &= ~np.repeat(outcomes > 0, widths)
    before = np.concatenate([[0], np.cumsum(kept)])
    lengths = np.diff(before[bounds]).astype(np.int32)
    return Spelt(characters[kept], lengths, outcomes)


def with_extras(tokens: UInt32s, lengths: Int32s, outcomes: UInt8s, first: int) -> Encoded:
    """Return n encoded numbers [n], with one token inserted for each extra, such as NaN. The ids of
    the extras start at ``first``."""
    extras = np.flatnonzero(outcomes)
    ends = np.cumsum(lengths, dtype=np.int64)
    own = first + outcomes[extras].astype(np.uint32) - np.uint32(Outcome.NAN)
    lengths = lengths.copy()
    lengths[extras] = 1
    return Encoded(np.insert(tokens, ends[extras], own), lengths, outcomes)


def occurs(piece: str) -> bool:
    """Return whether any numeral contains these characters in sequence.

    >>> occurs("0."), occurs("--")
    (True, False)
    """
    steps = steps_of(FOLLOWS, ())
    return any(reached(steps, state, piece) != BROKEN for state in steps)


def parts_of(spelt: Spelt) -> MarkedParts:
    """Return the parts of numbers (see :class:`MarkedParts`).

    >>> parts = parts_of(spell(Numerals.of_literals(["-60.25e3", "7"])))
    >>> parts.number.tolist(), parts.first.tolist(), parts.digit.tolist(), parts.end.tolist()
    ([0, 0, 1], [0, 7, 8], [1, 7, 8], [6, 8, 9])
    >>> parts.digits.tolist(), parts.decimals.tolist()
    ([2, 1, 1], [2, -1, -1])
    """
    characters, lengths = spelt.characters, spelt.lengths.astype(np.int64)
    ends = np.cumsum(lengths)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    exponents = np.flatnonzero(np.isin(characters, _EXPONENT_IDS))
    some = np.flatnonzero(lengths)
    first = np.concatenate([(ends - lengths)[some], exponents + 1])
    end = np.concatenate([ends[some], ends[owner[exponents]]])
    # A mantissa ends before the exponent of its number; a percent sign belongs to no part.
    end[np.searchsorted(some, owner[exponents])] = exponents
    order = np.argsort(first, kind="stable")
    first, end = first[order], end[order]
    end = end - (characters[end - 1] == _PERCENT)
    points = np.append(np.flatnonzero(characters == _POINT), len(characters))
    point = np.minimum(points[np.searchsorted(points, first)], end)
    count = np.concatenate([[0], np.cumsum(characters < len(DIGITS))])
    return MarkedParts(
        number=owner[first],
        first=first,
        digit=first + np.isin(characters[first], _SIGN_IDS),
        end=end,
        digits=count[point] - count[first],
        decimals=np.where(point < end, count[end] - count[point], -1),
    )


def mantissa_digits(spelt: Spelt, parts: MarkedParts) -> MantissaDigits:
    """Return the digits of mantissas; the digits of exponents are left out.

    >>> spelt = spell(Numerals.of_literals(["-60.25e3"]))
    >>> at, part, place = mantissa_digits(spelt, parts_of(spelt))
    >>> at.tolist(), place.tolist()
    ([1, 2, 4, 5], [1, 0, -1, -2])
    """
    at = np.flatnonzero(spelt.characters < len(DIGITS))
    part = np.searchsorted(parts.first, at, side="right") - 1
    place = parts.digits[part] - 1 - np.arange(len(at)) + np.searchsorted(at, parts.digit)[part]
    chosen = ~np.append(False, parts.number[1:] == parts.number[:-1])[part]
    return MantissaDigits(at[chosen], part[chosen], place[chosen])


def with_marks(tokens: UInt32s, lengths: Int32s, marks: Marks) -> tuple[UInt32s, Int32s]:
    """Insert marks into tokens. Returns the tokens and the lengths of the n numbers, [n].

    ``marks.before`` are indices of tokens.
    """
    more = np.bincount(marks.number, minlength=len(lengths)).astype(np.int32)
    return np.insert(tokens, marks.before, marks.tokens), lengths + more
