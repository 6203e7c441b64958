"""coupling: digits of one significance have one number, in operands and answer alike."""

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
    """Position coupling (Cho et al. 2024): the digit of units has the number 2, that of tens 3, and
    so on in every number, and what is no digit has 1: of ``012+345=7530`` they are
    4 3 2 1 4 3 2 1 2 3 4 5, the operands filled up to three digits, the answer reversed.

    It is meant for a trunk without other positions (``positions=none``). In training one number of
    0 to ``offsets - 1`` is added, drawn for each row as in the public code.

    operands
        So many numbers come first that begin with their highest digit, each filled up to ``pad``
        digits (``digits,pad=3``); all others begin with the lowest. 0: all do
        (``digits,reverse=yes``).
    pad
        Digits of an operand.
    most
        Vectors; a digit that would have a later one has the last.
    """

    revision: ClassVar[int] = 2
    offset_per_row: ClassVar[bool] = True
    source: ClassVar[str] = "Position coupling (arXiv 2405.20671), Section 3; public code"
    operands: int = setting(0, "Numbers that begin with their highest digit.", at_least=0)
    pad: int = setting(3, "Digits of such a number.", at_least=1, at_most=_MOST)
    offsets: int = setting(100, "Numbers by which training moves.", at_least=1, at_most=_MOST)
    most: int = setting(1024, "Vectors.", at_least=1, at_most=_MOST)

    def numbered(self, tokens: NDArray[np.int64], digits: NDArray[np.bool_]) -> NDArray[np.int64]:
        place = runs(digits)
        which = np.cumsum(place == 1, axis=1)
        falling = np.maximum(self.pad + 1 - place, 1)
        significance = np.where(which <= self.operands, falling, place)
        shown = (tokens != PAD) & (tokens != END)
        return np.where(digits, significance + 1, shown.astype(np.int64))
