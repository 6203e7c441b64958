"""row_keys: hash keys for the numbers in a data set, used for sampling.

A key is a hash of a number's row and of the number's index in that row. It does not depend on how
the rows are divided into units of work. A sample consists of the numbers with the smallest keys.
"""

from typing import Any

import numpy as np

from numtok.arrays import UInt64s
from numtok.encoding.texts import Texts
from numtok.kernel_types import boolean, int32, reads, struct, uint8, uint64, void, writes
from numtok.kernels import hashed, inlined, kernel, read_only
from numtok.numerals.column import Numerals
from numtok.numerals.find import Offsets, Spans
from numtok.numerals.literals import Significands
from numtok.numerals.scan import is_digit_byte

KEPT = 1024  # distinct values of a field, and numbers in its sample
LONGEST = 1024  # bytes of a number in the sample; longer ones are counted, but not sampled
ANYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)  # a limit that admits every hash
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_LOOK_BACK = 8
_COMMA = ord(",")

TEXTS = struct(Texts, data=reads(uint8), rows=reads(int32))
SPANS = struct(Offsets, starts=reads(int32), ends=reads(int32), counts=reads(int32))
SIGNIFICANDS = struct(
    Significands,
    digits=reads(uint64),
    exponents=reads(int32),
    negative=reads(boolean),
    more=reads(boolean),
)


@inlined
def hash_word(word):  # type: ignore[no-untyped-def]
    """Return a hash of a 64-bit word. The mapping is bijective (the finalizer of SplitMix64)."""
    word = word + _GAMMA
    word = (word ^ (word >> _S30)) * _M1
    word = (word ^ (word >> _S27)) * _M2
    return word ^ (word >> _S31)


@inlined
def goes_on(data, end, before, start, stop):  # type: ignore[no-untyped-def]
    """Return whether the number ``data[start:stop]`` continues the number that begins at
    ``before``.

    A number continues another if it consists of digits after a comma, like the decimals in 12,5 or
    the last group in 1,234,567. With other commas nearby, as in 1,2,3,4, the numbers are treated as
    a list.
    """
    if data[start - 1] != _COMMA:
        return False
    for i in range(start, stop):
        if not is_digit_byte(data[i]):
            return False
    if stop + 1 < end and data[stop] == _COMMA and is_digit_byte(data[stop + 1]):
        return False
    return stop - start == 3 or before == 0 or data[before - 1] != _COMMA


@kernel(void(TEXTS, TEXTS, SPANS, SIGNIFICANDS, writes(uint64)))
def _codes(ids, texts, spans, significands, codes):  # type: ignore[no-untyped-def]
    """Hash each row by its id, its numbers, and the text before each number. The id is not enough,
    because ids may repeat."""
    first = np.int64(0)
    for row in range(len(codes)):
        last = first + np.int64(spans.counts[row])
        begin = np.int64(texts.rows[row])
        code = hash_word(np.uint64(texts.rows[row + 1] - begin))
        code = hashed(ids.data, ids.rows[row], ids.rows[row + 1], code)
        before = begin
        for n in range(first, last):
            start = np.int64(spans.starts[n])
            code = hashed(texts.data, max(before, start - _LOOK_BACK), start, code)
            written = np.uint64(np.int64(significands.exponents[n])) << _S32
            written ^= significands.digits[n] ^ np.uint64(significands.negative[n])
            code = (code ^ written ^ np.uint64(start - begin)) * _M1
            code ^= code >> _S31
            before = np.int64(spans.ends[n])
        codes[row] = code
        first = last


@kernel(void(reads(uint64), reads(int32), writes(uint64)))
def _keys(codes, counts, keys):  # type: ignore[no-untyped-def]
    n = 0
    for row in range(len(codes)):
        for index in range(counts[row]):
            keys[n] = hash_word(codes[row] + np.uint64(index))
            n += 1


def row_codes(ids: Texts, texts: Texts, spans: Spans, numerals: Numerals) -> UInt64s:
    """Return a hash of each row, uint64[rows]. It is computed from the row's id, its numbers, and
    the text before each number."""
    codes = np.empty(len(spans.counts), np.uint64)
    columns: tuple[Any, ...] = (ids, texts, spans.offsets, numerals.significands)
    _codes(*map(read_only, columns), codes)
    return codes


def number_keys(codes: UInt64s, spans: Spans) -> UInt64s:
    """Return a hash of each number, uint64[n], computed from the hash of its row and from the index
    of the number in that row.

    codes
        uint64[rows], the result of :func:`row_codes`.

    Samples consist of the numbers with the smallest keys (see
    :mod:`numtok.encoding.number_sample`).
    """
    keys = np.empty(len(spans.starts), np.uint64)
    _keys(codes, spans.counts, keys)
    return keys
