"""Negative numbers in brackets, as in ``(5.00)``, and with the minus at the end, as in ``5-``."""

import numpy as np

from numtok.kernels import byte_at, helper
from numtok.numerals.notations._text import SPACES, code, code_at, codes, width_before, width_of
from numtok.numerals.scan import operand_before

_MINUS_SIGN = np.uint64(code("\u2212"))
_SIGNS = codes("+-\u2212")
_CURRENCIES = codes("$€£¥₹")
_CLOSERS = np.isin(np.arange(256), [*b" \t\r\n.,;:)]}\"'|"])
_MINUS, _OPEN, _BLANK = ord("-"), ord("("), ord(" ")


@helper
def bracket_before(data, begin, i):  # type: ignore[no-untyped-def]
    """Return the offset of the opening bracket before ``i``, with or without a currency sign behind
    it; -1 if none, or if the bracket belongs to a call such as ``f(2)``."""
    k = i
    blank = k > begin and byte_at(data, k - 1) == _BLANK
    width = width_before(_CURRENCIES, data, begin, k - blank)
    if width > 0:
        k -= blank + width
    opens = k > begin and byte_at(data, k - 1) == _OPEN and not operand_before(data, begin, k - 1)
    return k - 1 if opens else np.int64(-1)


@helper
def minus_after(data, begin, start, stop, end):  # type: ignore[no-untyped-def]
    """Return the number of bytes of the minus that ends the number ``data[start:stop]``; 0 if
    none, or if the number already has a sign."""
    own, width = code_at(data, stop, end)
    if own != _MINUS and own != _MINUS_SIGN:
        return np.int64(0)
    after = stop + width
    is_closed = after == end or _CLOSERS[byte_at(data, after)]
    if not is_closed and width_of(SPACES, data, after, end) == 0:
        return np.int64(0)
    signed = width_before(_SIGNS, data, begin, start) > 0 or operand_before(data, begin, start)
    return np.int64(0) if signed else width
