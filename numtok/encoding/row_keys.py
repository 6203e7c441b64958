"""Keys of the numbers of a data set, the same however its rows are divided: a sample is those with
the smallest keys.

A key is a hash of a number's row and of its place in it.
"""

import numpy as np
from numba import boolean, int32, types, uint8, uint64
from numpy.typing import NDArray

from numtok.encoding.texts import Spans, Texts
from numtok.kernels import hashed, inlined, kernel, reads, writes
from numtok.numerals.column import Numerals
from numtok.numerals.scan import is_digit_byte

KEPT = 1024  # distinct values of a slot, and numbers in its sample
LONGEST = 1024  # bytes of a number in the sample; longer ones are counted, but not tried out
ANYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)  # a limit that lets every hash in
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_LOOK_BACK = 8
_COMMA = ord(",")


@inlined
def hash_word(word):  # type: ignore[no-untyped-def]
    """A word for each word, one to one (the finaliser of SplitMix64)."""
    word = word + _GAMMA
    word = (word ^ (word >> _S30)) * _M1
    word = (word ^ (word >> _S27)) * _M2
    return word ^ (word >> _S31)


@inlined
def goes_on(data, end, before, start, stop):  # type: ignore[no-untyped-def]
    """Whether the number from ``start`` to ``stop`` is to the one from ``before`` to the byte ahead
    of it what decimals are in 12,5 and the last three digits in 1,234,567: digits behind a comma,
    with no further comma around as most items of 1,2,3,4 have."""
    if data[start - 1] != _COMMA:
        return False
    for i in range(start, stop):
        if not is_digit_byte(data[i]):
            return False
    if stop + 1 < end and data[stop] == _COMMA and is_digit_byte(data[stop + 1]):
        return False
    return stop - start == 3 or before == 0 or data[before - 1] != _COMMA


@inlined
def code_of(  # type: ignore[no-untyped-def]
    ids, id_begin, id_end, data, begin, end, starts, ends, digits, exponents, negative, first, last
):
    """A row is known by its id and, as ids may come again, its numbers and what is before each."""
    code = hash_word(np.uint64(end - begin))
    code = hashed(ids, id_begin, id_end, code)
    before = begin
    for n in range(first, last):
        start = np.int64(starts[n])
        code = hashed(data, max(before, start - _LOOK_BACK), start, code)
        written = np.uint64(np.int64(exponents[n])) << _S32
        written ^= digits[n] ^ np.uint64(negative[n])
        code = (code ^ written ^ np.uint64(start - begin)) * _M1
        code ^= code >> _S31
        before = np.int64(ends[n])
    return code


@inlined
def key_of(code, place):  # type: ignore[no-untyped-def]
    """A number is known by its row and its place there."""
    return hash_word(code + np.uint64(place))


@kernel(
    types.void(
        reads(uint8), reads(int32), reads(uint8), reads(int32), reads(int32), reads(int32),
        reads(int32), reads(uint64), reads(int32), reads(boolean), writes(uint64),
    )
)  # fmt: skip
def _keys(  # type: ignore[no-untyped-def]
    ids, id_bounds, data, bounds, counts, starts, ends, digits, exponents, negative, keys
):
    first = np.int64(0)
    for r in range(len(counts)):
        last = first + np.int64(counts[r])
        code = code_of(
            ids, id_bounds[r], id_bounds[r + 1], data, np.int64(bounds[r]), np.int64(bounds[r + 1]),
            starts, ends, digits, exponents, negative, first, last,
        )  # fmt: skip
        for n in range(first, last):
            keys[n] = key_of(code, n - first)
        first = last


def keys_of(ids: Texts, texts: Texts, spans: Spans, numerals: Numerals) -> NDArray[np.uint64]:
    """The hash of each number, uint64[n], by which samples are taken (``number_sample``); ``ids``
    tell the rows apart."""
    keys = np.empty(len(spans.starts), np.uint64)
    digits, exponents, negative, _ = numerals.significands
    _keys(
        ids.data, ids.rows, texts.data, texts.rows, spans.counts, spans.starts, spans.ends,
        digits, exponents, negative, keys,
    )  # fmt: skip
    return keys
