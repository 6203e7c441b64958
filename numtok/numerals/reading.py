"""Finds the numbers in one text, and the words whose digits are not part of any number."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from numtok.arrays import Int32s, UInt8s
from numtok.numerals.find import find
from numtok.numerals.literals import value_of
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.unread import reason, remedy, unread_words
from numtok.numerals.zones import zone_at


class ReadNumber(NamedTuple):
    """A number in a text, as written. ``start`` and ``end`` are character offsets.

    ``flags`` are the flags of the policy without which it would not be read, or would have another
    value.
    """

    literal: str
    value: float
    start: int
    end: int
    flags: tuple[str, ...] = ()


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
    (ReadNumber(literal='8', value=8.0, start=12, end=13, flags=()),)
    >>> reading.unread[0][:4]
    ('pH6.5', 0, 5, 'the digits follow a letter')
    """
    data = np.frombuffer(text.encode(errors="replace"), np.uint8)
    rows = np.array([0, len(data)], np.int32)
    starts, ends, _, literals = spans = find(data, rows, policy)

    def piece(begin: int, end: int) -> str:
        return data[begin:end].tobytes().decode()

    def characters(begin: int, end: int) -> tuple[int, int]:
        first = len(piece(0, begin))
        return first, first + len(piece(begin, end))

    values = [value_of(literals.at(index)) for index in range(len(starts))]
    places = list(zip(starts.tolist(), ends.tolist(), strict=True))
    needed = _needed(data, rows, policy, dict(zip(places, values, strict=True)))
    numbers = [
        ReadNumber(piece(*place), value, *characters(*place), needed[place])
        for place, value in zip(places, values, strict=True)
    ]
    unread = []
    for begin, end, shape in unread_words(data, rows, spans.starts, spans.ends):
        word = characters(begin, end)
        zone = zone_at(text, *word, policy.not_numbers)
        if zone is None:
            why, advice = reason(shape), remedy(shape)
        else:
            why, advice = "in a zone without numbers", f"--not-numbers {zone}"
        unread.append(UnreadWord(piece(begin, end), *word, why, advice))
    return TextReading(text, tuple(numbers), tuple(unread))


def _needed(
    data: UInt8s, rows: Int32s, policy: NumeralPolicy, numbers: Mapping[tuple[int, int], float]
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Return the flags of the policy that each number needs. ``numbers`` maps spans to values."""
    needed: dict[tuple[int, int], tuple[str, ...]] = dict.fromkeys(numbers, ())
    for flag in policy.flags():
        less = find(data, rows, policy.without(flag))
        spans = zip(less.starts.tolist(), less.ends.tolist(), strict=True)
        values = dict(zip(spans, less.numerals().values.tolist(), strict=True))
        for span, value in numbers.items():
            if values.get(span) != value:
                needed[span] += (flag,)
    return needed
