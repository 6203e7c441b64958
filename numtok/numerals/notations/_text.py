"""Characters and words in UTF-8 bytes, for the kernels that rewrite numbers.

The *code* of a character is its bytes as one number, the first byte highest.
"""

from collections.abc import Iterable

import numpy as np

from numtok.arrays import UInt64s
from numtok.kernels import byte_at, helper
from numtok.numerals._identifiers import other_digit_at
from numtok.numerals.scan import is_digit_byte, letter_before

HIGH = 0x80  # bytes from here on are part of a character of several bytes
_LOWER = 0x20
_A, _Z, _UNDERSCORE = ord("a"), ord("z"), ord("_")
_EIGHT = np.uint64(8)


def code(word: str) -> int:
    """Return the bytes of a word of at most eight bytes as one number."""
    return int.from_bytes(word.encode(), "big")


def codes(words: Iterable[str]) -> UInt64s:
    """Return the codes of words in ascending order."""
    return np.array(sorted(map(code, words)), np.uint64)


#: Codes of spaces that do not break a line: blank, no-break space, thin and narrow space.
SPACES = codes(" \u00a0\u2009\u202f")


@helper
def code_at(data, i, end):  # type: ignore[no-untyped-def]
    """Return the code of the character at ``i``, and its number of bytes; (0, 0) at the end."""
    if i >= end:
        return np.uint64(0), np.int64(0)
    lead = byte_at(data, i)
    width = np.int64(1 if lead < HIGH else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)
    if i + width > end:
        return np.uint64(0), np.int64(0)
    bytes_of = np.uint64(lead)
    for k in range(1, width):
        bytes_of = (bytes_of << _EIGHT) | np.uint64(byte_at(data, i + k))
    return bytes_of, width


@helper
def index_in(sorted_codes, wanted):  # type: ignore[no-untyped-def]
    """Return the index of a code in a sorted array; -1 if it is absent."""
    # Compiles much faster than np.searchsorted.
    low, high = 0, len(sorted_codes)
    while low < high:
        middle = (low + high) >> 1
        if sorted_codes[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(sorted_codes) and sorted_codes[low] == wanted else -1


@helper
def width_of(sorted_codes, data, i, end):  # type: ignore[no-untyped-def]
    """Return the number of bytes of the character at ``i`` if its code is one of
    ``sorted_codes``, else 0."""
    own, width = code_at(data, i, end)
    return width if width > 0 and index_in(sorted_codes, own) >= 0 else np.int64(0)


@helper
def width_before(sorted_codes, data, begin, i):  # type: ignore[no-untyped-def]
    """Return the number of bytes of the character that ends before ``i`` if its code is one of
    ``sorted_codes``, else 0."""
    first = i - 1
    while first > begin and byte_at(data, first) & 0xC0 == 0x80:
        first -= 1
    return width_of(sorted_codes, data, first, i) if first >= begin else np.int64(0)


@helper
def is_ascii_letter(c):  # type: ignore[no-untyped-def]
    """Return whether a byte is a letter from A to Z or a to z."""
    lower = c | _LOWER
    return lower >= _A and lower <= _Z


@helper
def ends_word(data, i, end):  # type: ignore[no-untyped-def]
    """Return whether no letter, digit or underscore is at ``i``."""
    if i >= end:
        return True
    c = byte_at(data, i)
    if c < HIGH:
        return not (is_digit_byte(c) or c == _UNDERSCORE or is_ascii_letter(c))
    _, width = code_at(data, i, end)
    return not (letter_before(data, i, i + width) or other_digit_at(data, i, end))
