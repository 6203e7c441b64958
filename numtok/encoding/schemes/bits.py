"""bits: one token ``[NUM]`` for every number, beside it all 64 bits of its float64."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes._valued import ValuedScheme
from numtok.encoding.schemes.base import Bounds

_LARGEST = float(np.finfo(np.float64).max)
_SMALLEST = float(np.nextafter(0.0, 1.0))


@dataclass(frozen=True)
class BitsScheme(ValuedScheme):
    """BitTokens (Kreitner et al. 2025): the number goes in and comes out bit by bit, by the
    embedder and the head ``bits``.

    The channel is float64, so every number is kept that has one: 15 digits and more, from 5e-324
    to 1.8e308, and -0. What a head says that is infinite or no number is overflow or malformed.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "BitTokens (arXiv 2510.06824), Section 3"
    embedder: ClassVar[str] = "bits"
    head: ClassVar[str] = "bits"
    exact: ClassVar[bool] = True
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-60.20", "[NUM]", "-60.2"),
        ("-0", "[NUM]", "-0.0"),
        ("0.30000000000000004", "[NUM]", "0.30000000000000004"),
        ("5e-324", "[NUM]", "5e-324"),
        ("1e400", "+OVERFLOW", "overflow"),
        ("nan", "NAN", "nan"),
    )
    digest: ClassVar[str] = "458d09bca563326b"

    @property
    def bounds(self) -> Bounds:
        return Bounds(_SMALLEST, _LARGEST)

    @property
    def relative_error(self) -> float:
        return 0.0

    def held(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values.copy()
