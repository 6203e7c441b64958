"""abacus: digits are numbered from the first of their number on."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.declaration import setting
from numtok.models.places.base import DigitPlaces, runs

_MOST = 1 << 20


@dataclass(frozen=True)
class Abacus(DigitPlaces):
    """Abacus embeddings (McLeish et al. 2024): of ``12+345=`` the numbers are 1 2 0 1 2 3 0.

    Digits of one significance have one number where numbers begin with their last digit: encode
    with ``digits,reverse=yes``. A decimal point begins anew. In training one number of 0 to
    ``offsets - 1`` is added, the same for all of a batch, so that longer numbers than any that was
    learnt find vectors that were.

    most
        Vectors; a digit that would have a later one has the last.
    """

    revision: ClassVar[int] = 1
    offset_per_row: ClassVar[bool] = False
    source: ClassVar[str] = "Abacus (arXiv 2405.17399), Section 3; public code"
    offsets: int = setting(100, "Numbers by which training moves.", at_least=1, at_most=_MOST)
    most: int = setting(1024, "Vectors.", at_least=1, at_most=_MOST)

    def numbered(self, tokens: NDArray[np.int64], digits: NDArray[np.bool_]) -> NDArray[np.int64]:
        return runs(digits)
