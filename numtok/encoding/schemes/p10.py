"""P10: a sign, one token per mantissa digit, and an exponent. ``-60.2`` -> ``- 6 0 2 E-1``."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Ints
from numtok.declaration import setting
from numtok.encoding.grid import Columns, Places, Units
from numtok.encoding.schemes._floating import DecimalScheme, exponent_tokens
from numtok.encoding.schemes._radix import DIGITS, SIGNS, digits_of, number_of
from numtok.setting_values import Interval


@dataclass(frozen=True)
class P10(DecimalScheme):
    """P10 from Charton (2022), as in Table 1 of the xVal paper: a token for the sign, one for each
    digit of the mantissa, and one for the exponent. The vocabulary consists of 2 signs, 10 digits
    and 16 exponents.

    digits
        Number of significant digits that are kept (3 in the paper).
    exponents
        Range of the exponent, for an integer mantissa: -8..7 covers 1e-6 to 9.99e9 with 3 digits.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Table 1"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-6.02e1", "- 6 0 2 E-1", "-60.2"),
        ("9.996", "+ 1 0 0 E-1", "10.0"),
        ("-0.1435", "- 1 4 4 E-3", "-0.144"),
        ("0", "ZERO ZERO ZERO ZERO ZERO", "0.0"),
    )
    digest: ClassVar[str] = "04295180d5a71771"

    digits: int = setting(3, at_least=1, at_most=15)
    exponents: Interval = Interval(-8, 7)

    @property
    def mantissa_digits(self) -> int:
        return self.digits

    @property
    def places(self) -> Places:
        digits = [DIGITS[1:10], *[DIGITS[:10]] * (self.digits - 1)]  # the first is not 0
        return SIGNS, *digits, exponent_tokens(self.exponents)

    def counted_vocabulary(self) -> tuple[str, ...]:
        return SIGNS + tuple(DIGITS[:10]) + exponent_tokens(self.exponents)

    def write(self, units: Units) -> Columns:
        exponent, mantissa = np.divmod(units.counts, self.steps)
        return units.negative, *digits_of(mantissa, 10, self.digits), exponent

    def read(self, indices: Ints) -> Units:
        mantissa = number_of(indices[:, 1:-1], 10)
        return Units(indices[:, -1] * self.steps + mantissa, indices[:, 0] == 1)
