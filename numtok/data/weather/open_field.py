"""One field of a public store, open for reading."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Block(NamedTuple):
    """Steps ``begin <= step < end`` of a field, whole days, that are read at once; how many
    objects of the source that takes, and the bytes of these once unpacked."""

    begin: int
    end: int
    requests: int
    bytes: int


class FieldSteps(NamedTuple):
    """What was read: values [n, latitude, longitude], NaN where there are none, and which of the
    steps are preliminary [n], to be replaced by the publisher within months."""

    values: NDArray[np.float32]
    preliminary: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenField:
    """One field, open for reading: a variable at times on a grid, cut out as it was asked for.

    attributes
        ``units`` and ``long_name`` of the variable.
    times
        datetime64[m], UTC, ascending; steps that the source lacks are left out.
    expected
        Likewise, the times that there should be: a day that lacks one of them has a gap.
    latitudes, longitudes
        Degrees, float64, ascending, the longitudes without a jump.
    blocks
        Of all steps, in order.
    read
        The steps ``begin <= step < end``; StoreError or DataError where that fails.
    """

    variable: str
    attributes: Mapping[str, str]
    times: NDArray[np.datetime64]
    expected: NDArray[np.datetime64]
    latitudes: NDArray[np.float64]
    longitudes: NDArray[np.float64]
    blocks: Sequence[Block]
    read: Callable[[int, int], FieldSteps]
