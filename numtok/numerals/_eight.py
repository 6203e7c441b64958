"""Eight digits at a time: long fractions are most of the bytes of scientific data.

The eight bytes are one little-endian word (as on x86-64 and ARM), the first
digit in its lowest byte; sums and products of the word act on all bytes at once.
"""

import numpy as np

from numtok.kernels import inlined, word_at

_U = np.uint64
_HIGH_HALVES, _SIXES = _U(0xF0F0F0F0F0F0F0F0), _U(0x0606060606060606)
_THREES, _LOW_HALVES = _U(0x3333333333333333), _U(0x0F0F0F0F0F0F0F0F)
_PAIRS, _QUARTETS = _U(0x00FF00FF00FF00FF), _U(0x0000FFFF0000FFFF)


@inlined
def eight_digits(data, i, end):  # type: ignore[no-untyped-def]
    """True if the eight bytes at ``i``, all before ``end``, are ASCII digits."""
    if i + 8 > end:
        return False
    word = word_at(data, i)
    # 0x30 to 0x39 have the upper half 3, and still have it when 6 is added.
    halves = (word & _HIGH_HALVES) | (((word + _SIXES) & _HIGH_HALVES) >> _U(4))
    return halves == _THREES


@inlined
def value_of_eight(data, i):  # type: ignore[no-untyped-def]
    """The number that the eight digits at ``i`` write: sums of two, then four, then eight."""
    word = word_at(data, i) & _LOW_HALVES
    word = (word * _U(10 * 2**8 + 1)) >> _U(8)
    word = ((word & _PAIRS) * _U(100 * 2**16 + 1)) >> _U(16)
    return ((word & _QUARTETS) * _U(10_000 * 2**32 + 1)) >> _U(32)
