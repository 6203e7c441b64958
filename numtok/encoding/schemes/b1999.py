"""B1999: a signed three-digit mantissa, exponent. ``-60.2`` -> ``-602 E-1``."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes._decimal import DecimalScheme, exponent_tokens
from numtok.encoding.schemes._slots import SIGNS
from numtok.numerals.column import Rounded
from numtok.registry import Interval


@dataclass(frozen=True)
class B1999(DecimalScheme):
    """Charton (2022), as in Table 1 of xVal: 1800 signed mantissas, 16 exponents, 1816 tokens.

    exponents
        Of the integer mantissa: -8..7 is 1e-6 to 9.99e9.
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

    def counted_vocabulary(self) -> tuple[str, ...]:
        mantissas = tuple(f"{sign}{mantissa}" for sign in SIGNS for mantissa in range(100, 1000))
        return mantissas + exponent_tokens(self.exponents)

    def slots(self) -> tuple[range, ...]:
        return range(1800), range(1800, 1800 + len(self.exponents))

    def write(self, number: Rounded) -> tuple[NDArray[Any], ...]:
        return number.negative * 900 + number.mantissa - 100, number.exponent + 1800

    def read(self, tokens: NDArray[np.int64]) -> Rounded:
        return Rounded(tokens[:, 0] >= 900, tokens[:, 0] % 900 + 100, tokens[:, 1] - 1800)
