"""Reads eight digits at a time, since long fractions are most of the bytes of scientific data.

Eight bytes form one little-endian word (as on x86-64 and ARM) with the first digit
in the lowest byte. Sums and products of words act on all bytes at once.
"""

import numpy as np

from numtok.kernels import byte_at, inlined, trailing_zeros, word_at

_U = np.uint64
_HIGH_BITS, _LOW_BITS = _U(0x8080808080808080), _U(0x7F7F7F7F7F7F7F7F)
_ZEROS, _TO_HIGH_BIT = _U(0x3030303030303030), _U(0x7676767676767676)
_LOW_HALVES = _U(0x0F0F0F0F0F0F0F0F)
_PAIRS, _QUARTETS = _U(0x00FF00FF00FF00FF), _U(0x0000FFFF0000FFFF)
_THREE, _WHOLE = _U(3), _U(64)


@inlined
def _other_bytes(word):  # type: ignore[no-untyped-def]
    """Return the high bit of each byte that is not an ASCII digit."""
    # After XOR with 0x30, digits are 0 to 9; adding 0x76 sets the high bit of values above 9.
    x = word ^ _ZEROS
    return (((x & _LOW_BITS) + _TO_HIGH_BIT) | x) & _HIGH_BITS


@inlined
def digits_end(data, i, end):  # type: ignore[no-untyped-def]
    """Return the end of the digits that begin at ``i``, at most ``end``."""
    while i + 8 <= len(data) and i < end:
        other = _other_bytes(word_at(data, i))
        if other != 0:
            return min(i + np.int64(trailing_zeros(other) >> _THREE), end)
        i += 8
    while i < end and np.uint8(byte_at(data, i) - np.uint8(ord("0"))) < 10:
        i += 1
    return min(i, end)


@inlined
def next_digit(data, i, end):  # type: ignore[no-untyped-def]
    """Return the offset of the first digit at or after ``i``; ``end`` if none comes before it."""
    while i + 8 <= len(data) and i < end:
        digits = ~_other_bytes(word_at(data, i)) & _HIGH_BITS
        if digits != 0:
            return min(i + np.int64(trailing_zeros(digits) >> _THREE), end)
        i += 8
    while i < end and np.uint8(byte_at(data, i) - np.uint8(ord("0"))) >= 10:
        i += 1
    return min(i, end)


@inlined
def next_high(data, i, end):  # type: ignore[no-untyped-def]
    """Return the offset of the first byte at or after ``i`` that is not ASCII; ``end`` if none
    comes before it."""
    while i + 8 <= len(data) and i < end:
        high = word_at(data, i) & _HIGH_BITS
        if high != 0:
            return min(i + np.int64(trailing_zeros(high) >> _THREE), end)
        i += 8
    while i < end and byte_at(data, i) < 0x80:
        i += 1
    return min(i, end)


@inlined
def next_digit_or_high(data, i, end):  # type: ignore[no-untyped-def]
    """Return the offset of the first byte at or after ``i`` that is a digit or not ASCII;
    ``end`` if none comes before it."""
    while i + 8 <= len(data) and i < end:
        word = word_at(data, i)
        found = (~_other_bytes(word) | word) & _HIGH_BITS
        if found != 0:
            return min(i + np.int64(trailing_zeros(found) >> _THREE), end)
        i += 8
    while i < end and byte_at(data, i) < 0x80 and np.uint8(byte_at(data, i) - np.uint8(48)) >= 10:
        i += 1
    return min(i, end)


@inlined
def eight_digits(data, i, end):  # type: ignore[no-untyped-def]
    """Return whether the eight bytes at ``i``, all before ``end``, are ASCII digits."""
    return i + 8 <= end and _other_bytes(word_at(data, i)) == 0


@inlined
def value_of_digits(data, i, count):  # type: ignore[no-untyped-def]
    """Return the value of the ``count`` (1 to 8) digits at ``i``; eight bytes must be readable.

    Combines two digits, then four, then all. Fewer than eight digits are shifted to the end of the
    word, after zeros.
    """
    word = (word_at(data, i) & _LOW_HALVES) << (_WHOLE - (_U(count) << _THREE))
    word = (word * _U(10 * 2**8 + 1)) >> _U(8)
    word = ((word & _PAIRS) * _U(100 * 2**16 + 1)) >> _U(16)
    return ((word & _QUARTETS) * _U(10_000 * 2**32 + 1)) >> _U(32)
