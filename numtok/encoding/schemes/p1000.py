"""P1000: a sign, a three-digit mantissa and an exponent. ``-60.2`` -> ``- 602 E-1``."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Ints
from numtok.encoding.grid import Columns, Places, Units
from numtok.encoding.schemes._floating import DecimalScheme, exponent_tokens, mantissa_tokens
from numtok.encoding.schemes._radix import SIGNS
from numtok.setting_values import Interval


@dataclass(frozen=True)
class P1000(DecimalScheme):
    """P1000 from Charton (2022), as in Table 1 of the xVal paper: a token each for the sign, the
    mantissa and the exponent. The vocabulary consists of 2 signs, 900 mantissas and 16 exponents.

    exponents
        Range of the exponent, for an integer mantissa: -8..7 covers 1e-6 to 9.99e9.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Table 1"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-6.02e1", "- 602 E-1", "-60.2"),
        ("9.996", "+ 100 E-1", "10.0"),
        ("-0.1435", "- 144 E-3", "-0.144"),
        ("0", "ZERO ZERO ZERO", "0.0"),
    )
    digest: ClassVar[str] = "765eb33f122d0e8b"

    exponents: Interval = Interval(-8, 7)

    @property
    def places(self) -> Places:
        return SIGNS, mantissa_tokens(), exponent_tokens(self.exponents)

    def write(self, units: Units) -> Columns:
        exponent, mantissa = np.divmod(units.counts, self.steps)
        return units.negative, mantissa, exponent

    def read(self, indices: Ints) -> Units:
        return Units(indices[:, 2] * self.steps + indices[:, 1], indices[:, 0] == 1)
