"""hamming: a number of [0, 1] as bits, few ones first. ``0.602`` -> ``1 1 0 1 0 0 0 1``."""

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import ClassVar

import numpy as np

from numtok.arrays import Ints
from numtok.encoding.grid import Columns, Units
from numtok.encoding.schemes._unit import UnitScheme


@dataclass(frozen=True)
class Hamming(UnitScheme):
    """Qin (2018), as in "Decoding-based Regression", Appendix A.3: robust to single wrong bits.

    The cells of nd in base 2, but cell ``j`` has the j-th of all words of ``length`` bits in the
    order of their number of ones, and of the number they are in binary where that is the same. For
    3 bits this is the paper's list: 000, 001, 010, 100, 011, 101, 110, 111. (The paper calls it
    the integers {0, ..., 2^3}; there are eight, and they end at 7.) So a flipped bit moves a number
    to a neighbouring number of ones, where in nd the first bit moves it by half the range.

    length
        Bits, 1 to 50.
    point
        ``edge``, ``centre`` or ``nearest``: where the cells lie and what they are read as
        (``encoding/schemes/_unit.py``).
    repeat
        How many times the bits are written; the majority is read.
    """

    revision: ClassVar[int] = 1
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
        rank = units.counts - before[ones]  # among the words with so many ones
        bits = []
        for place in range(self.length - 1, -1, -1):
            without = choose[place, ones]  # words whose ones all lie below this place
            bit = (rank >= without).astype(np.int64)
            rank, ones = rank - bit * without, ones - bit
            bits.append(bit)
        return bits

    def read(self, indices: Ints) -> Units:
        choose = _choose(self.length)
        ones, rank = np.zeros((2, len(indices)), np.int64)
        for place in range(self.length):
            bit = indices[:, self.length - 1 - place]
            ones = ones + bit
            rank = rank + bit * choose[place, ones]
        return self.cells_as_units(rank + _words_before(self.length)[ones])


@lru_cache
def _choose(length: int) -> Ints:
    """int64[length + 1, length + 1]: binomial coefficients, n by k."""
    return np.array([[comb(n, k) for k in range(length + 1)] for n in range(length + 1)])


@lru_cache
def _words_before(length: int) -> Ints:
    """int64[length + 1]: how many words have fewer ones."""
    before: Ints = np.cumsum(_choose(length)[length]) - _choose(length)[length]
    return before
