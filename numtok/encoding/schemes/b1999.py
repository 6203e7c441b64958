"""B1999: a signed three-digit mantissa and an exponent. ``-60.2`` -> ``-602 E-1``."""

from dataclasses import dataclass
from typing import ClassVar

from numtok.arrays import Ints
from numtok.encoding.grid import Columns, Places, Units
from numtok.encoding.schemes._floating import DecimalScheme, exponent_tokens, mantissa_tokens
from numtok.encoding.schemes._radix import SIGNS
from numtok.setting_values import Interval


@dataclass(frozen=True)
class B1999(DecimalScheme):
    """B1999 from Charton (2022), as in Table 1 of the xVal paper: a token for the signed mantissa
    and a token for the exponent. The vocabulary consists of 1,800 signed mantissas and 16
    exponents.

    exponents
        Range of the exponent, for an integer mantissa: -8..7 covers 1e-6 to 9.99e9.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Table 1"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-6.02e1", "-602 E-1", "-60.2"),
        ("9.996", "+100 E-1", "10.0"),
        ("-0.1435", "-144 E-3", "-0.144"),
        ("0", "ZERO ZERO", "0.0"),
    )
    digest: ClassVar[str] = "b7c8715581258780"

    exponents: Interval = Interval(-8, 7)

    @property
    def places(self) -> Places:
        signed = tuple(sign + mantissa for sign in SIGNS for mantissa in mantissa_tokens())
        return signed, exponent_tokens(self.exponents)

    def write(self, units: Units) -> Columns:
        return self.signed(units)

    def read(self, indices: Ints) -> Units:
        return self.from_signed(indices[:, 0], indices[:, 1])
