"""P10: sign, one token a digit, exponent. ``-60.2`` -> ``- 6 0 2 E-1``."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.declaration import setting
from numtok.encoding.schemes._decimal import DecimalScheme, exponent_tokens
from numtok.encoding.schemes._radix import digits_of, number_of
from numtok.encoding.schemes._slots import SIGNS
from numtok.numerals.column import Rounded
from numtok.registry import Interval


@dataclass(frozen=True)
class P10(DecimalScheme):
    """Charton (2022), as in Table 1 of xVal: 2 signs, 10 digits and 16 exponents, 28 tokens.

    digits
        Significant digits kept, 3 in the paper.
    exponents
        Of the integer mantissa: -8..7 is 1e-6 to 9.99e9 with 3 digits.
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

    def counted_vocabulary(self) -> tuple[str, ...]:
        return SIGNS + tuple("0123456789") + exponent_tokens(self.exponents)

    def slots(self) -> tuple[range, ...]:
        leading, digit = range(3, 12), range(2, 12)  # no leading zero
        return (
            range(2),
            leading,
            *[digit] * (self.digits - 1),
            range(12, 12 + len(self.exponents)),
        )

    def write(self, number: Rounded) -> tuple[NDArray[Any], ...]:
        digits = (digit + 2 for digit in digits_of(number.mantissa, 10, self.digits))
        return number.negative, *digits, number.exponent + 12

    def read(self, tokens: NDArray[np.int64]) -> Rounded:
        mantissa = number_of(tokens[:, 1:-1] - 2, 10)
        return Rounded(tokens[:, 0] == 1, mantissa, tokens[:, -1] - 12)
