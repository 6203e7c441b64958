"""Base class for schemes that write the digits of a literal, one by one or in chunks."""

import re
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from itertools import groupby

import numpy as np

from numtok.arrays import Bools, Ints, UInt8s, UInt32s
from numtok.encoding.numeral_states import CHARACTERS
from numtok.encoding.schemes._literals import (
    LiteralScheme,
    Marks,
    Spelt,
    parts_of,
    spell,
    with_extras,
    with_marks,
)
from numtok.encoding.schemes.base import Encoded
from numtok.numerals.column import Numerals

_POINT, _COMMA = CHARACTERS.index("."), CHARACTERS.index(",")
_UNGROUPED = re.compile(r"([+\-\u2212]?)([0-9]+)(?![0-9,])")


class DigitTokens(LiteralScheme):
    """Base class for lossless schemes with one token per character of the literal, or per chunk of
    digits. Subclasses define how digits are split, and in which order they are written."""

    @property
    @abstractmethod
    def chunk(self) -> int:
        """Number of digits per token, 1 to 3."""

    @property
    @abstractmethod
    def reverse(self) -> bool:
        """True if the chunks of a run of digits are written last to first."""

    @property
    @abstractmethod
    def pad(self) -> int:
        """Number of digits to which the integer part is padded with leading zeros."""

    @property
    def from_left(self) -> bool:
        """True if runs of digits are split from the left. Otherwise they are split from the decimal
        point, or from the right."""
        return False

    @property
    def pieces(self) -> tuple[str, ...]:
        return _pieces(self.chunk)

    def marked(self, spelt: Spelt) -> Marks:
        """Return the marks between chunks. Only schemes with marks implement this method."""
        raise NotImplementedError

    def encode(self, numerals: Numerals) -> Encoded:
        spelt = spell(numerals)
        if self.pad:
            spelt = self._filled_up(spelt)
        characters, lengths, outcomes = spelt
        tokens = characters.astype(np.uint32)
        if self.chunk > 1 or self.reverse or self.marks:
            run = _runs(spelt)
            begins = _chunks(characters, run, self.chunk, self.from_left)
            before = np.concatenate([[0], np.cumsum(begins)])
            lengths = np.diff(before[np.concatenate([[0], np.cumsum(lengths)])]).astype(np.int32)
            tokens = self._tokens(characters, begins)
            if self.reverse:
                tokens = _reversed(tokens, run[begins])
            if self.marks:
                marks = self.marked(spelt)
                marks = marks._replace(before=before[marks.before])
                tokens, lengths = with_marks(tokens, lengths, marks)
        return with_extras(tokens, lengths, outcomes, len(self.pieces))

    def literal(self, pieces: Sequence[str]) -> str:
        if self.reverse:
            runs = ([*run] for _, run in groupby(pieces, key=_is_digits))
            pieces = [p for run in runs for p in (run[::-1] if _is_digits(run[0]) else run)]
        literal = "".join(pieces)
        match = _UNGROUPED.match(literal)
        if self.pad and match and len(match[2]) == self.pad:
            literal = match[1] + (match[2].lstrip("0") or "0") + literal[match.end() :]
        return literal

    def _tokens(self, characters: UInt8s, begins: Bools) -> UInt32s:
        """Return the token of each chunk."""
        first = np.flatnonzero(begins)
        if not len(first):
            return np.empty(0, np.uint32)
        sizes = np.diff(np.append(first, len(characters)))
        left = np.repeat(first + sizes, sizes) - 1 - np.arange(len(characters))
        values = np.add.reduceat(characters * 10**left, first)
        # Number of ids before the chunks of each size; single characters come first.
        before = np.array([0, 0, len(CHARACTERS), len(CHARACTERS) + 100])
        return (before[sizes] + values).astype(np.uint32)

    def _filled_up(self, spelt: Spelt) -> Spelt:
        """Pad numbers with zeros before their first digit."""
        parts = parts_of(spelt)
        commas = np.concatenate([[0], np.cumsum(spelt.characters == _COMMA)])
        first = np.append(True, parts.number[1:] != parts.number[:-1])[: len(parts.number)]
        grouped = commas[parts.end] > commas[parts.digit]
        chosen = np.flatnonzero(first & (parts.digits > 0) & ~grouped)
        zeros = np.maximum(self.pad - parts.digits[chosen], 0)
        characters = np.insert(spelt.characters, np.repeat(parts.digit[chosen], zeros), 0)
        lengths = spelt.lengths.copy()
        lengths[parts.number[chosen]] += zeros.astype(np.int32)
        return spelt._replace(characters=characters, lengths=lengths)


@cache
def _pieces(chunk: int) -> tuple[str, ...]:
    longer = range(2, chunk + 1)
    return (*CHARACTERS, *(f"{n:0{size}}" for size in longer for n in range(10**size)))


def _runs(spelt: Spelt) -> Ints:
    """Return the index of the run of each character, int64[characters]. Each non-digit is a
    separate run."""
    is_digit = spelt.characters < 10
    owner = np.repeat(np.arange(len(spelt.lengths)), spelt.lengths)
    begins = np.ones(len(is_digit), np.bool_)
    begins[1:] = ~is_digit[1:] | ~is_digit[:-1] | (owner[1:] != owner[:-1])
    return np.cumsum(begins) - 1


def _chunks(characters: UInt8s, run: Ints, size: int, from_left: bool) -> Bools:
    """Return whether a chunk begins at each character, bool[characters]."""
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    ends = np.append(starts[1:], len(run))
    after_point = (starts > 0) & (characters[starts - 1] == _POINT) | from_left
    at = np.arange(len(run))
    offset = np.where(after_point[run], at - starts[run], at - ends[run])
    begins: Bools = (offset % size == 0) | (at == starts[run])
    return begins


def _reversed(tokens: UInt32s, run: Ints) -> UInt32s:
    """Reverse the tokens of each run; ``run`` is ascending."""
    _, starts, counts = np.unique(run, return_index=True, return_counts=True)
    last = np.repeat(2 * starts + counts - 1, counts)
    return tokens[last - np.arange(len(tokens))]


def _is_digits(piece: str) -> bool:
    return piece[0] in CHARACTERS[:10]
