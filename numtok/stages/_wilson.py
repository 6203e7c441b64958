"""The interval of a share."""

import math

from numtok.reports import Figure

_Z = 1.959963984540054  # of 95%


def share(hits: int, n: int) -> Figure:
    """``hits`` of ``n`` with Wilson's 95% score interval (1927), which is right near 0 and 1 too.

    >>> found = share(0, 100)
    >>> found.value, found.low, round(found.high, 3)
    (0.0, 0.0, 0.037)
    """
    if not n:
        return Figure(None, None, None, 0)
    p, z2 = hits / n, _Z * _Z / n
    middle = (p + z2 / 2) / (1 + z2)
    half = _Z * math.sqrt(p * (1 - p) / n + z2 / (4 * n)) / (1 + z2)
    # At the ends rounding would leave it a little off.
    low = 0.0 if not hits else max(0.0, middle - half)
    high = 1.0 if hits == n else min(1.0, middle + half)
    return Figure(p, low, high, n)
