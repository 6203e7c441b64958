"""Type aliases for the most common NumPy arrays, and :func:`ranges`, which lists the integers in
given ranges."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Int32s = NDArray[np.int32]
UInt8s = NDArray[np.uint8]
UInt32s = NDArray[np.uint32]
UInt64s = NDArray[np.uint64]


def ranges(starts: NDArray[np.signedinteger], lengths: NDArray[np.signedinteger]) -> Ints:
    """Return the integers in the given ranges, concatenated into one array, int64[sum of lengths].

    Range i contains the ``lengths[i]`` consecutive integers that begin with ``starts[i]``.

    >>> ranges(np.array([7, 2]), np.array([2, 3])).tolist()
    [7, 8, 2, 3, 4]
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)
