"""Counts digits that are not part of any number, and suggests how to write them differently.

``count_unread`` scans the bytes of a column of texts; ``UnreadDigits`` accumulates the counts from
several columns.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated

import msgspec
import numpy as np

from numtok.arrays import Int32s, UInt8s
from numtok.kernel_types import int32, int64, reads, uint8, writes
from numtok.kernels import byte_at, inlined, kernel
from numtok.numerals._eight import digits_end, next_digit_or_high, next_high
from numtok.numerals._identifiers import other_digit_at
from numtok.numerals.scan import is_digit_byte

UNREAD = "unread_digits"  # the fact of encoded data that holds :class:`UnreadDigits`
SAMPLED = 1000  # number of runs of unread digits whose shapes are counted
_LATER = 50  # number of runs per column whose shapes are counted once SAMPLED is reached
KEPT_SHAPES = 64  # shapes kept per unit of rows
SHOWN_SHAPES = 3
_NEAR = 48  # bytes on each side of a digit that are searched for its word
_LONGEST = 20  # characters of a shape

_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_WORD = re.compile(r"\w+(?:\.\w+)*")
_HASH = re.compile(r"(?=.*[0-9][a-f]+[0-9])[0-9a-f]{6,}|[0-9]+e[0-9]+(e[0-9]+)*", re.IGNORECASE)

#: Why digits are not part of any number, and how to write them, by the first pattern that matches.
_CAUSES = (
    (re.compile("a UUID|a hash"), "an identifier", "identifiers are not numbers"),
    (re.compile("0[xXbBoO]"), "not decimal", "write these in decimal"),
    (re.compile(r"[0-9]_[0-9]"), "an underscore follows the digits", "remove the underscores"),
    (
        re.compile(r"\w*[0-9]+(\.[0-9]+){2,}"),
        "a version or an address",
        "versions and addresses are not numbers",
    ),
    (re.compile(r".*[^\D0-9]"), "digits of another script", "write ASCII digits"),
    (
        re.compile(r".*[^\W0-9]"),
        "the digits follow a letter",
        "if these are values, put a space before the digits",
    ),
)


class UnreadDigits(msgspec.Struct, forbid_unknown_fields=True):
    """Counts of all digits in texts, and of the digits that are not part of any number.

    digits
        Number of decimal digits, in any script.
    unread
        Number of digits that are not part of any number.
    shapes
        Number of words per shape, in a sample of the words that contain unread digits. The shape of
        a word is the word with each run of digits replaced with ``0``, as in ``pH0.0``.
    """

    digits: Annotated[int, msgspec.Meta(ge=0)] = 0
    unread: Annotated[int, msgspec.Meta(ge=0)] = 0
    shapes: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}

    def merge(self, other: "UnreadDigits") -> None:
        """Add the counts of ``other`` to this object."""
        self.digits += other.digits
        self.unread += other.unread
        for shape, words in other.shapes.items():
            self.shapes[shape] = self.shapes.get(shape, 0) + words

    @property
    def next_sample(self) -> int:
        """Number of runs of unread digits to sample from the next column. It is small once enough
        are sampled, because finding words is slow."""
        return max(_LATER, SAMPLED - sum(self.shapes.values()))

    def commonest(self, most: int = KEPT_SHAPES) -> "UnreadDigits":
        """Return the counts with at most ``most`` shapes, the most frequent ones, in descending
        order of frequency."""
        ordered = sorted(self.shapes.items(), key=lambda item: (-item[1], item[0]))
        return UnreadDigits(self.digits, self.unread, dict(ordered[:most]))

    def note(self) -> str | None:
        """Return a sentence with the three most frequent shapes and advice on each; None if every
        digit is part of a number.

        >>> UnreadDigits(20, 5, {"pH0.0": 2, "0_0": 1}).note()
        '5 of 20 digits (25%) are not part of any number, in words such as pH0.0 (if these are \
values, put a space before the digits), 0_0 (remove the underscores); 0 stands for any digits'
        """
        if not self.unread:
            return None
        percent = 100 * self.unread / self.digits
        shown = f"{percent:.0f}%" if percent >= 1 else "under 1%"
        by_remedy: dict[str, list[str]] = {}
        for shape in self.commonest(SHOWN_SHAPES).shapes:
            by_remedy.setdefault(remedy(shape), []).append(shape)
        words = ", ".join(f"{', '.join(same)} ({advice})" for advice, same in by_remedy.items())
        count = f"{self.unread:,} of {self.digits:,} digits ({shown})"
        return (
            f"{count} are not part of any number, in words such as {words}; 0 stands for any digits"
        )


def remedy(shape: str) -> str:
    """Return advice on how to write words of a shape so that their digits are read as numbers.

    >>> remedy("0x0F"), remedy("0.0.0")
    ('write these in decimal', 'versions and addresses are not numbers')
    """
    return _cause(shape)[1]


def reason(shape: str) -> str:
    """Return the reason why the digits in words of a shape are not part of any number.

    >>> reason("0x0F"), reason("pH0.0")
    ('not decimal', 'the digits follow a letter')
    """
    return _cause(shape)[0]


def _cause(shape: str) -> tuple[str, str]:
    return next(
        ((why, advice) for pattern, why, advice in _CAUSES if pattern.match(shape)),
        ("no rule reads them", "write these as plain numbers"),
    )


def unread_words(
    data: UInt8s, rows: Int32s, starts: Int32s, ends: Int32s
) -> Iterator[tuple[int, int, str]]:
    """Return an iterator over the words whose digits are not part of any number, at most
    :data:`SAMPLED`. It yields the start, end and shape of each word.

    The arguments are the same as for :func:`count_unread`; start and end are offsets in ``data``.
    """
    offsets = np.empty(SAMPLED, np.int32)
    counts = np.zeros(3, np.int64)
    _count(data, rows, starts, ends, offsets, counts)
    return _words(data, rows, offsets[: counts[2]])


def count_unread(
    data: UInt8s, rows: Int32s, starts: Int32s, ends: Int32s, sampled: int = SAMPLED
) -> UnreadDigits:
    """Return counts of all digits in a column of texts, and of the digits that are not part of any
    number.

    data, rows
        The texts, in the layout of :func:`numtok.numerals.scan.scan`.
    starts, ends
        int32[numbers]: start and end of each number in the texts, as found by that function.
    sampled
        Number of runs of unread digits, from the start, whose shapes are counted.
    """
    offsets = np.empty(sampled, np.int32)
    counts = np.zeros(3, np.int64)
    _count(data, rows, starts, ends, offsets, counts)
    digits, unread, runs = counts.tolist()
    result = UnreadDigits(digits, unread)
    for _, _, shape in _words(data, rows, offsets[:runs]):
        result.shapes[shape] = result.shapes.get(shape, 0) + 1
    return result


@inlined
def _other_digits(data, i, end):  # type: ignore[no-untyped-def]
    """Count the digits of other scripts in ``data[i:end]``."""
    count = 0
    while True:
        i = next_high(data, i, end)
        if i >= end:
            return count
        count += other_digit_at(data, i, end)
        i += 1


@kernel(
    int64(
        reads(uint8), reads(int32), reads(int32), reads(int32), writes(int32), writes(int64)
    )
)  # fmt: skip
def _count(data, rows, starts, ends, places, counts):  # type: ignore[no-untyped-def]
    """Count all digits, unread digits, and runs of unread digits. ``places`` receives the offsets
    of the first runs."""
    begin, end = np.int64(rows[0]), np.int64(rows[len(rows) - 1])
    digits = other = np.int64(0)
    unread = runs = np.int64(0)
    for k in range(begin, end):
        digits += is_digit_byte(byte_at(data, k))
    ascii_only = next_high(data, begin, end) == end
    next_run = np.int64(-1)  # a digit here continues the last run
    i = begin
    for number in range(len(ends) + 1):
        stop = np.int64(starts[number]) if number < len(ends) else end
        while True:
            i = next_digit_or_high(data, i, stop)
            if i >= stop:
                break
            first = i
            c = byte_at(data, i)
            if is_digit_byte(c):
                i = digits_end(data, i, stop)
                count = i - first
            else:
                i = first + (1 if c < 0xC0 else 2 if c < 0xE0 else 3 if c < 0xF0 else 4)
                count = np.int64(other_digit_at(data, first, end))
                other += count
            if count > 0:
                unread += count
                if first != next_run and runs < len(places):
                    places[runs] = first
                    runs += 1
                next_run = i
        if number < len(ends):
            i = np.int64(ends[number])
            if not ascii_only:
                other += _other_digits(data, np.int64(starts[number]), i)
    counts[0] = digits + other
    counts[1] = unread
    counts[2] = runs
    return unread


def _words(data: UInt8s, rows: Int32s, offsets: Int32s) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and shape of the words that contain the digits at ascending offsets."""
    bounds = np.searchsorted(rows, offsets, side="right")
    view = data.data
    counted = 0  # the end of the last word
    for offset, begin, end in zip(
        offsets.tolist(), rows[bounds - 1].tolist(), rows[bounds].tolist(), strict=True
    ):
        if offset >= counted:
            first, counted, shape = _word_at(view, offset, begin, end)
            yield first, counted, shape


def _word_at(data: memoryview, offset: int, begin: int, end: int) -> tuple[int, int, str]:
    """Return start, end and shape of the word that contains the digit at ``offset`` of a text."""
    before = data[max(begin, offset - _NEAR) : offset].tobytes()
    after = data[offset : min(end, offset + _NEAR)].tobytes()
    # No word contains white space; without it, the same words come again and again.
    left, right, shape = _word_of(before.rpartition(b" ")[2], after.partition(b" ")[0])
    return offset - left, offset + right, shape


@lru_cache(maxsize=4096)
def _word_of(left: bytes, right: bytes) -> tuple[int, int, str]:
    """Return how many bytes the word of the digit between two pieces of text has in each of them,
    and its shape. The pieces may begin or end within a character."""
    before, after = left.decode(errors="ignore"), right.decode(errors="ignore")
    text = before + after
    for pattern in (_UUID, _WORD):
        for match in pattern.finditer(text):
            if match.start() <= len(before) < match.end():
                shape = "a UUID" if pattern is _UUID else _shape(match[0])
                inside = before[match.start() :], after[: match.end() - len(before)]
                return len(inside[0].encode()), len(inside[1].encode()), shape
    raise AssertionError(f"no word around a digit in {text!r}")


def _shape(word: str) -> str:
    if _HASH.fullmatch(word):
        return "a hash"
    shape = re.sub("[0-9]+", "0", word)
    return shape if len(shape) <= _LONGEST else f"{shape[: _LONGEST - 1]}…"
