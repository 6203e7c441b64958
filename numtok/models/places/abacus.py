"""abacus: gives each digit its index within the number, counted from the first digit (Abacus
embeddings)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.declaration import setting
from numtok.models.places.base import DigitPlaces, runs

_MOST = 1 << 20


@dataclass(frozen=True)
class Abacus(DigitPlaces):
    """Abacus embeddings (McLeish et al. 2024): each digit gets a vector for its index within the
    number.

    The indices of ``12+345=`` are 1 2 0 1 2 3 0. Digits of equal significance share an index if
    numbers start with their last digit: encode with ``digits,reverse=yes``. A decimal point
    restarts the count. In training, a random offset of 0 to ``offsets - 1`` is added, the same for
    a whole batch, so that numbers longer than any in training use trained vectors.

    most
        Number of vectors; digits with a larger index use the last one.
    """

    revision: ClassVar[int] = 1
    offset_per_row: ClassVar[bool] = False
    source: ClassVar[str] = "Abacus (arXiv 2405.17399), Section 3; public code"
    offsets: int = setting(100, "Number of random offsets in training.", at_least=1, at_most=_MOST)
    most: int = setting(1024, "Number of vectors.", at_least=1, at_most=_MOST)

    def numbered(self, tokens: NDArray[np.int64], digits: NDArray[np.bool_]) -> NDArray[np.int64]:
        return runs(digits)
