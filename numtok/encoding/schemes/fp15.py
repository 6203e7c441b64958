"""FP15: one token for sign, three-digit mantissa and exponent. ``-60.2`` -> ``-602E-1``."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes._decimal import DecimalScheme, exponent_tokens
from numtok.encoding.schemes._slots import SIGNS
from numtok.numerals.column import Rounded
from numtok.registry import Interval


@dataclass(frozen=True)
class FP15(DecimalScheme):
    """Charton (2022), as in Table 1 of xVal: 2 x 900 x 16 = 28800 tokens, one a number.

    exponents
        Of the integer mantissa: -8..7 is 1e-6 to 9.99e9.
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

    def counted_vocabulary(self) -> tuple[str, ...]:
        return tuple(
            f"{sign}{mantissa}{exponent}"
            for sign in SIGNS
            for mantissa in range(100, 1000)
            for exponent in exponent_tokens(self.exponents)
        )

    def slots(self) -> tuple[range, ...]:
        return (range(1800 * len(self.exponents)),)

    def write(self, number: Rounded) -> tuple[NDArray[Any], ...]:
        signed = number.negative * 900 + number.mantissa - 100
        return (signed * len(self.exponents) + number.exponent,)

    def read(self, tokens: NDArray[np.int64]) -> Rounded:
        signed, exponent = np.divmod(tokens[:, 0], len(self.exponents))
        return Rounded(signed >= 900, signed % 900 + 100, exponent)
