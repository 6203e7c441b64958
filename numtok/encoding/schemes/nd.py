"""nd: a number in [0, 1] as its first digits after the decimal point. ``0.602`` -> ``6 0 2 0``."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Ints
from numtok.encoding.grid import Columns, Units
from numtok.encoding.schemes._radix import digits_of, number_of
from numtok.encoding.schemes._unit import UnitScheme
from numtok.encoding.schemes.base import Bounds


@dataclass(frozen=True)
class ND(UnitScheme):
    """Normalized decoder from "Decoding-based Regression", Section 3.2: ``base^length`` cells of
    equal width, written in base-``base`` digits.

    The first k digits represent a wider cell, so a model predicts a histogram at every resolution
    (Section 3.4). By default, the range of the numbers in the train split is scaled to [0, 1];
    values outside this range overflow.

    base
        Base of the digits, 2 to 36 (2, 4 or 8 in the paper).
    length
        Number of digits (4, 6 or 8 in the paper).
    point
        ``edge``, ``centre`` or ``nearest``: position of the cells and how they are decoded
        (``encoding/schemes/_unit.py``).
    repeat
        Number of copies of the digits; decoding takes the majority.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Decoding-based Regression, 3.2"
    contiguous: ClassVar[bool] = True
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("0.602", "6 0 2 0", "0.60205"),
        ("0.3", "3 0 0 0", "0.30005"),
        ("0", "0 0 0 0", "5e-05"),
        ("1", "9 9 9 9", "0.99995"),
        ("0.12349999", "1 2 3 4", "0.12345"),
        ("1.0001", "+OVERFLOW +OVERFLOW +OVERFLOW +OVERFLOW", "overflow"),
        ("-1e-9", "-OVERFLOW -OVERFLOW -OVERFLOW -OVERFLOW", "overflow"),
        ("nan", "NAN NAN NAN NAN", "nan"),
    )
    digest: ClassVar[str] = "67c5eebb41465aa9"

    base: int = 10
    length: int = 4
    point: str = "centre"
    repeat: int = 1

    @property
    def digits(self) -> int:
        return self.base

    def write(self, units: Units) -> Columns:
        return digits_of(units.counts, self.base, self.length)

    def read(self, indices: Ints) -> Units:
        return self.cells_as_units(number_of(indices, self.base))

    def span(self, prefix: tuple[int, ...]) -> Bounds:
        first = number_of(np.array([prefix]), self.base)
        wide = self.base ** (self.length - len(prefix))
        (low,), (high,) = self.between(first * wide, (first + 1) * wide)
        return Bounds(float(low), float(high))
