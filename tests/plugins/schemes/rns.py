"""rns: a sign, and the remainder by each of several moduli. ``-60.2`` -> ``- 0%7 8%11 4%13``."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.declaration import setting
from numtok.encoding.grid import Columns, GridScheme, Places, Units


@dataclass(frozen=True)
class ResidueNumbers(GridScheme):
    """Numbers in tenths, read back by the Chinese remainder theorem."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "docs/extend"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-60.2", "- 0%7 8%11 4%13", "-60.2"),
        ("1001", "+OVERFLOW +OVERFLOW +OVERFLOW +OVERFLOW", "overflow"),
    )
    moduli: str = setting("7-11-13", "Moduli without a common factor.")
    decimals: int = setting(1, "Decimals that are kept.", at_least=0)

    @property
    def each(self) -> list[int]:
        return [int(modulus) for modulus in self.moduli.split("-")]

    @property
    def most(self) -> int:
        return prod(self.each) - 1

    @property
    def places(self) -> Places:
        return "+-", *([f"{rest}%{modulus}" for rest in range(modulus)] for modulus in self.each)

    def write(self, units: Units) -> Columns:
        return units.negative, *(units.counts % modulus for modulus in self.each)

    def read(self, indices: NDArray[np.int64]) -> Units:
        rest, whole = indices[:, 1:], self.most + 1
        weights = [whole // m * pow(whole // m, -1, m) for m in self.each]
        return Units(rest @ np.array(weights) % whole, indices[:, 0] == 1)
