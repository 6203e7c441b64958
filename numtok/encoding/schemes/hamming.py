"""hamming: a number in [0, 1] as a word of bits, where small numbers have few ones.

``0.602`` is written as ``1 1 0 1 0 0 0 1``.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import ClassVar

import numpy as np

from numtok.arrays import Ints
from numtok.encoding.grid import Columns, Units
from numtok.encoding.schemes._unit import UnitScheme
from numtok.encoding.schemes.base import SchemeDefaults


@dataclass(frozen=True)
class Hamming(UnitScheme):
    """Hamming code from Qin (2018), as in "Decoding-based Regression", Appendix A.3. It is robust
    to single-bit errors.

    The interval [0, 1] is divided into the same cells as in ``nd,base=2``. All words of ``length``
    bits are sorted by their number of ones, then by their binary value, and cell ``j`` is written
    as the j-th word. For 3 bits this is the paper's list: 000, 001, 010, 100, 011, 101, 110, 111.
    (The paper describes it as the integers {0, ..., 2^3}, but the eight words end at 7.) A flipped
    bit changes the number of ones by one; in ``nd``, flipping the first bit moves the number by
    half the range.

    length
        Number of bits, 1 to 50.
    point
        ``edge``, ``centre`` or ``nearest``: position of the cells and how they are decoded
        (``encoding/schemes/_unit.py``).
    repeat
        Number of copies of the bits; decoding takes the majority.
    """

    revision: ClassVar[int] = 1
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(normalizer="unit", digits=False)
    source: ClassVar[str] = "Decoding-based Regression, A.3"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("0", "0 0 0 0 0 0 0 0", "0.001953125"),  # 1/512
        ("0.004", "0 0 0 0 0 0 0 1", "0.005859375"),  # cell 1, 3/512
        ("0.032", "1 0 0 0 0 0 0 0", "0.033203125"),  # cell 8, the last with a single one
        ("0.0352", "0 0 0 0 0 0 1 1", "0.037109375"),  # cell 9, the first with two
        ("0.602", "1 1 0 1 0 0 0 1", "0.603515625"),  # cell 154: 93 have up to three ones
        ("0.998", "1 1 1 1 1 1 1 1", "0.998046875"),
        ("1", "1 1 1 1 1 1 1 1", "0.998046875"),
        ("-0.5", " ".join(["-OVERFLOW"] * 8), "overflow"),
    )
    digest: ClassVar[str] = "432251f91f5240f7"

    length: int = 8
    point: str = "centre"
    repeat: int = 1

    @property
    def digits(self) -> int:
        return 2

    def write(self, units: Units) -> Columns:
        choose, before = _choose(self.length), _words_before(self.length)
        ones = np.searchsorted(before, units.counts, "right") - 1
        rank = units.counts - before[ones]  # among the words with this many ones
        bits = []
        for position in range(self.length - 1, -1, -1):
            without = choose[position, ones]  # words whose ones all lie below this bit
            bit = (rank >= without).astype(np.int64)
            rank, ones = rank - bit * without, ones - bit
            bits.append(bit)
        return bits

    def read(self, indices: Ints) -> Units:
        choose = _choose(self.length)
        ones, rank = np.zeros((2, len(indices)), np.int64)
        for position in range(self.length):
            bit = indices[:, self.length - 1 - position]
            ones = ones + bit
            rank = rank + bit * choose[position, ones]
        return self.cells_as_units(rank + _words_before(self.length)[ones])


@lru_cache
def _choose(length: int) -> Ints:
    """Return the binomial coefficients, n by k: int64[length + 1, length + 1]."""
    return np.array([[comb(n, k) for k in range(length + 1)] for n in range(length + 1)])


@lru_cache
def _words_before(length: int) -> Ints:
    """Return the number of words with fewer ones, by number of ones: int64[length + 1]."""
    before: Ints = np.cumsum(_choose(length)[length]) - _choose(length)[length]
    return before
