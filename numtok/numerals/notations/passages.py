"""Separates numbers in the scanner's own notation from passages with another notation of a policy.

Even under a policy with many notations, most numbers need no rewriting: the scanner reads them from
the original text. Only the passages around the other numbers are copied, for rewriting. A passage
begins and ends at white space at least ``_REACH`` bytes from its numbers, because no notation
depends on more distant words. So a passage reads as it would within its text.
"""

import string
from typing import NamedTuple

import numpy as np

from numtok.arrays import Int32s, UInt8s
from numtok.kernel_types import boolean, int32, int64, reads, uint8, void, writes
from numtok.kernels import byte_at, copy_bytes, helper, inlined, kernel
from numtok.numerals._eight import digits_end, next_digit, next_digit_or_high
from numtok.numerals._identifiers import other_digit_at
from numtok.numerals.notations.characters import DASHES
from numtok.numerals.notations.ratios import VULGAR, vulgar_at
from numtok.numerals.policy import NumeralPolicy
from numtok.numerals.scan import (
    default_number,
    exponent_end,
    is_digit_at,
    is_digit_byte,
    thousands_end,
)
from numtok.numerals.suffixes import SUFFIXES

_REACH = 32  # bytes; the longest context is ` trillion`, a no-break space and a percent sign
_BREAKS = np.isin(np.arange(256), [*b" \t\r\n"])
# A quote, a sign and a point may be between a number and a character before it that matters.
_PASSED = np.isin(np.arange(256), [*b"+-.\"'"])
_PASSED_MOST = 3
_POINT, _BLANK, _SLASH, _PERCENT = ord("."), ord(" "), ord("/"), ord("%")

# Bytes next to a number that may be part of a notation: before it; after it; after it if a digit
# follows; after it and a blank.
_BEFORE, _AFTER, _AFTER_WITH_DIGIT, _AFTER_BLANK = 1, 2, 4, 8
_HIGH, _DIGITS = bytes(range(0x80, 0x100)), string.digits.encode()


def _first(characters: str) -> bytes:
    """Return the first bytes of characters."""
    return bytes(character.encode()[0] for character in characters)


def _last(characters: str) -> bytes:
    """Return the last bytes of characters."""
    return bytes(character.encode()[-1] for character in characters)


_SPACES = _first("\u00a0\u2009\u202f")
_NEIGHBORS: dict[str, dict[int, bytes]] = {
    "percent": {_AFTER: b"%" + _SPACES, _AFTER_BLANK: b"%"},
    "suffixes": {
        _AFTER: bytes({word.encode()[0] for word in SUFFIXES} - {_BLANK}),
        _AFTER_BLANK: bytes(word.encode()[1] for word in SUFFIXES if word[0] == " "),
    },
    "fractions": {
        _AFTER_WITH_DIGIT: b"/",
        _AFTER: _first("".join(VULGAR)),
        _AFTER_BLANK: _first("".join(VULGAR)) + _DIGITS,
    },
    "units": {_BEFORE: string.ascii_letters.encode()},
    "dimensions": {_AFTER_WITH_DIGIT: b"xX"},
    "unicode": {_BEFORE: _HIGH, _AFTER: b"xX*^" + _HIGH, _AFTER_BLANK: b"xX*" + _HIGH},
    "groups=apostrophe": {_AFTER_WITH_DIGIT: b"'", _AFTER: _first("’")},
    "groups=space": {_AFTER: _SPACES, _AFTER_BLANK: _DIGITS},
    "groups=underscore": {_AFTER_WITH_DIGIT: b"_"},
    "groups=indian": {_AFTER_WITH_DIGIT: b","},
    "signs=dash": {_BEFORE: _last(DASHES)},
    "signs=paren": {_AFTER: b")"},
    "signs=trailing": {_AFTER: b"-" + _first("\u2212")},
}


class Passages(NamedTuple):
    """Copies of ``m`` passages of texts, in order. Passage p is ``data[rows[p]:rows[p + 1]]``."""

    data: UInt8s  # [bytes]
    rows: Int32s  # [m + 1]
    starts: Int32s  # [m] offset of each passage in the data of the texts
    texts: Int32s  # [m] index of the text of each passage


@helper
def next_anchor(data, i, end, fractions, unicode):  # type: ignore[no-untyped-def]
    """Return the offset of the first ASCII digit at or after ``i``, vulgar fraction if
    ``fractions`` or digit of another script if ``unicode``; ``end`` if none."""
    if not (fractions or unicode):
        return next_digit(data, i, end)
    while True:
        i = next_digit_or_high(data, i, end)
        if i >= end or is_digit_byte(byte_at(data, i)):
            return i
        if unicode and other_digit_at(data, i, end):
            return i
        if fractions:
            _, _, width = vulgar_at(data, i, end)
            if width > 0:
                return i
        i += 1


@helper
def _mantissa_end(data, begin, i, end, thousands):  # type: ignore[no-untyped-def]
    """Return the end of the digits at ``i``, which are not a number to the scanner, with groups,
    fractions and an exponent."""
    k = digits_end(data, i, end)
    if thousands:
        k = thousands_end(data, begin, i, k, end)
    while k < end and byte_at(data, k) == _POINT and is_digit_at(data, k + 1, end):
        k = digits_end(data, k + 1, end)
    return exponent_end(data, k, end)


@inlined
def _may_need_rewriting(data, begin, i, k, end, near):  # type: ignore[no-untyped-def]
    """Return False for most numbers to which no notation can apply, quickly."""
    if i > begin and near[byte_at(data, i - 1)] & _BEFORE:
        return True
    if k >= end:
        return False
    c = byte_at(data, k)
    if c == _BLANK:
        return k + 1 < end and near[byte_at(data, k + 1)] & _AFTER_BLANK != 0
    return near[c] & (_AFTER | _AFTER_WITH_DIGIT) != 0


@helper
def _needs_rewriting(data, begin, i, k, end, near, by_space, fractions):  # type: ignore[no-untyped-def]
    """Return whether a notation may apply to the number ``data[i:k]``. ``near`` is the table of
    :func:`_neighbors`."""
    first = i
    while first > max(begin, i - _PASSED_MOST) and _PASSED[byte_at(data, first - 1)]:
        first -= 1
    if first > begin and near[byte_at(data, first - 1)] & _BEFORE:
        return True
    if k >= end:
        return False
    c = byte_at(data, k)
    if near[c] & _AFTER or (near[c] & _AFTER_WITH_DIGIT and is_digit_at(data, k + 1, end)):
        return True
    if c != _BLANK:
        return False
    if is_digit_at(data, k + 1, end):  # 1 234, 1 1/2
        last = digits_end(data, k + 1, end)
        is_group = by_space and last - k - 1 == 3 and k - i <= 3
        return is_group or (fractions and last < end and byte_at(data, last) == _SLASH)
    return k + 1 < end and near[byte_at(data, k + 1)] & _AFTER_BLANK != 0


@helper
def _passage_start(data, first, i):  # type: ignore[no-untyped-def]
    """Return the start of the passage of a number at ``i``, at least ``first``."""
    k = max(i - _REACH, first)
    while k > first and not _BREAKS[byte_at(data, k - 1)]:
        k -= 1
    return k


@helper
def _passage_end(data, k, first, end):  # type: ignore[no-untyped-def]
    """Return the end of the passage of a number that ends at ``k``, at least ``first``."""
    k = min(max(k + _REACH, first), end)
    while k < end and not _BREAKS[byte_at(data, k)]:
        k += 1
    return k


@kernel(
    int64(
        reads(uint8), reads(int32), reads(uint8), boolean, boolean, boolean, boolean, boolean,
        writes(int32), writes(int32), writes(int32), writes(int32), writes(int32), writes(int32),
        writes(int64),
    )
)  # fmt: skip
def _separate(  # type: ignore[no-untyped-def]
    data, rows, near, thousands, percent, fractions, unicode, by_space,
    starts, ends, counts, passage_starts, passage_ends, passage_texts, written,
):  # fmt: skip
    """Separate numbers and passages, and return how many passages there are."""
    count = passages = 0
    for row in range(len(rows) - 1):
        begin, end = np.int64(rows[row]), np.int64(rows[row + 1])
        first = count
        stop = np.int64(-1)  # end of the text's last passage
        i = begin
        while True:
            i = next_anchor(data, i, end, fractions, unicode)
            if i >= end:
                break
            k = i + 1
            if is_digit_byte(byte_at(data, i)):
                start, j, number = default_number(data, begin, i, end, thousands, percent)
                if number:
                    k = j - (percent and byte_at(data, j - 1) == _PERCENT)
                else:
                    k = _mantissa_end(data, begin, i, end, thousands)
                if not (
                    _may_need_rewriting(data, begin, i, k, end, near)
                    and _needs_rewriting(data, begin, i, k, end, near, by_space, fractions)
                ):
                    if number and start >= stop:
                        starts[count], ends[count] = start, j
                        count += 1
                    i = j
                    continue
            low = _passage_start(data, max(begin, stop), i)
            if low > stop:  # the start of a passage, not the rest of one
                passage_starts[passages], passage_texts[passages] = low, row
                passages += 1
            while count > first and starts[count - 1] >= low:
                count -= 1
            stop = _passage_end(data, k, stop, end)
            passage_ends[passages - 1] = stop
            i = k
        counts[row] = count - first
    written[0] = count
    return passages


@kernel(void(reads(uint8), reads(int32), reads(int32), writes(int32), writes(uint8)))
def _copy(data, starts, ends, rows, out):  # type: ignore[no-untyped-def]
    """Copy passages to ``out``."""
    o = np.int64(0)
    for p in range(len(starts)):
        rows[p] = o
        size = np.int64(ends[p] - starts[p])
        copy_bytes(out, o, data, np.int64(starts[p]), size)
        o += size
    rows[len(starts)] = o


def separate(
    data: UInt8s, rows: Int32s, policy: NumeralPolicy
) -> tuple[tuple[Int32s, Int32s, Int32s], Passages]:
    """Return the numbers of texts that need no rewriting, in the form of
    :func:`numtok.numerals.scan.scan`, and the passages that may need it.

    data
        uint8[bytes]: the texts, concatenated without separators, in valid UTF-8.
    rows
        int32[n + 1]: text r is ``data[rows[r]:rows[r + 1]]``.

    >>> words = b"Room 12 is on the second floor of the old building, 1'234 m away"
    >>> text, rows = np.frombuffer(words, np.uint8), np.array([0, len(words)], np.int32)
    >>> (starts, _, _), passages = separate(text, rows, NumeralPolicy.parse("groups=apostrophe"))
    >>> starts.tolist(), passages.data.tobytes()
    ([5], b"second floor of the old building, 1'234 m away")
    """
    size, texts = int(rows[-1] - rows[0]), len(rows) - 1
    # Untouched pages cost no memory. Plain numbers have a byte between them, or two bytes each, and
    # a text has at most one passage per number.
    room = size // 2 + texts + 1
    starts, ends, firsts, stops, owners = (np.empty(room, np.int32) for _ in range(5))
    counts = np.empty(texts, np.int32)
    written = np.zeros(1, np.int64)
    passages = _separate(
        data,
        rows,
        _neighbors(policy),
        policy.thousands,
        policy.percent,
        policy.fractions,
        policy.unicode,
        "space" in policy.groups,
        *(starts, ends, counts),
        *(firsts, stops, owners, written),
    )
    numbers = int(written[0])
    firsts, stops = firsts[:passages].copy(), stops[:passages].copy()
    copied = np.empty(int((stops - firsts).sum()), np.uint8)
    out_rows = np.empty(passages + 1, np.int32)
    _copy(data, firsts, stops, out_rows, copied)
    return (
        (starts[:numbers].copy(), ends[:numbers].copy(), counts),
        Passages(copied, out_rows, firsts, owners[:passages].copy()),
    )


def _neighbors(policy: NumeralPolicy) -> UInt8s:
    """Return which bytes next to a number may be part of a notation, uint8[256]: a sum of
    ``_BEFORE``, ``_AFTER``, ``_AFTER_WITH_DIGIT`` and ``_AFTER_BLANK``."""
    table = np.zeros(256, np.uint8)
    for flag in policy.flags():
        for place, characters in _NEIGHBORS.get(flag, {}).items():
            table[[*characters]] |= place
            if place == _BEFORE:
                table[_PASSED] |= _BEFORE
    return table
