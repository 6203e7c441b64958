"""Groups of digits with other separators than a comma: ``1'234``, ``1 234``, ``1_234``,
``12,34,567``."""

import numpy as np

from numtok.kernels import byte_at, helper
from numtok.numerals._eight import digits_end
from numtok.numerals.notations._text import SPACES, codes, width_before, width_of
from numtok.numerals.scan import is_digit_byte

#: Kinds of groups. They are powers of two, so that a policy is a sum of kinds.
APOSTROPHE, SPACE, UNDERSCORE, INDIAN = KINDS = (1, 2, 4, 8)

_APOSTROPHES = codes("'’")
_ZERO, _COMMA, _LINE = ord("0"), ord(","), ord("_")


@helper
def _separator_at(data, i, end, kind):  # type: ignore[no-untyped-def]
    """Return the number of bytes of the separator at ``i``; 0 if none."""
    if i >= end:
        return np.int64(0)
    if kind == APOSTROPHE:
        return width_of(_APOSTROPHES, data, i, end)
    if kind == SPACE:
        return width_of(SPACES, data, i, end)
    return np.int64(byte_at(data, i) == (_LINE if kind == UNDERSCORE else _COMMA))


@helper
def _separator_before(data, begin, i, kind):  # type: ignore[no-untyped-def]
    """Return the number of bytes of the separator that ends before ``i``; 0 if none."""
    if i <= begin:
        return np.int64(0)
    if kind == APOSTROPHE:
        return width_before(_APOSTROPHES, data, begin, i)
    if kind == SPACE:
        return width_before(SPACES, data, begin, i)
    return np.int64(byte_at(data, i - 1) == (_LINE if kind == UNDERSCORE else _COMMA))


@helper
def groups_end(data, begin, i, j, end, kind):  # type: ignore[no-untyped-def]
    """Return the end of the digits ``data[i:j]`` and the groups after them; ``j`` if there are
    none.

    A chain of digits and separators is read as groups completely or not at all.
    """
    indian = kind == INDIAN
    if j - i > (2 if indian else 3) or byte_at(data, i) == _ZERO:
        return j
    before = _separator_before(data, begin, i, kind)
    if before > 0 and i - before > begin and is_digit_byte(byte_at(data, i - before - 1)):
        return j  # not the first group of its chain
    k = j
    last = 0  # digits of the last group
    while True:
        width = _separator_at(data, k, end, kind)
        size = digits_end(data, k + width, end) - k - width if width > 0 else 0
        if size == 0:
            return k if last == 3 else j
        if (last == 3 and indian) or (size != 3 and not (indian and size == 2)):
            return j
        k += width + size
        last = size
