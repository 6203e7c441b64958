"""Conversion of NumPy arrays and lists of strings to Arrow arrays, without copies if possible.

``pa.array`` and ``pa.scalar`` do the same, but import pandas if it is installed, which takes longer
than encoding a small file.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def column(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> "pa.Array[Any]":
    """Convert numbers [n] to an Arrow array of the same type without copying them.

    Values are null where ``missing`` (bool[n]) is true.

    >>> column(np.array([1.5, 2.5]), np.array([False, True])).to_pylist()
    [1.5, None]
    """
    kind = pa.from_numpy_dtype(values.dtype)
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [valid, buffer])


def strings(texts: Sequence[str]) -> "pa.Array[Any]":
    """Convert strings [n] to an Arrow array. Raises UnicodeEncodeError on a lone surrogate."""
    joined = "".join(texts)
    data = joined.encode()
    sizes = map(len, texts) if len(data) == len(joined) else (len(text.encode()) for text in texts)
    offsets = np.fromiter(accumulate(sizes, initial=0), np.int32, len(texts) + 1)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(data))


def constant(text: str) -> "pa.Scalar[Any]":
    """Convert a string to an Arrow scalar, for use with ``pyarrow.compute``."""
    return strings([text])[0]


def packed(
    data: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Concatenate the slices ``data[starts[k]:ends[k]]``.

    Returns the concatenated bytes, and the bounds int32[n + 1] of the slices within them.
    """
    sizes = (ends - starts).astype(np.int64)
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    taken = data[np.repeat(starts - bounds[:-1], sizes) + np.arange(bounds[-1])]
    return taken, bounds.astype(np.int32)


def slices(
    data: NDArray[np.uint8], starts: NDArray[np.int32], ends: NDArray[np.int32]
) -> "pa.Array[Any]":
    """Build an array of strings [n]: string k is ``data[starts[k]:ends[k]]``."""
    taken, bounds = packed(data, starts, ends)
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(bounds), pa.py_buffer(taken))


def lists(rows: NDArray[np.int32], values: "pa.Array[Any]") -> "pa.Array[Any]":
    """Build an array of lists [n] without copying: list r is ``values[rows[r]:rows[r + 1]]``."""
    return pa.ListArray.from_arrays(column(rows), values)


def nullable(values: NDArray[np.float64]) -> "pa.Array[Any]":
    """Convert float64[n] to an Arrow array, with nulls in place of NaN."""
    return column(values, np.isnan(values))
