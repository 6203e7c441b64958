"""coupling: digits of equal significance share a position, in operands and answer."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.declaration import setting
from numtok.models.batches import PAD
from numtok.models.places.base import DigitPlaces, runs
from numtok.models.training_batch import END

_MOST = 1 << 20


@dataclass(frozen=True)
class Coupling(DigitPlaces):
    """Position coupling (Cho et al. 2024): digits of equal significance share a position.

    In every number, the units digit has position 2, the tens digit 3, and so on; all other tokens
    except ``[END]`` have position 1. For ``012+345=7530``, with operands padded to three digits and
    the answer reversed, the positions are 4 3 2 1 4 3 2 1 2 3 4 5.

    It is meant for a trunk without other positions (``positions=none``). In training, a random
    offset of 0 to ``offsets - 1`` is added, drawn for each row as in the public code.

    operands
        Number of leading numbers in a row that are written with the most significant digit first,
        each padded to ``pad`` digits (``digits,pad=3``). All other numbers are written with the
        least significant digit first. If 0, this applies to all numbers (``digits,reverse=yes``).
    pad
        Number of digits per operand.
    most
        Number of vectors; digits with a larger position use the last one.
    """

    revision: ClassVar[int] = 2
    offset_per_row: ClassVar[bool] = True
    source: ClassVar[str] = "Position coupling (arXiv 2405.20671), Section 3; public code"
    operands: int = setting(0, "Numbers that start with their highest digit.", at_least=0)
    pad: int = setting(3, "Digits per such number.", at_least=1, at_most=_MOST)
    offsets: int = setting(100, "Number of random offsets in training.", at_least=1, at_most=_MOST)
    most: int = setting(1024, "Number of vectors.", at_least=1, at_most=_MOST)

    def numbered(self, tokens: NDArray[np.int64], digits: NDArray[np.bool_]) -> NDArray[np.int64]:
        index = runs(digits)
        which = np.cumsum(index == 1, axis=1)
        falling = np.maximum(self.pad + 1 - index, 1)
        significance = np.where(which <= self.operands, falling, index)
        shown = (tokens != PAD) & (tokens != END)
        return np.where(digits, significance + 1, shown.astype(np.int64))
