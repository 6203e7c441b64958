"""Values of a target in the train split: which numbers are one of them, near or beyond them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from numtok.arrays import Bools, Floats
from numtok.encoding.dataset import EncodedSplit
from numtok.numerals.literals import round_literal


@dataclass(frozen=True, eq=False)
class SeenValues:
    """The different finite values of a target, float64[m] ascending, m at least 1.

    >>> seen = SeenValues(np.array([0.2, 0.3]))
    >>> seen.nearest(np.array([0.1, 0.27, 9.0])).tolist()
    [0.2, 0.3, 0.3]
    >>> seen.has(np.array([0.3, 0.3001])).tolist(), seen.has(np.array([0.3, 0.3001]), 3).tolist()
    ([True, False], [True, True])
    """

    values: Floats

    @classmethod
    def of(cls, train: EncodedSplit, target: str) -> "SeenValues | None":
        """Those of a split; None where it has none."""
        named = pc.fill_null(pc.equal(train.target_name, target), False)
        return cls._finite(train.numbers[train.targets[named.to_numpy(zero_copy_only=False)]])

    @classmethod
    def nearby(cls, train: EncodedSplit, target: str) -> "SeenValues | None":
        """As :meth:`of`, but all numbers of the split where it has no such target."""
        return cls.of(train, target) or cls._finite(train.numbers)

    @classmethod
    def _finite(cls, values: Floats) -> "SeenValues | None":
        values = np.unique(values[np.isfinite(values)])
        return cls(values) if len(values) else None

    def has(self, numbers: Floats, digits: int = 0) -> Bools:
        """bool[n]: which finite numbers are one, both rounded to ``digits`` significant digits
        where that is not 0."""
        if not digits:
            return np.isin(numbers, self.values)
        return np.isin(rounded(numbers, digits), rounded(self.values, digits))

    def nearest(self, numbers: Floats) -> Floats:
        """float64[n]: the value nearest to each number; of two, the larger one."""
        above = np.clip(np.searchsorted(self.values, numbers), 0, len(self.values) - 1)
        below = np.maximum(above - 1, 0)
        nearer = numbers - self.values[below] < self.values[above] - numbers
        return np.where(nearer, self.values[below], self.values[above])


def rounded(numbers: Floats, digits: int) -> Floats:
    """Finite numbers [n] as schemes write them: the shortest literal, rounded half to even.

    >>> rounded(np.array([0.12345, -2.675]), 3).tolist()
    [0.123, -2.68]
    """
    distinct, which = np.unique(numbers, return_inverse=True)
    found = []
    for value in distinct.tolist():
        negative, mantissa, exponent = round_literal(repr(value), digits)
        found.append(float(f"{'-' if negative else ''}{mantissa}e{exponent}"))
    return np.array(found, np.float64)[which]


def nearest(train: EncodedSplit, names: NDArray[np.object_], numbers: Floats) -> Floats:
    """float64[n]: the nearest value of the target of each name, or of any number of the split where
    it has no such target; NaN where it has none at all."""
    found = np.full(len(numbers), np.nan)
    for mine, seen in _by_target(train, names):
        found[mine] = seen.nearest(numbers[mine])
    return found


def outside(train: EncodedSplit, names: NDArray[np.object_], numbers: Floats) -> Bools:
    """bool[n]: which are below the least or above the greatest of these values."""
    found = np.zeros(len(numbers), np.bool_)
    for mine, seen in _by_target(train, names):
        found[mine] = (numbers[mine] < seen.values[0]) | (numbers[mine] > seen.values[-1])
    return found


def _by_target(
    train: EncodedSplit, names: NDArray[np.object_]
) -> Iterator[tuple[Bools, SeenValues]]:
    """Of each name which numbers have it, and the values near them."""
    for name in set(names.tolist()):
        seen = SeenValues.nearby(train, name)
        if seen is not None:
            yield names == name, seen
