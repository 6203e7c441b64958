"""What schemes share that write a literal character by character, with marks between."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes._literals import (
    BEGIN,
    BROKEN,
    CHARACTERS,
    Spelt,
    WrittenScheme,
    spell,
    with_extras,
)
from numtok.encoding.schemes.base import Encoded
from numtok.numerals.column import Numerals

_DIGITS, _POINT, _PERCENT = 10, CHARACTERS.index("."), CHARACTERS.index("%")  # the first ten: 0-9
_EXPONENT, _SIGNS = (tuple(map(CHARACTERS.index, some)) for some in ("eE", "+-\u2212"))


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
        number=owner[first],
        first=first,
        digit=first + np.isin(characters[first], _SIGNS),
        end=end,
        digits=count[point] - count[first],
        decimals=np.where(point < end, count[end] - count[point], -1),
    )


class Marks(NamedTuple):
    """M marks: before which character each is put, rising (the number of characters: behind the
    last one), which number it is of, and its token."""

    before: NDArray[np.int64]  # [M]
    number: NDArray[np.int64]  # [M]
    tokens: NDArray[np.uint32]  # [M]


def with_marks(
    tokens: NDArray[np.uint32], lengths: NDArray[np.int32], marks: Marks
) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Tokens, and how many each of n numbers has, [n], with marks between; these are before tokens
    here."""
    more = np.bincount(marks.number, minlength=len(lengths)).astype(np.int32)
    return np.insert(tokens, marks.before, marks.tokens), lengths + more


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
        return with_extras(tokens, lengths, spelt.outcomes, self.paper_vocabulary_size)

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
