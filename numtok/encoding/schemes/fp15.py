"""FP15: a single token for sign, three-digit mantissa and exponent. ``-60.2`` -> ``-602E-1``."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from numtok.arrays import Ints
from numtok.encoding.grid import Columns, Places, Units
from numtok.encoding.schemes._floating import DecimalScheme, exponent_tokens, mantissa_tokens
from numtok.encoding.schemes._radix import SIGNS
from numtok.setting_values import Interval


@dataclass(frozen=True)
class FP15(DecimalScheme):
    """FP15 from Charton (2022), as in Table 1 of the xVal paper: one token per number. The
    vocabulary has 2 signs x 900 mantissas x 16 exponents = 28,800 tokens.

    exponents
        Range of the exponent, for an integer mantissa: -8..7 covers 1e-6 to 9.99e9.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "xVal, Table 1"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-6.02e1", "-602E-1", "-60.2"),
        ("9.996", "+100E-1", "10.0"),
        ("-0.1435", "-144E-3", "-0.144"),
        ("0", "ZERO", "0.0"),
    )
    digest: ClassVar[str] = "28bb0db49f07c33b"

    exponents: Interval = Interval(-8, 7)

    @property
    def places(self) -> Places:
        exponents = exponent_tokens(self.exponents)
        return (
            tuple(
                f"{sign}{mantissa}{exponent}"
                for sign in SIGNS
                for mantissa in mantissa_tokens()
                for exponent in exponents
            ),
        )

    def write(self, units: Units) -> Columns:
        signed, exponent = self.signed(units)
        return (signed * len(self.exponents) + exponent,)

    def read(self, indices: Ints) -> Units:
        return self.from_signed(*np.divmod(indices[:, 0], len(self.exponents)))
