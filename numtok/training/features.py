"""Columns of a table to the input vector of a network, with constants from the train split.

Numbers are centred and scaled to deviation 1; a missing one becomes the mean and
sets an indicator of its own, where the train split has missing ones at all. A
category has an input for each of its values in the train split; another value,
or none, sets nothing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.errors import DataError
from numtok.machine import memory

_FURTHEST = 1e6  # deviations
_LEAST_ROOM = 1 << 30  # bytes that inputs may take on any machine


class Features(NamedTuple):
    """``n`` rows of features, as ``data.tables.table.Table`` has them."""

    numbers: NDArray[np.float64]  # [n, number features], NaN is missing
    categories: "Sequence[pa.Array[Any]]"  # strings [n] of each category feature, null is missing

    def take(self, rows: NDArray[np.int64]) -> "Features":
        """The rows at some indices (int64[k])."""
        indices = pa.array(rows)
        return Features(self.numbers[rows], [column.take(indices) for column in self.categories])


class Inputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constants: of each number feature, and the values of each category.

    >>> columns = Features(np.array([[1.0, 5.0], [3.0, np.nan]]), [pa.array(["b", "a"])])
    >>> inputs = Inputs.fit(columns)
    >>> inputs.width, inputs.of(columns).tolist()  # two numbers, one indicator, two values
    (5, [[-1.0, 0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 1.0, 0.0]])
    """

    means: list[float]
    deviations: list[float]
    indicators: list[bool]
    values: list[list[str]]

    def __post_init__(self) -> None:
        sizes = {len(self.means), len(self.deviations), len(self.indicators)}
        if len(sizes) > 1 or not all(one > 0 for one in self.deviations):
            raise ValueError("each number has a mean, a deviation above 0 and an indicator")

    @classmethod
    def fit(cls, columns: Features) -> "Inputs":
        """From the rows of the train split; a constant or empty column only loses its mean."""
        missing = np.isnan(columns.numbers)
        count = np.maximum((~missing).sum(axis=0), 1)
        # In parts of the largest, so that nothing overflows on the way.
        largest = np.abs(np.where(missing, 0.0, columns.numbers)).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        shares = np.where(missing, 0.0, columns.numbers / unit)
        means = shares.sum(axis=0) / count
        squares = np.where(missing, 0.0, np.square(shares - means)).sum(axis=0) / count
        spread = np.sqrt(squares) * unit
        # What is left of a constant by rounding is no spread, nor is what float64 cannot hold.
        constant = (squares <= (1e-12 * np.abs(means)) ** 2) | (spread == 0)
        deviations = np.where(constant, 1.0, spread)
        return cls(
            (means * unit).tolist(),
            deviations.tolist(),
            [bool(column.any()) for column in missing.T],
            [sorted(pc.drop_null(pc.unique(one)).to_pylist()) for one in columns.categories],
        )

    @property
    def width(self) -> int:
        """How many inputs there are."""
        return len(self.means) + sum(self.indicators) + sum(map(len, self.values))

    def of(self, columns: Features) -> NDArray[np.float32]:
        """float32[n, width], each at most a million deviations from the mean.

        Among n values of a train split none lies further than the root of n (Samuelson 1968); what
        lies much further would overflow on its way through a network.

        Raises DataError where they would take more than a quarter of the machine's memory.
        """
        size = 4 * len(columns.numbers) * self.width
        if size > (most := max(_LEAST_ROOM, memory() // 4)):
            widest = max(map(len, self.values), default=0)
            raise DataError(
                f"{len(columns.numbers):,} rows of {self.width:,} inputs take {size:,} bytes, and "
                f"{most:,} are allowed (a quarter of the memory); a category has an input for each "
                f"of its values, the largest {widest:,}: leave it out (`numtok table --drop NAME`),"
                " or put rare values together"
            )
        missing = np.isnan(columns.numbers)
        with np.errstate(over="ignore"):
            scaled = (columns.numbers - np.array(self.means)) / np.array(self.deviations)
        made = np.zeros((len(missing), self.width), np.float32)
        first, count = len(self.means), sum(self.indicators)
        made[:, :first] = np.clip(np.where(missing, 0.0, scaled), -_FURTHEST, _FURTHEST)
        made[:, first : first + count] = missing[:, np.array(self.indicators, np.bool_)]
        first += count
        for known, column in zip(self.values, columns.categories, strict=True):
            places = pc.index_in(column, pa.array(known, pa.string())).fill_null(-1).to_numpy()
            rows = np.flatnonzero(places >= 0)
            made[rows, first + places[rows]] = 1
            first += len(known)
        return made
