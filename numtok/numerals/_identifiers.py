"""Detects digits that are part of an identifier, a hash, a UUID or a number in another script.

The rule is stated in docs/reference/numbers.md, under "What looks like a number but is text".
"""

import numpy as np

from numtok.kernels import byte_at, inlined
from numtok.numerals._eight import digits_end

#: Zeros of all decimal digits of Unicode 14 except ASCII; nine digits follow each.
OTHER_ZEROS = np.array(
    [
        *(0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66),
        *(0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80),
        *(0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50),
        *(0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450),
        *(0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0),
        *(0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140),
        *(0x1E2F0, 0x1E950, 0x1FBF0),
    ],
    np.int64,
)

_LOWER = 0x20
_HYPHEN, _COLON, _T = ord("-"), ord(":"), ord("T")
_UUID = 36  # characters: groups of 8, 4, 4, 4 and 12 digits, with hyphens between them
_GROUPS = (0, 9, 14, 19, 24)  # starts of the groups of a UUID
_HASH = 8  # minimum number of characters: checksums, trial ids and first groups of UUIDs


@inlined
def _is_digit(c):  # type: ignore[no-untyped-def]
    return np.uint8(c - np.uint8(ord("0"))) < 10


@inlined
def _is_hex_letter(c):  # type: ignore[no-untyped-def]
    return np.uint8((c | _LOWER) - np.uint8(ord("a"))) < 6


@inlined
def _is_hex(c):  # type: ignore[no-untyped-def]
    return _is_digit(c) or _is_hex_letter(c)


@inlined
def _is_alphanumeric(c):  # type: ignore[no-untyped-def]
    return _is_digit(c) or np.uint8((c | _LOWER) - np.uint8(ord("a"))) < 26


@inlined
def other_digit_at(data, i, end):  # type: ignore[no-untyped-def]
    """Return whether the character at ``i`` is a decimal digit that is not ASCII."""
    if i >= end or byte_at(data, i) < 0xC0:
        return False
    lead = np.int64(byte_at(data, i))
    width = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if i + width > end:
        return False
    point = lead & (0x7F >> width)
    for k in range(1, width):
        point = (point << 6) | (np.int64(byte_at(data, i + k)) & 0x3F)
    nearest = np.searchsorted(OTHER_ZEROS, point, side="right") - 1
    return nearest >= 0 and point < OTHER_ZEROS[nearest] + 10


@inlined
def other_digit_before(data, begin, i):  # type: ignore[no-untyped-def]
    """Return whether the character that ends before ``i`` is a decimal digit that is not ASCII."""
    if i <= begin or byte_at(data, i - 1) < 0x80:
        return False
    first = i - 1
    while first > begin and byte_at(data, first) & 0xC0 == 0x80:
        first -= 1
    return other_digit_at(data, first, i)


@inlined
def uuid_end(data, begin, i, j, end):  # type: ignore[no-untyped-def]
    """Return the end of the UUID that contains the digits ``data[i:j]``; ``i`` if none."""
    near = i > begin and (byte_at(data, i - 1) == _HYPHEN or _is_hex_letter(byte_at(data, i - 1)))
    near |= j < end and (byte_at(data, j) == _HYPHEN or _is_hex_letter(byte_at(data, j)))
    if not near:
        return i
    group = i
    while group > begin and i - group < _UUID and _is_hex(byte_at(data, group - 1)):
        group -= 1
    for before in _GROUPS:
        first = group - before
        if first < begin or first + _UUID > end:
            continue
        if first > begin and _is_alphanumeric(byte_at(data, first - 1)):
            continue
        if first + _UUID < end and _is_alphanumeric(byte_at(data, first + _UUID)):
            continue
        matches = 0
        for k in range(_UUID):
            c = byte_at(data, first + k)
            hyphen = k == 8 or k == 13 or k == 18 or k == 23
            matches += (c == _HYPHEN) if hyphen else _is_hex(c)
        if matches == _UUID:
            return first + _UUID
    return i


@inlined
def hash_end(data, i, exponent, j, end):  # type: ignore[no-untyped-def]
    """Return the end of the hexadecimal identifier that begins with the number ``data[i:j]``; ``i``
    if none.

    ``exponent`` is the start of the number's exponent, or ``j`` if it has none. ``3f9e1a`` and
    ``5e3e2`` have digits after letters that cannot be an exponent; ``5381e182`` is too long for a
    number with an exponent but neither point nor sign.
    """
    k = j
    digits = 0
    while k < end and _is_hex(byte_at(data, k)):
        digits += _is_digit(byte_at(data, k))
        k += 1
    if digits > 0 and not (k < end and _is_alphanumeric(byte_at(data, k))):
        return k
    unsigned = j - exponent >= 3 and _is_digit(byte_at(data, exponent + 1))
    if unsigned and j - i >= _HASH and exponent == digits_end(data, i, end):
        return j
    return i


@inlined
def hour_at(data, i, j, end):  # type: ignore[no-untyped-def]
    """Return whether the digits ``data[i:j]``, which follow a letter, are the hour of
    ``T05:06``."""
    return (
        j == i + 2
        and byte_at(data, i - 1) == _T
        and j + 2 < end
        and byte_at(data, j) == _COLON
        and _is_digit(byte_at(data, j + 1))
        and _is_digit(byte_at(data, j + 2))
    )
