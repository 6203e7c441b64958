"""Numbers with so many digits before the point and behind it, as float64 has them exactly."""

import numpy as np
from numpy.typing import NDArray

from numtok.errors import UsageError

MOST_DIGITS = 15  # any so many decimal digits are told apart by float64


def check_digits(name: str, whole: int, decimals: int) -> None:
    """Raise UsageError where numbers of ``whole`` digits before the point and ``decimals`` behind
    it are more than float64 holds."""
    if not 1 <= whole + decimals <= MOST_DIGITS:
        raise UsageError(
            f"{name}: whole={whole},decimals={decimals} is not possible; together they are 1 to "
            f"{MOST_DIGITS} digits, which float64 keeps"
        )


def units_of(values: NDArray[np.float64], decimals: int) -> NDArray[np.int64]:
    """int64[n]: sizes of finite numbers in units of the last of so many decimals, the nearest.

    Exact for what was written with up to 15 digits; at most 10^15.

    >>> units_of(np.array([17.5, -0.1, 1e300]), 1).tolist()
    [175, 1, 1000000000000000]
    """
    most = 10.0**MOST_DIGITS
    sizes = np.minimum(np.abs(values), most / 10.0**decimals) * 10.0**decimals
    return np.rint(sizes).astype(np.int64)
