"""The interval of a share."""

import math
from statistics import NormalDist

from numtok.reports import Figure

Z = 1.959963984540054  # of 95%


def share(hits: int, n: int) -> Figure:
    """``hits`` of ``n`` with Wilson's 95% score interval (1927), which is right near 0 and 1 too.

    >>> found = share(0, 100)
    >>> found.value, found.low, round(found.high, 3)
    (0.0, 0.0, 0.037)
    """
    return Figure(hits / n, *ends(hits / n, n), n) if n else Figure(None, None, None, 0)


def ends(p: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Of a share p of n, which need be no whole number: of a weighted mean it is how many equal
    ones would be as sure."""
    z = Z if level == 0.95 else NormalDist().inv_cdf((1 + level) / 2)
    z2 = z * z / n
    middle = (p + z2 / 2) / (1 + z2)
    half = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n)) / (1 + z2)
    # At the ends rounding would leave it a little off.
    return 0.0 if p == 0 else max(0.0, middle - half), 1.0 if p == 1 else min(1.0, middle + half)
