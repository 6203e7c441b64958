"""Finds the numbers in a column of texts and returns their byte offsets.

docs/reference/numbers.md specifies what counts as a number, with examples; comments below
refer to these examples. Texts are UTF-8. A span never splits a character, because numbers are ASCII
except for a leading U+2212.
"""

import numpy as np

from numtok.arrays import Int32s, UInt8s
from numtok.kernel_types import boolean, int32, int64, reads, uint8, writes
from numtok.kernels import byte_at, inlined, kernel
from numtok.numerals._eight import digits_end, next_digit
from numtok.numerals._identifiers import (
    hash_end,
    hour_at,
    other_digit_at,
    other_digit_before,
    uuid_end,
)
from numtok.numerals.policy import NumeralPolicy

# Classes of ASCII bytes; the two-byte letters of Latin, Greek and Cyrillic need two bytes.
_DIGIT, _LETTER = 1, 2
_CLASS = np.zeros(256, np.uint8)
_CLASS[ord("0") : ord("9") + 1] = _DIGIT
_CLASS[ord("A") : ord("Z") + 1] = _LETTER
_CLASS[ord("a") : ord("z") + 1] = _LETTER
_CLASS[ord("_")] = _LETTER

_POINT, _MINUS, _PLUS, _COMMA, _PERCENT = ord("."), ord("-"), ord("+"), ord(","), ord("%")
_APOSTROPHE, _QUOTE = ord("'"), ord('"')
_UNDERSCORE, _ZERO, _LOWER = ord("_"), ord("0"), 0x20
_E, _X, _B, _O = ord("e"), ord("x"), ord("b"), ord("o")

# ASCII bytes that decide nothing about a number after or before them.
_BEFORE, _AFTER = np.zeros((2, 256), np.bool_)
_BEFORE[:0x80] = _AFTER[:0x80] = _CLASS[:0x80] == 0
_BEFORE[list(b"+-.)]}%'\"")] = _AFTER[list(b"+-.,%")] = False

# After one of these bytes, or after a letter, a sign is an operator.
_CLOSES = np.zeros(256, np.bool_)
_CLOSES[list(b"0123456789)]}%.")] = True


@inlined
def is_digit_byte(c):  # type: ignore[no-untyped-def]
    """Return whether a byte is an ASCII digit."""
    return np.uint8(c - np.uint8(ord("0"))) < 10


@inlined
def is_digit_at(data, i, end):  # type: ignore[no-untyped-def]
    """Return whether an ASCII digit is at ``i``, before ``end``."""
    return i < end and is_digit_byte(byte_at(data, i))


@inlined
def letter_before(data, begin, i):  # type: ignore[no-untyped-def]
    """Return whether the character that ends before ``i`` is a letter or an underscore.

    Letters are A-Z, a-z and U+00C0 to U+053F except the multiplication and division signs (lead
    bytes C3 to D4): the scripts used in identifiers.
    """
    if i <= begin:
        return False
    last = byte_at(data, i - 1)
    if last < 0x80:
        return _CLASS[last] == _LETTER
    if i - 2 < begin or last >= 0xC0:
        return False
    lead = byte_at(data, i - 2)
    sign = lead == 0xC3 and (last == 0x97 or last == 0xB7)
    return 0xC3 <= lead <= 0xD4 and not sign


@inlined
def operand_before(data, begin, i):  # type: ignore[no-untyped-def]
    """Return whether an operand ends before ``i``, so that a sign or point at ``i`` is not part of
    a number: a digit (of any script), letter, ``)``, ``]``, ``}``, percent or degree sign, point,
    or a closing quote (one right after any of these)."""
    if i <= begin:
        return False
    last = byte_at(data, i - 1)
    width = 0
    if last in (_APOSTROPHE, _QUOTE):
        width = 1
    elif (
        last in (0x99, 0x9D)  # U+2019, U+201D
        and i - 3 >= begin
        and byte_at(data, i - 2) == 0x80
        and byte_at(data, i - 3) == 0xE2
    ):
        width = 3
    if width > 0:
        i -= width
        if i <= begin:
            return False
        last = byte_at(data, i - 1)
    if _CLOSES[last]:
        return True
    if last == 0xB0 and i - 2 >= begin and byte_at(data, i - 2) == 0xC2:  # U+00B0, the degree sign
        return True
    return letter_before(data, begin, i) or other_digit_before(data, begin, i)


@inlined
def _sign_start(data, begin, start):  # type: ignore[no-untyped-def]
    """Return the start, including the sign, of the number whose digits (or leading point) begin at
    ``start``."""
    sign = start
    if start - 1 >= begin and (
        byte_at(data, start - 1) == _MINUS or byte_at(data, start - 1) == _PLUS
    ):
        sign = start - 1
    elif (
        start - 3 >= begin
        and byte_at(data, start - 1) == 0x92
        and byte_at(data, start - 2) == 0x88
        and byte_at(data, start - 3) == 0xE2
    ):
        sign = start - 3
    if sign < start and operand_before(data, begin, sign):
        return start
    return sign


@inlined
def exponent_end(data, i, end):  # type: ignore[no-untyped-def]
    """Return the end of the exponent that begins at ``i``; ``i`` if none."""
    if i >= end or byte_at(data, i) | _LOWER != _E:
        return i
    j = i + 1
    if j < end and (byte_at(data, j) == _MINUS or byte_at(data, j) == _PLUS):
        j += 1
    if not is_digit_at(data, j, end):
        return i
    while is_digit_at(data, j, end):
        j += 1
    return j


@inlined
def thousands_end(data, begin, i, j, end):  # type: ignore[no-untyped-def]
    """Return the end of the digits ``data[i:j]`` and the groups ``,ddd`` after them; ``j`` if there
    are none.

    A chain of digits and commas is read as groups completely or not at all: 1,23,456 is three
    numbers.
    """
    if j - i > 3 or byte_at(data, i) == _ZERO:
        return j
    if i - 2 >= begin and byte_at(data, i - 1) == _COMMA and _CLASS[byte_at(data, i - 2)] == _DIGIT:
        return j  # not the first of its chain
    k = j
    while (
        k < end
        and byte_at(data, k) == _COMMA
        and is_digit_at(data, k + 1, end)
        and is_digit_at(data, k + 2, end)
        and is_digit_at(data, k + 3, end)
    ):
        k += 4
    whole = not is_digit_at(data, k, end) and not (
        k < end and byte_at(data, k) == _COMMA and is_digit_at(data, k + 1, end)
    )
    return k if whole else j


@inlined
def _continues_word(data, begin, i, j, end):  # type: ignore[no-untyped-def]
    """Return whether the digits ``data[i:j]`` continue an identifier (planet0, x1, utf8) or a
    number in another script. The hour of T05:06 does not."""
    if other_digit_before(data, begin, i):
        return True
    if not letter_before(data, begin, i):
        return False
    hour = hour_at(data, i, j, end) and not letter_before(data, begin, i - 1)
    return not hour


@inlined
def _digit_before(data, begin, i):  # type: ignore[no-untyped-def]
    """Return whether the character that ends before ``i`` is a digit of any script."""
    ascii_digit = i > begin and is_digit_byte(byte_at(data, i - 1))
    return ascii_digit or other_digit_before(data, begin, i)


@inlined
def _plain_number(data, begin, i, j, end):  # type: ignore[no-untyped-def]
    """Return the number whose first digits are ``data[i:j]`` as (start, end) if the bytes around it
    decide nothing; (_, 0) otherwise. A fast way through :func:`default_number`."""
    start = i
    if i > begin and (byte_at(data, i - 1) == _MINUS or byte_at(data, i - 1) == _PLUS):
        start = i - 1
    if start > begin and not _BEFORE[byte_at(data, start - 1)]:
        return start, np.int64(0)
    if j + 1 < end and byte_at(data, j) == _POINT and is_digit_byte(byte_at(data, j + 1)):
        j = digits_end(data, j + 1, end)
    if (
        j < end
        and not _AFTER[byte_at(data, j)]
        and (byte_at(data, j) != _COMMA or is_digit_at(data, j + 1, end))
    ):
        return start, np.int64(0)
    return start, j


@inlined
def default_number(data, begin, i, end, thousands, percent):  # type: ignore[no-untyped-def]
    """Return the number whose first digit is at ``i`` as (start, end, True), else (_, resume,
    False)."""
    j = digits_end(data, i, end)
    start, plain = _plain_number(data, begin, i, j, end)
    if plain > 0:
        return start, plain, True
    start = i
    leading_point = False
    uuid = uuid_end(data, begin, i, j, end)
    if uuid > i:
        return i, uuid, False
    if _continues_word(data, begin, i, j, end):
        return i, j, False
    if i > begin and byte_at(data, i - 1) == _POINT:
        if _digit_before(data, begin, i - 1):  # planet0.5, the tail of 1.2.3
            return i, j, False
        leading_point = not operand_before(data, begin, i - 1)  # not in fig.5, 1..2
        if leading_point:
            start = i - 1
    if leading_point or i == begin or byte_at(data, i - 1) != _POINT:
        start = _sign_start(data, begin, start)
    if byte_at(data, i) == _ZERO and j == i + 1 and j + 1 < end:
        mark = byte_at(data, j) | _LOWER
        if (mark == _X and _CLASS[byte_at(data, j + 1)] != 0) or (
            mark in (_B, _O) and _CLASS[byte_at(data, j + 1)] == _DIGIT
        ):  # 0x1F, 0b101, 0o17 are text
            return i, j, False
    if thousands and not leading_point:
        j = thousands_end(data, begin, i, j, end)
    if not leading_point and j < end and byte_at(data, j) == _POINT:
        fraction = digits_end(data, j + 1, end)
        # "5." is 5 and a full stop, but "5.e3" is 5000.
        if fraction > j + 1 or exponent_end(data, fraction, end) > fraction:
            j = fraction
    exponent = j
    j = exponent_end(data, j, end)
    first = i - leading_point
    identifier = hash_end(data, first, exponent, j, end)
    if identifier > first:  # 3f9e1a, 5381e182
        return i, identifier, False
    point = j < end and byte_at(data, j) == _POINT
    if other_digit_at(data, j + point, end):  # the rest of the number is in another script
        return i, j, False
    if j < end and byte_at(data, j) == _UNDERSCORE:  # 1_000, 2_layers: an identifier
        return i, j, False
    if (
        j + 1 < end and byte_at(data, j) == _POINT and is_digit_at(data, j + 1, end)
    ):  # 1.2.3, 10.0.0.1
        while j + 1 < end and byte_at(data, j) == _POINT and is_digit_at(data, j + 1, end):
            j += 2
            while is_digit_at(data, j, end):
                j += 1
        return i, j, False
    if percent and j < end and byte_at(data, j) == _PERCENT:
        j += 1
    return start, j, True


@inlined
def _xval_number(data, begin, i, end):  # type: ignore[no-untyped-def]
    """Match xVal's pattern at ``i`` (a digit, or a minus before one)."""
    if i > begin and byte_at(data, i - 1) == _APOSTROPHE:
        return i, i + 1, False
    j = i + 1 if byte_at(data, i) == _MINUS else i
    while is_digit_at(data, j, end):
        j += 1
    # The pattern backtracks from exponent to fraction to integer until no apostrophe follows.
    integer = j
    fraction = integer
    if j < end and byte_at(data, j) == _POINT and is_digit_at(data, j + 1, end):
        fraction = j + 1
        while is_digit_at(data, fraction, end):
            fraction += 1
    exponent = exponent_end(data, fraction, end)
    if exponent >= end or byte_at(data, exponent) != _APOSTROPHE:
        return i, exponent, True
    if exponent > fraction:  # followed by the letter of the exponent
        return i, fraction, True
    if fraction > integer:  # followed by the point
        return i, integer, True
    return i, integer, False  # no match starts at a later digit of this run either


@kernel(
    int64(
        reads(uint8), reads(int32), boolean, boolean, boolean,
        writes(int32), writes(int32), writes(int32),
    )
)  # fmt: skip
def _scan(data, rows, xval, thousands, percent, starts, ends, row_counts):  # type: ignore[no-untyped-def]
    count = 0
    for row in range(len(rows) - 1):
        begin, end = np.int64(rows[row]), np.int64(rows[row + 1])
        first = count
        i = begin
        last = begin  # everything before it has been scanned
        while True:
            i = next_digit(data, i, end)
            if i == end:
                break
            if xval:
                minus = i > last and byte_at(data, i - 1) == _MINUS
                start, i, number = _xval_number(data, begin, i - minus, end)
                last = i
            else:
                start, i, number = default_number(data, begin, i, end, thousands, percent)
            if number:
                starts[count] = start
                ends[count] = i
                count += 1
        row_counts[row] = count - first
    return count


def scan(data: UInt8s, rows: Int32s, policy: NumeralPolicy) -> tuple[Int32s, Int32s, Int32s]:
    """Return the byte offsets of every number in a column of texts.

    data
        uint8[bytes]: the texts, concatenated without separators, in valid UTF-8.
    rows
        int32[n + 1]: text r is ``data[rows[r]:rows[r + 1]]``.

    Returns the start and end of each number (int32[numbers], offsets in ``data``), and the number
    of numbers in each text (int32[n]).

    >>> text = np.frombuffer(b"[1,-2] utf8", np.uint8)
    >>> scan(text, np.array([0, 11], np.int32), NumeralPolicy())
    (array([1, 3], dtype=int32), array([2, 5], dtype=int32), array([2], dtype=int32))
    """
    # Adjacent numbers (5%5%, and -1-2 under xval) have at least two bytes each; all others have a
    # byte between them. Untouched pages cost no memory.
    room = int(rows[-1] - rows[0]) // 2 + len(rows)
    starts, ends = np.empty(room, np.int32), np.empty(room, np.int32)
    counts = np.empty(len(rows) - 1, np.int32)
    count = _scan(
        data, rows, policy.rule == "xval", policy.thousands, policy.percent, starts, ends, counts
    )
    return starts[:count].copy(), ends[:count].copy(), counts
