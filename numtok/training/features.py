"""Conversion of table columns to network inputs, with constants from the train split.

Numbers are standardized. A missing number is replaced by the mean and sets an indicator input,
which exists only if the column has missing numbers in the train split. Categories are one-hot
encoded. All inputs of a category feature are 0 if its value is missing or does not occur in the
train split.
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

_FURTHEST = 1e6  # standard deviations
_LEAST_ROOM = 1 << 30  # bytes that inputs may always take, whatever the machine


class Features(NamedTuple):
    """The feature columns of ``n`` rows, in the layout of
    :class:`numtok.data.tables.table.Table`."""

    numbers: NDArray[np.float64]  # [n, number features], NaN is missing
    categories: "Sequence[pa.Array[Any]]"  # strings [n] per category feature, null is missing

    def take(self, rows: NDArray[np.int64]) -> "Features":
        """Return the rows at the given indices, int64[k]."""
        indices = pa.array(rows)
        return Features(self.numbers[rows], [column.take(indices) for column in self.categories])


class Inputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Constants that turn feature columns into network inputs.

    For each number feature, these are its mean, its standard deviation, and whether it has an
    indicator input for missing numbers. For each category feature, they are its known values.

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
        if len(sizes) > 1 or not all(deviation > 0 for deviation in self.deviations):
            raise ValueError(
                "each number must have a mean, a standard deviation above 0 and an indicator"
            )

    @classmethod
    def fit(cls, columns: Features) -> "Inputs":
        """Fit the constants to the columns of the train split.

        Constant and empty columns are only centered.
        """
        missing = np.isnan(columns.numbers)
        count = np.maximum((~missing).sum(axis=0), 1)
        # As fractions of the largest magnitude, so that no intermediate result overflows.
        largest = np.abs(np.where(missing, 0.0, columns.numbers)).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        fractions = np.where(missing, 0.0, columns.numbers / unit)
        means = fractions.sum(axis=0) / count
        squares = np.where(missing, 0.0, np.square(fractions - means)).sum(axis=0) / count
        spread = np.sqrt(squares) * unit
        # Rounding noise of a constant is not a spread, nor is one that underflows to 0.
        constant = (squares <= (1e-12 * np.abs(means)) ** 2) | (spread == 0)
        deviations = np.where(constant, 1.0, spread)
        return cls(
            (means * unit).tolist(),
            deviations.tolist(),
            [bool(column.any()) for column in missing.T],
            [sorted(pc.drop_null(pc.unique(column)).to_pylist()) for column in columns.categories],
        )

    @property
    def width(self) -> int:
        """Number of network inputs."""
        return len(self.means) + sum(self.indicators) + sum(map(len, self.values))

    def of(self, columns: Features) -> NDArray[np.float32]:
        """Return the network inputs, float32[n, width], clipped to a million standard deviations.

        Among n training values, none is further from the mean than sqrt(n) standard deviations
        (Samuelson 1968). Values that are much further away would overflow in the network.

        Raises DataError if the inputs would take more than a quarter of the machine's memory.
        """
        size = 4 * len(columns.numbers) * self.width
        if size > (most := max(_LEAST_ROOM, memory() // 4)):
            widest = max(map(len, self.values), default=0)
            raise DataError(
                f"{len(columns.numbers):,} rows of {self.width:,} inputs take {size:,} bytes, more "
                f"than a quarter of the memory ({most:,}). The largest category has {widest:,} "
                "values, an input each: drop it (`numtok table --drop NAME`), or merge rare values"
            )
        missing = np.isnan(columns.numbers)
        with np.errstate(over="ignore"):
            scaled = (columns.numbers - np.array(self.means)) / np.array(self.deviations)
        inputs = np.zeros((len(missing), self.width), np.float32)
        first, count = len(self.means), sum(self.indicators)
        inputs[:, :first] = np.clip(np.where(missing, 0.0, scaled), -_FURTHEST, _FURTHEST)
        inputs[:, first : first + count] = missing[:, np.array(self.indicators, np.bool_)]
        first += count
        for values, column in zip(self.values, columns.categories, strict=True):
            indices = pc.index_in(column, pa.array(values, pa.string())).fill_null(-1).to_numpy()
            rows = np.flatnonzero(indices >= 0)
            inputs[rows, first + indices[rows]] = 1
            first += len(values)
        return inputs
