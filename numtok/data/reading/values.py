"""Compiled functions that read JSON values from a block of lines as columns.

A value is specified by its bounds in the block (``lines.find_lines``). ``msgspec`` checks the
syntax of every line. The functions only read the common forms of each field. They return None for
other forms, which are read more slowly, row by row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.kernel_types import boolean, int32, int64, reads, uint8, void, writes
from numtok.kernels import (
    HASH_START,
    byte_at,
    copy_bytes,
    has_byte,
    hashed,
    inlined,
    kernel,
    repeat,
    word_at,
)

_BACKSLASH, _MINUS, _ZERO = ord("\\"), ord("-"), ord("0")
_SPACE, _U = ord(" "), ord("u")
_BACKSLASHES = repeat("\\")
_MOST_DIGITS = 18  # any integer of this many digits fits into an int64

# Characters of one-letter escapes; 0 for invalid ones.
_ESCAPES = np.zeros(256, np.uint8)
_ESCAPES[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
_HEX = np.full(256, 255, np.uint8)
_HEX[list(b"0123456789abcdef")] = range(16)
_HEX[list(b"ABCDEF")] = range(10, 16)


class Values(NamedTuple):
    """``n`` JSON values in a block of bytes: value k is ``data[starts[k]:ends[k]]``."""

    data: NDArray[np.uint8]  # [bytes]
    starts: NDArray[np.int32]  # [n]
    ends: NDArray[np.int32]  # [n]

    def first_bytes(self) -> NDArray[np.uint8]:
        """Return the first byte of each value (uint8[n]), which indicates the type of the value."""
        return self.data[self.starts]

    def take(self, keep: NDArray[np.integer] | NDArray[np.bool_]) -> "Values":
        """Return the values at indices (integers [k]) or selected by a mask (bool[n])."""
        return Values(self.data, self.starts[keep], self.ends[keep])

    def at(self, index: int) -> bytes:
        """Return the bytes of the value at an index."""
        return self.data[self.starts[index] : self.ends[index]].tobytes()


# --- strings ------------------------------------------------------------------------------------


@inlined
def _code_unit(data, i, end):  # type: ignore[no-untyped-def]
    """Value of the four hexadecimal digits at ``i``; -1 if they are invalid."""
    if i + 4 > end:
        return -1
    unit = np.int64(0)
    for k in range(4):
        digit = _HEX[byte_at(data, i + k)]
        if digit > 15:
            return -1
        unit = unit * 16 + np.int64(digit)
    return unit


@inlined
def _put_character(out, o, code):  # type: ignore[no-untyped-def]
    """Write a code point as UTF-8; return the offset after it."""
    if code < 0x80:
        out[o] = code
        return o + 1
    if code < 0x800:
        out[o] = 0xC0 | (code >> 6)
    else:
        if code < 0x10000:
            out[o] = 0xE0 | (code >> 12)
        else:
            out[o] = 0xF0 | (code >> 18)
            o += 1
            out[o] = 0x80 | ((code >> 12) & 0x3F)
        o += 1
        out[o] = 0x80 | ((code >> 6) & 0x3F)
    out[o + 1] = 0x80 | (code & 0x3F)
    return o + 2


@kernel(boolean(reads(uint8), reads(int32), reads(int32), writes(uint8), writes(int32)))
def _unquote(data, starts, ends, out, bounds):  # type: ignore[no-untyped-def]
    """Concatenate strings without their quotes and escapes."""
    o = np.int64(0)
    bounds[0] = 0
    for n in range(len(starts)):
        i, end = np.int64(starts[n]) + 1, np.int64(ends[n]) - 1
        while i < end:
            plain = i
            while plain + 8 <= end and has_byte(word_at(data, plain), _BACKSLASHES) == 0:
                plain += 8
            while plain < end and byte_at(data, plain) != _BACKSLASH:
                plain += 1
            copy_bytes(out, o, data, i, plain - i)
            o += plain - i
            i = plain
            if i == end:
                break
            if i + 1 == end:
                return False
            letter = byte_at(data, i + 1)
            i += 2
            if letter != _U:
                out[o] = _ESCAPES[letter]
                o += 1
                if _ESCAPES[letter] == 0:
                    return False
                continue
            code = _code_unit(data, i, end)
            i += 4
            if 0xD800 <= code < 0xDC00:  # the first half of a pair
                low = -1
                if i + 2 <= end and byte_at(data, i) == _BACKSLASH and byte_at(data, i + 1) == _U:
                    low = _code_unit(data, i + 2, end)
                if not 0xDC00 <= low < 0xE000:
                    return False
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                i += 6
            elif code < 0 or 0xDC00 <= code < 0xE000:
                return False
            o = _put_character(out, o, code)
        bounds[n + 1] = o
    return True


def unquoted(values: Values) -> tuple[NDArray[np.uint8], NDArray[np.int32]] | None:
    """Decode JSON strings: remove their quotes and resolve their escapes.

    Returns the decoded bytes, in which string k extends from ``bounds[k]`` to ``bounds[k + 1]``,
    and the bounds int32[n + 1]. The bytes are UTF-8 if the block is UTF-8. Returns None if a string
    has an invalid escape.
    """
    size = int((values.ends - values.starts).sum(dtype=np.int64))
    data, bounds = np.empty(size, np.uint8), np.empty(len(values.starts) + 1, np.int32)
    return (data[: bounds[-1]], bounds) if _unquote(*values, data, bounds) else None


# --- integers -----------------------------------------------------------------------------------


@inlined
def integer(data, i, end):  # type: ignore[no-untyped-def]
    """Return the integer at offset ``i`` of ``data``, and the offset after the integer.

    The returned offset is ``i`` if no integer of at most 18 digits is found.
    """
    begin = i
    negative = i < end and byte_at(data, i) == _MINUS
    i += negative
    first = i
    value = np.int64(0)
    while i < end and np.uint8(byte_at(data, i) - np.uint8(_ZERO)) < 10:
        value = value * 10 + np.int64(byte_at(data, i) - np.uint8(_ZERO))
        i += 1
    if not 0 < i - first <= _MOST_DIGITS:
        return np.int64(0), begin
    return -value if negative else value, i


@kernel(boolean(reads(uint8), reads(int32), reads(int32), writes(int64)))
def _read_integers(data, starts, ends, values):  # type: ignore[no-untyped-def]
    for n in range(len(starts)):
        end = np.int64(ends[n])
        values[n], after_integer = integer(data, np.int64(starts[n]), end)
        if after_integer != end:
            return False
    return True


def integers(values: Values) -> NDArray[np.int64] | None:
    """Parse integers of at most 18 digits to int64[n]. Returns None if a value is anything else."""
    numbers = np.empty(len(values.starts), np.int64)
    return numbers if _read_integers(*values, numbers) else None


# --- objects ------------------------------------------------------------------------------------


@inlined
def after_space(data, i, end):  # type: ignore[no-untyped-def]
    """Return the offset of the first byte, at ``i`` or later, that is not white space."""
    while i < end and byte_at(data, i) <= _SPACE:
        i += 1
    return i


@inlined
def after(data, i, end, character):  # type: ignore[no-untyped-def]
    """Skip ``character`` at ``i`` and the white space around it.

    Returns the offset after the white space, or -1 if ``character`` does not come next.
    """
    i = after_space(data, i, end)
    if i >= end or byte_at(data, i) != character:
        return -1
    return after_space(data, i + 1, end)


@inlined
def string_end(data, i, end):  # type: ignore[no-untyped-def]
    """Return the offset of the quote that closes the string at ``i``, or ``end`` if it is missing.

    The string may have single or double quotes.
    """
    quote = byte_at(data, i)
    i += 1
    while i < end and byte_at(data, i) != quote:
        i += 2 if byte_at(data, i) == _BACKSLASH else 1
    return min(i, end)


# --- values that repeat -------------------------------------------------------------------------


@kernel(
    int64(reads(uint8), reads(int32), reads(int32), writes(int32), writes(int32), writes(int32))
)
def _number_them(data, starts, ends, slots, codes, examples):  # type: ignore[no-untyped-def]
    """Number distinct values with a hash table with open addressing.

    An entry of the table contains 1 + the number of a distinct value, or 0.
    """
    mask = np.uint64(len(slots) - 1)
    distinct = 0
    for n in range(len(starts)):
        begin, length = np.int64(starts[n]), np.int64(ends[n]) - np.int64(starts[n])
        code = hashed(data, begin, begin + length, HASH_START)
        slot = (code ^ (code >> np.uint64(32))) & mask
        while True:
            index = slots[slot] - 1
            if index < 0:
                examples[distinct] = n
                distinct += 1
                slots[slot] = distinct
                codes[n] = distinct - 1
                break
            example = examples[index]
            other = np.int64(starts[example])
            same = np.int64(ends[example]) - other == length
            for k in range(length):
                if not same:
                    break
                same = byte_at(data, begin + k) == byte_at(data, other + k)
            if same:
                codes[n] = index
                break
            slot = (slot + np.uint64(1)) & mask
    return distinct


def distinct(values: Values) -> tuple[NDArray[np.int32], list[bytes]]:
    """Return the code int32[n] of each value, and the distinct values.

    A code is an index into the distinct values, which are in order of first appearance.
    """
    count = len(values.starts)
    slots = np.zeros(1 << (2 * count + 1).bit_length(), np.int32)
    codes, examples = np.empty((2, count), np.int32)
    count_distinct = _number_them(*values, slots, codes, examples)
    return codes, [values.at(index) for index in examples[:count_distinct].tolist()]


# --- positions in text --------------------------------------------------------------------------


@kernel(void(reads(uint8), reads(int32), reads(int32), reads(int64), writes(int32)))
def _find_bytes(data, rows, owners, positions, offsets):  # type: ignore[no-untyped-def]
    owner = -1
    i = np.int64(0)
    passed = np.int64(0)  # code points of the row before i
    for n in range(len(owners)):
        end = np.int64(rows[owners[n] + 1])
        if owners[n] != owner or positions[n] < passed:
            owner = owners[n]
            i = np.int64(rows[owner])
            passed = np.int64(0)
        while passed < positions[n] and i < end:
            i += 1
            while i < end and byte_at(data, i) & 0xC0 == 0x80:
                i += 1
            passed += 1
        offsets[n] = i if passed == positions[n] else -1


def byte_places(
    data: NDArray[np.uint8],
    rows: NDArray[np.int32],
    owners: NDArray[np.int32],
    positions: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Convert ``k`` positions in texts, in code points, to byte offsets into ``data`` (int32[k]).

    data, rows
        Text r is ``data[rows[r]:rows[r + 1]]``, in UTF-8.
    owners, positions
        Index of the text of each position, and the number of code points before the position. The
        end of a text is a valid position. The offset of a position outside its text is -1.
    """
    offsets = np.empty(len(owners), np.int32)
    _find_bytes(data, rows, owners, positions, offsets)
    return offsets
