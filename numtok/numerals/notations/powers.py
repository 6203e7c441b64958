"""Powers of ten, as in ``10⁵`` and ``4×10^5``, and suffixes that stand for one, as in ``2.5k``."""

import numpy as np

from numtok.kernels import byte_at, helper
from numtok.numerals._eight import digits_end
from numtok.numerals.notations._text import code, code_at, codes, ends_word, index_in, width_of
from numtok.numerals.scan import is_digit_at
from numtok.numerals.suffixes import SUFFIXES

_WIDTHS = np.array([len(word) for word in SUFFIXES], np.int64)
_BYTES = np.array([[*word.encode().ljust(10, b"\0")] for word in SUFFIXES], np.uint8)
_POWERS = np.array([*SUFFIXES.values()], np.int64)
_TIMES = codes("×xX*·⋅")
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SUPERSCRIPT_CODES = codes(_SUPERSCRIPTS)
_SUPERSCRIPT_VALUES = np.array(
    [_SUPERSCRIPTS.index(digit) for digit in sorted(_SUPERSCRIPTS, key=code)], np.int64
)
_PLUS_CODE, _MINUS_CODE = np.uint64(code("⁺")), np.uint64(code("⁻"))
_MINUS_SIGN = np.uint64(code("\u2212"))
_LONGEST = 3  # digits of an exponent
_ZERO, _ONE, _POINT, _BLANK = ord("0"), ord("1"), ord("."), ord(" ")
_CARET, _MINUS, _PLUS = ord("^"), np.uint64(ord("-")), np.uint64(ord("+"))


@helper
def power_at(data, i, end):  # type: ignore[no-untyped-def]
    """Return (exponent, end) of the power of ten at ``i``, ``10^5`` or ``10⁵``; (0, i) if
    none."""
    none = np.int64(0), i
    if i + 2 >= end or byte_at(data, i) != _ONE or byte_at(data, i + 1) != _ZERO:
        return none
    sign, value, k = np.int64(1), np.int64(0), i + 2
    if byte_at(data, k) == _CARET:
        own, width = code_at(data, k + 1, end)
        if own in (_MINUS, _PLUS, _MINUS_SIGN):
            sign = np.int64(1 if own == _PLUS else -1)
            k += width
        last = digits_end(data, k + 1, end)
        for digit in range(k + 1, min(last, k + 1 + _LONGEST)):
            value = value * 10 + np.int64(byte_at(data, digit) - _ZERO)
        goes_on = last < end and byte_at(data, last) == _POINT and is_digit_at(data, last + 1, end)
        return (sign * value, last) if 0 < last - k - 1 <= _LONGEST and not goes_on else none
    own, width = code_at(data, k, end)
    if own in (_PLUS_CODE, _MINUS_CODE):
        sign = np.int64(1 if own == _PLUS_CODE else -1)
        k += width
    count = 0
    while True:
        own, width = code_at(data, k, end)
        at = index_in(_SUPERSCRIPT_CODES, own)
        if at < 0:
            break
        value = value * 10 + _SUPERSCRIPT_VALUES[at]
        count += 1
        k += width
        if count > _LONGEST:
            return none
    return (sign * value, k) if count > 0 and not is_digit_at(data, k, end) else none


@helper
def times_power_at(data, i, end):  # type: ignore[no-untyped-def]
    """Return (exponent, end) of the multiplication by a power of ten at ``i``, as in ``× 10^5``;
    (0, i) if none."""
    k = i + (i < end and byte_at(data, i) == _BLANK)
    width = width_of(_TIMES, data, k, end)
    if width == 0:
        return np.int64(0), i
    k += width
    k += k < end and byte_at(data, k) == _BLANK
    exponent, last = power_at(data, k, end)
    return (exponent, last) if last > k else (np.int64(0), i)


@helper
def suffix_at(data, i, end):  # type: ignore[no-untyped-def]
    """Return (power of ten, end) of the suffix at ``i``; (0, i) if none."""
    for n in range(len(_WIDTHS)):
        width = _WIDTHS[n]
        same = i + width <= end
        for k in range(width):
            same = same and byte_at(data, i + k) == _BYTES[n, k]
        if same and ends_word(data, i + width, end):
            return _POWERS[n], i + width
    return np.int64(0), i
