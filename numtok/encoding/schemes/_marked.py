"""What schemes share that write a literal character by character, with marks between.

What may follow what is a table of states, as ``_literals.FOLLOWS`` is for bare literals; tokens of
states that are ``silent`` are no part of the literal.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes._literals import (
    CHARACTERS,
    EXTRAS,
    Spelt,
    WrittenScheme,
    spell,
    with_extras,
)
from numtok.encoding.schemes.base import DecodedNumbers, Encoded, Failure, Next
from numtok.numerals.column import Numerals
from numtok.numerals.literals import value_of

BEGIN, EXTRA = "begin", "extra"  # states: nothing read yet; NAN or an infinity
_BROKEN = "broken"  # what no number begins with; nothing may follow
_DIGITS, _POINT, _PERCENT = 10, CHARACTERS.index("."), CHARACTERS.index("%")  # the first ten: 0-9
_EXPONENT, _SIGNS = (tuple(map(CHARACTERS.index, some)) for some in ("eE", "+-\u2212"))


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


class MarkedParts(NamedTuple):
    """The parts of numbers, mantissa and exponent of scientific notation and else the whole number;
    of P parts, in order:"""

    number: NDArray[np.int64]  # [P] which number it is of
    first: NDArray[np.int64]  # [P] index of its first character, its sign if it has one
    digit: NDArray[np.int64]  # [P] that of the first character behind the sign
    end: NDArray[np.int64]  # [P] behind its last digit, comma or point
    digits: NDArray[np.int64]  # [P] how many digits stand before the point
    decimals: NDArray[np.int64]  # [P] how many behind it, -1 where there is no point


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
    exponents = np.flatnonzero(np.isin(characters, _EXPONENT))
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
    count = np.concatenate([[0], np.cumsum(characters < _DIGITS)])
    return MarkedParts(
        owner[first],
        first,
        first + np.isin(characters[first], _SIGNS),
        end,
        count[point] - count[first],
        np.where(point < end, count[end] - count[point], -1),
    )


class Marks(NamedTuple):
    """M marks: before which character each is put, rising (the number of characters: behind the
    last one), which number it is of, and its token."""

    before: NDArray[np.int64]  # [M]
    number: NDArray[np.int64]  # [M]
    tokens: NDArray[np.uint32]  # [M]


class MarkedScheme(WrittenScheme):
    """Numbers as they are written, with marks between their characters.

    The vocabulary is first the characters, then the marks, then the extras.
    """

    @property
    @abstractmethod
    def marks(self) -> tuple[str, ...]:
        """The tokens that are no part of a literal."""

    @property
    @abstractmethod
    def follows(self) -> Follows:
        """What may follow what, from the state :data:`BEGIN` on; an extra is a number by itself."""

    @abstractmethod
    def marked(self, spelt: Spelt) -> Marks:
        """What is put between the characters."""

    @property
    def paper_vocabulary_size(self) -> int:
        return len(CHARACTERS) + len(self.marks)

    def vocabulary(self) -> tuple[str, ...]:
        return (*CHARACTERS, *self.marks, *EXTRAS)

    def encode(self, numerals: Numerals) -> Encoded:
        spelt = spell(numerals)
        return self.woven(spelt, self.marked(spelt))

    def woven(self, spelt: Spelt, marks: Marks) -> Encoded:
        """The characters with the marks between."""
        tokens = np.insert(spelt.characters.astype(np.uint32), marks.before, marks.tokens)
        more = np.bincount(marks.number, minlength=len(spelt.lengths))
        lengths = (spelt.lengths + more).astype(np.int32)
        return with_extras(tokens, lengths, spelt.outcomes, self.paper_vocabulary_size)

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: NDArray[np.float32] | None = None,
    ) -> DecodedNumbers:
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        written = []
        ids, end = tokens.tolist(), 0
        for index, length in enumerate(lengths.tolist()):
            own = ids[end : end + length]
            end += length
            name, literal = self._read(own)
            if name == EXTRA:
                values[index] = list(EXTRAS.values())[own[0] - self.paper_vocabulary_size]
                literal = repr(float(values[index]))
            elif name in self.follows.whole:
                values[index] = value_of(literal)
            if name in self.follows.whole:
                failures[index] = Failure.NONE
            written.append(literal)
        return DecodedNumbers(values, failures, tuple(written))

    def next(self, prefix: tuple[int, ...]) -> Next:
        name, _ = self._read(prefix)
        following = self._after.get(name, {})
        allowed = np.zeros(len(self.vocabulary()), np.bool_)
        allowed[list(following)] = True
        return Next(allowed, may_end=name in self.follows.whole)

    def _read(self, tokens: Sequence[int]) -> tuple[str, str]:
        """The state after some tokens, and the literal in them; of what no number begins with all
        characters but those of counts."""
        name, literal, broken = BEGIN, "", False
        for token in tokens:
            after = self._after.get(name, {})
            if token not in after:
                broken, after = True, self._after[BEGIN]  # with a mark another part may begin
            name = after.get(token, _BROKEN)
            if token < len(CHARACTERS) and name not in self.follows.silent:
                literal += CHARACTERS[token]
        return _BROKEN if broken else name, literal

    @cached_property
    def _after(self) -> dict[str, dict[int, str]]:
        """By state and token, the state after it."""
        ids = {mark: len(CHARACTERS) + index for index, mark in enumerate(self.marks)}
        found: dict[str, dict[int, str]] = {}
        for state, follows in self.follows.after.items():
            own = found.setdefault(state, {})
            for some, name in follows.items():
                if some in ids:
                    own[ids[some]] = name
                else:
                    own |= {CHARACTERS.index(character): name for character in some}
        extras = range(self.paper_vocabulary_size, self.paper_vocabulary_size + len(EXTRAS))
        found.setdefault(BEGIN, {}).update(dict.fromkeys(extras, EXTRA))
        return found
