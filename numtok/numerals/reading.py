"""Finds the numbers in one text, and the words whose digits are not part of any number."""

from typing import NamedTuple

import numpy as np

from numtok.numerals.literals import value_of
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import scan
from numtok.numerals.unread import reason, remedy, unread_words


class ReadNumber(NamedTuple):
    """A number in a text. ``start`` and ``end`` are character offsets."""

    literal: str
    value: float
    start: int
    end: int


class UnreadWord(NamedTuple):
    """A word whose digits are not part of any number, with the reason and advice on rewriting it.

    ``start`` and ``end`` are character offsets.
    """

    text: str
    start: int
    end: int
    reason: str
    advice: str


class TextReading(NamedTuple):
    """The numbers in a text, and the words whose digits are not part of any number. Both are in the
    order in which they appear."""

    text: str
    numbers: tuple[ReadNumber, ...]
    unread: tuple[UnreadWord, ...]

    def marked(self) -> str:
        """Return the text with its numbers in angle quotes.

        >>> read_text("pH6.5, dose 8 mg", NumeralPolicy()).marked()
        'pH6.5, dose «8» mg'
        """
        ends = [0, *(number.end for number in self.numbers)]
        starts = [*(number.start for number in self.numbers), len(self.text)]
        between = [self.text[end:start] for end, start in zip(ends, starts, strict=True)]
        numbers = [f"«{number.literal}»" for number in self.numbers]
        pairs = zip(between, [*numbers, ""], strict=True)
        return "".join(piece for pair in pairs for piece in pair)


def read_text(text: str, policy: NumeralPolicy) -> TextReading:
    """Return the numbers that a policy finds in a text, and the words whose digits are not part of
    any number.

    >>> reading = read_text("pH6.5, dose 8 mg", NumeralPolicy())
    >>> reading.numbers
    (ReadNumber(literal='8', value=8.0, start=12, end=13),)
    >>> reading.unread[0][:4]
    ('pH6.5', 0, 5, 'the digits follow a letter')
    """
    data = np.frombuffer(text.encode(errors="replace"), np.uint8)
    rows = np.array([0, len(data)], np.int32)
    starts, ends, _ = scan(data, rows, policy)

    def piece(begin: int, end: int) -> str:
        return data[begin:end].tobytes().decode()

    def characters(begin: int, end: int) -> tuple[int, int]:
        first = len(piece(0, begin))
        return first, first + len(piece(begin, end))

    numbers = []
    for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
        literal = piece(begin, end)
        numbers.append(ReadNumber(literal, value_of(literal), *characters(begin, end)))
    unread = [
        UnreadWord(piece(begin, end), *characters(begin, end), reason(shape), remedy(shape))
        for begin, end, shape in unread_words(data, rows, starts, ends)
    ]
    return TextReading(text, tuple(numbers), tuple(unread))
