"""What schemes share that write a literal as it is, in pieces of one or more characters.

Any pieces whose characters together are a numeral are a number. ``FOLLOWS`` says what a numeral
is, character by character: signs, groups of thousands, fraction, exponent and percent as
docs/NUMERALS.md has them.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes.base import (
    Bounds,
    DecodedNumbers,
    Encoded,
    Failure,
    Next,
    Outcome,
    Scheme,
)
from numtok.numerals.column import Numerals
from numtok.numerals.literals import value_of

CHARACTERS = "0123456789+-.eE,%\u2212"
EXTRAS = {"NAN": np.nan, "+INF": np.inf, "-INF": -np.inf}
_OUTCOMES = (Outcome.NAN, Outcome.POSITIVE_INFINITY, Outcome.NEGATIVE_INFINITY)

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
_STATES = {name: state for state, name in enumerate(FOLLOWS)}
_BEGUN = ("", "sign", "comma", "one of three", "two of three", "point", "leading point", "e")
WHOLE = frozenset(FOLLOWS) - {*_BEGUN, "signed exponent"}  # where a numeral may end
_WHOLE = frozenset(_STATES[name] for name in WHOLE)
_AFTER = [
    {character: _STATES[name] for some, name in follows.items() for character in some}
    for follows in FOLLOWS.values()
]
_EXTRA, _NONE = _STATES["extra"], -1

_DROPPED = 255
_ID_OF_BYTE = np.full(256, _DROPPED, np.uint8)
_ID_OF_BYTE[list(CHARACTERS[:-1].encode())] = range(len(CHARACTERS) - 1)
_ID_OF_BYTE[0xE2] = len(CHARACTERS) - 1  # of the three bytes of U+2212 only the first counts


class Spelt(NamedTuple):
    """``n`` numbers by their characters, ids in :data:`CHARACTERS`."""

    characters: NDArray[np.uint8]  # [sum of lengths]
    lengths: NDArray[np.int32]  # [n]; 0 for an extra
    outcomes: NDArray[np.uint8]  # [n]


class WrittenScheme(Scheme):
    """Numbers as they are written, in whatever tokens: nothing is lost, and lengths vary."""

    @property
    def tokens_per_number(self) -> None:
        return None

    @property
    def bounds(self) -> Bounds:
        return Bounds(0.0, np.inf)

    @property
    def relative_error(self) -> float:
        return 0.0

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        value = float(
            self.decode(np.array(tokens, np.uint32), np.array([len(tokens)], np.int32)).values[0]
        )
        return Bounds(value, value)


class LiteralScheme(WrittenScheme):
    """Numbers in pieces of their literals.

    The vocabulary is first the characters, then longer pieces, then the extras.
    """

    @property
    @abstractmethod
    def pieces(self) -> tuple[str, ...]:
        """The tokens that are parts of literals, by id."""

    def literal(self, pieces: Sequence[str]) -> str:
        """The literal that some tokens write."""
        return "".join(pieces)

    @property
    def paper_vocabulary_size(self) -> int:
        return len(self.pieces)

    def vocabulary(self) -> tuple[str, ...]:
        return (*self.pieces, *EXTRAS)

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: NDArray[np.float32] | None = None,
    ) -> DecodedNumbers:
        names = (*self.vocabulary(), "?")
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        written = []
        known = np.minimum(tokens, len(names) - 1).tolist()
        end = 0
        for index, length in enumerate(lengths.tolist()):
            own = known[end : end + length]
            end += length
            literal = self.literal([names[token] for token in own])
            state = self._state(own)
            if state in _WHOLE:
                values[index] = EXTRAS[literal] if state == _EXTRA else value_of(literal)
                failures[index] = Failure.NONE
            written.append(repr(EXTRAS[literal]) if state == _EXTRA else literal)
        return DecodedNumbers(values, failures, tuple(written))

    def next(self, prefix: tuple[int, ...]) -> Next:
        state = self._state(prefix)
        return Next(self._allowed[state], may_end=state in _WHOLE)

    def _state(self, tokens: Sequence[int]) -> int:
        """What has been read after some tokens; -1 for what no numeral begins with."""
        state = 0
        for token in tokens:
            if token >= len(self._steps[state]):
                return _NONE
            state = self._steps[state][token]
            if state == _NONE:
                break
        return state

    @cached_property
    def _steps(self) -> list[list[int]]:
        """By state and token, the state after it."""
        steps = []
        for state in range(len(FOLLOWS)):
            extras = [_NONE if state else _EXTRA] * len(EXTRAS)
            steps.append([_reached(state, piece) for piece in self.pieces] + extras)
        return steps

    @cached_property
    def _allowed(self) -> NDArray[np.bool_]:
        """bool[states, vocabulary]"""
        allowed: NDArray[np.bool_] = np.array(self._steps) != _NONE
        return allowed


def spell(numerals: Numerals) -> Spelt:
    """Each literal by its characters."""
    data, starts, ends = numerals.literals
    widths = ends - starts
    bounds = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)])
    flat = np.repeat(starts - bounds[:-1], widths) + np.arange(bounds[-1])
    characters = _ID_OF_BYTE[data[flat]]
    outcomes = np.zeros(len(numerals), np.uint8)
    above, _ = numerals.out_of_float64()
    for index in np.flatnonzero(~np.isfinite(numerals.values) & ~above):  # nan, inf, -inf
        value = numerals.values[index]
        outcomes[index] = _OUTCOMES[0 if np.isnan(value) else 1 if value > 0 else 2]
        characters[bounds[index] : bounds[index + 1]] = _DROPPED
    kept = characters != _DROPPED
    before = np.concatenate([[0], np.cumsum(kept)])
    lengths = np.diff(before[bounds]).astype(np.int32)
    return Spelt(characters[kept], lengths, outcomes)


def with_extras(
    tokens: NDArray[np.uint32],
    lengths: NDArray[np.int32],
    outcomes: NDArray[np.uint8],
    first: int,
) -> Encoded:
    """The numbers as encoded; an extra, which has no token yet, gets its own, from ``first`` on."""
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
    return any(_reached(state, piece) != _NONE for state in _STATES.values())


def _reached(state: int, piece: str) -> int:
    """The state after the characters of a piece."""
    for character in piece:
        state = _AFTER[state].get(character, _NONE)
        if state == _NONE:
            break
    return state
