"""Fractions: ``1/2``, ``1 1/2``, ``½`` and ``1½``, and their values as decimal numbers."""

import numpy as np

from numtok.kernels import byte_at, helper
from numtok.numerals._eight import digits_end
from numtok.numerals._identifiers import other_digit_before
from numtok.numerals.notations._text import HIGH, code, code_at, codes, ends_word, index_in
from numtok.numerals.scan import is_digit_at, is_digit_byte, letter_before

#: Numerator and denominator of each vulgar fraction.
VULGAR = {
    **{"¼": (1, 4), "½": (1, 2), "¾": (3, 4), "⅐": (1, 7), "⅑": (1, 9), "⅒": (1, 10)},
    **{"⅓": (1, 3), "⅔": (2, 3), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5), "⅘": (4, 5)},
    **{"⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8), "↉": (0, 3)},
}
#: Bytes that writing a fraction takes per byte that it had, at most: ⅓ becomes 25 digits and three
#: other characters.
GROWTH = 10

_CODES = codes(VULGAR)
_VALUES = np.array([VULGAR[word] for word in sorted(VULGAR, key=code)], np.int64)
_LONGEST = 7  # digits of each part, so that the value of the whole is exact
_DIGITS = 25  # significant digits that are written, enough to decide the nearest float64
_ZERO, _POINT, _SLASH, _BLANK = ord("0"), ord("."), ord("/"), ord(" ")


@helper
def vulgar_at(data, i, end):  # type: ignore[no-untyped-def]
    """Return (numerator, denominator, bytes) of the vulgar fraction at ``i``; (0, 0, 0) if
    none."""
    none = np.int64(0), np.int64(0), np.int64(0)
    if i >= end or byte_at(data, i) < HIGH:
        return none
    own, width = code_at(data, i, end)
    at = index_in(_CODES, own)
    return (_VALUES[at, 0], _VALUES[at, 1], width) if at >= 0 else none


@helper
def _may_end(data, i, end):  # type: ignore[no-untyped-def]
    """Return whether a fraction may end at ``i``: not before a word, another ``/`` or a decimal
    point."""
    if i < end and byte_at(data, i) == _SLASH:
        return False
    if i < end and byte_at(data, i) == _POINT and is_digit_at(data, i + 1, end):
        return False
    return ends_word(data, i, end)


@helper
def stands_alone(data, begin, i, stop, end):  # type: ignore[no-untyped-def]
    """Return whether the vulgar fraction ``data[i:stop]`` is a number of its own."""
    if not _may_end(data, stop, end):
        return False
    if letter_before(data, begin, i) or other_digit_before(data, begin, i):
        return False
    last = byte_at(data, i - 1) if i > begin else np.uint8(0)
    return not (last in (_SLASH, _POINT) or is_digit_byte(last))


@helper
def _value(data, i, j):  # type: ignore[no-untyped-def]
    """Return the value of the digits in ``data[i:j]``; -1 if there are too many."""
    value, digits = np.int64(0), 0
    for k in range(i, j):
        if is_digit_byte(byte_at(data, k)):
            value = value * 10 + np.int64(byte_at(data, k) - _ZERO)
            digits += 1
            if digits > _LONGEST:
                return np.int64(-1)
    return value


@helper
def ratio_at(data, i, j, end):  # type: ignore[no-untyped-def]
    """Return (numerator, denominator, end) of the fraction that begins with the integer
    ``data[i:j]``, which may have groups of digits; (0, 0, j) if none."""
    none = np.int64(0), np.int64(0), j
    whole = _value(data, i, j)
    if whole < 0:
        return none
    if j < end and byte_at(data, j) == _SLASH:  # 1/2
        if digits_end(data, i, end) < j:  # 1,234/5
            return none
        k = digits_end(data, j + 1, end)
        below = _value(data, j + 1, k)
        return (whole, below, k) if below > 0 and _may_end(data, k, end) else none
    gap = np.int64(j < end and byte_at(data, j) == _BLANK)
    above, below, width = vulgar_at(data, j + gap, end)
    if width > 0:  # 1½, 1 ½
        k = j + gap + width
        return (whole * below + above, below, k) if _may_end(data, k, end) else none
    slash = digits_end(data, j + 1, end)
    is_part = gap > 0 and 0 < slash - j - 1 <= _LONGEST
    if not is_part or slash >= end or byte_at(data, slash) != _SLASH:
        return none
    k = digits_end(data, slash + 1, end)  # 1 1/2
    above, below = _value(data, j + 1, slash), _value(data, slash + 1, k)
    return (whole * below + above, below, k) if above < below and _may_end(data, k, end) else none


@helper
def write_integer(out, o, value):  # type: ignore[no-untyped-def]
    """Write a natural number at ``o``, and return its end."""
    unit = np.int64(1)
    while value // unit >= 10:
        unit *= 10
    while unit > 0:
        out[o] = _ZERO + value // unit % 10
        unit //= 10
        o += 1
    return o


@helper
def write_ratio(out, o, above, below):  # type: ignore[no-untyped-def]
    """Write the value of a fraction at ``o`` as a decimal number, and return its end."""
    whole = above // below
    rest = above - whole * below
    first = o
    o = write_integer(out, o, whole)
    written = o - first if whole > 0 else 0
    if rest > 0:
        out[o] = _POINT
        o += 1
    while rest > 0 and written < _DIGITS:
        rest *= 10
        digit = rest // below
        rest -= digit * below
        out[o] = _ZERO + digit
        o += 1
        written += written > 0 or digit > 0
    return o
