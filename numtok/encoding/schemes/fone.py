"""fone: one token ``[NUM]`` per number; the model reads and predicts a fixed number of digits."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats
from numtok.declaration import setting
from numtok.encoding.schemes._channel import ValuedScheme
from numtok.encoding.schemes.base import Bounds, LargestError, SchemeDefaults
from numtok.numerals.literals import MOST_DIGITS, check_digits, units_of

_SHARED = ("whole", "decimals")


@dataclass(frozen=True)
class FoneScheme(ValuedScheme):
    """FoNE (Zhou et al. 2025): the embedder and head ``fone`` read and predict the sign and each
    digit of a number.

    The channel is float64, so up to 15 digits are kept exactly, except for trailing zeros.

    whole
        Number of digits before the decimal point; larger numbers overflow.
    decimals
        Number of digits after the decimal point. Further digits are rounded; numbers smaller than
        one unit in the last digit underflow.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "FoNE (arXiv 2502.09741), Section 3"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(
        embedder="fone",
        head="fone",
        embedder_settings=_SHARED,
        head_settings=_SHARED,
        sized=True,
    )
    exact: ClassVar[bool] = True
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("17.5", "[NUM]", "17.5"),
        ("-60.20", "[NUM]", "-60.2"),
        ("9999999999.99999", "[NUM]", "9999999999.99999"),
        ("3.1415926", "[NUM]", "3.14159"),
        ("1e10", "+OVERFLOW", "overflow"),
        ("-1e-6", "-UNDERFLOW", "underflow"),
    )
    digest: ClassVar[str] = "254942aeab8f70d5"
    whole: int = setting(10, "Digits before the decimal point.", at_least=1, at_most=MOST_DIGITS)
    decimals: int = setting(5, "Digits after the decimal point.", at_least=0, at_most=MOST_DIGITS)

    def __post_init__(self) -> None:
        check_digits("fone", self.whole, self.decimals)

    def suited(self, largest: float, decimals: int) -> "FoneScheme":
        whole = max(1, len(str(int(largest))))
        if whole + decimals > MOST_DIGITS:  # float64 holds no more
            decimals = min(decimals, self.decimals)
        if whole + decimals > MOST_DIGITS:
            return self
        return replace(self, whole=whole, decimals=decimals)

    @property
    def bounds(self) -> Bounds:
        nines = 10 ** (self.whole + self.decimals) - 1
        return Bounds(float(f"1e{-self.decimals}"), float(f"{nines}e{-self.decimals}"))

    @property
    def error(self) -> LargestError:  # half a unit of the last decimal
        return LargestError(float(f"5e-{self.decimals + 1}"), absolute=True)

    def held(self, values: Floats) -> Floats:
        inside = np.abs(values) < 10.0**self.whole
        units = units_of(np.where(inside, values, 0.0), self.decimals)
        units[np.abs(values) < self.bounds.low] = 0
        rounded = np.copysign(units / 10.0**self.decimals, values)
        return np.where(inside, rounded, values)
