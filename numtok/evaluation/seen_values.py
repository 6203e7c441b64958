"""Compares numbers with the training values of their target: membership, nearest value, range."""

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
    """Distinct finite values of a target in the train split, float64[m], ascending and not empty.

    >>> seen = SeenValues(np.array([0.2, 0.3]))
    >>> seen.nearest(np.array([0.1, 0.27, 9.0])).tolist()
    [0.2, 0.3, 0.3]
    >>> seen.has(np.array([0.3, 0.3001])).tolist(), seen.has(np.array([0.3, 0.3001]), 3).tolist()
    ([True, False], [True, True])
    """

    values: Floats

    @classmethod
    def of(cls, train: EncodedSplit, target: str) -> "SeenValues | None":
        """Return the finite values of ``target`` in a split, or None if it has no finite values."""
        named = pc.fill_null(pc.equal(train.target_name, target), False)
        return cls._finite(train.numbers[train.targets[named.to_numpy(zero_copy_only=False)]])

    @classmethod
    def nearby(cls, train: EncodedSplit, target: str) -> "SeenValues | None":
        """Return the finite values of ``target`` in a split or, if the target has none, all finite
        numbers in the split. Returns None if the split has no finite numbers."""
        return cls.of(train, target) or cls._finite(train.numbers)

    @classmethod
    def _finite(cls, values: Floats) -> "SeenValues | None":
        values = np.unique(values[np.isfinite(values)])
        return cls(values) if len(values) else None

    def has(self, numbers: Floats, digits: int = 0) -> Bools:
        """Return bool[n]: True for numbers that are among the values. The numbers must be finite.

        If ``digits`` is not 0, numbers and values are first rounded to that many significant
        digits.
        """
        if not digits:
            return np.isin(numbers, self.values)
        return np.isin(rounded(numbers, digits), rounded(self.values, digits))

    def nearest(self, numbers: Floats) -> Floats:
        """Return the value nearest to each number, float64[n]. If two values are equally near, the
        larger one is returned."""
        above = np.clip(np.searchsorted(self.values, numbers), 0, len(self.values) - 1)
        below = np.maximum(above - 1, 0)
        nearer = numbers - self.values[below] < self.values[above] - numbers
        return np.where(nearer, self.values[below], self.values[above])


def rounded(numbers: Floats, digits: int) -> Floats:
    """Round finite numbers [n] to ``digits`` significant digits, with ties to even.

    Like schemes, this rounds the shortest decimal literal of a number, not its binary value.

    >>> rounded(np.array([0.12345, -2.675]), 3).tolist()
    [0.123, -2.68]
    """
    distinct, which = np.unique(numbers, return_inverse=True)
    results = []
    for value in distinct.tolist():
        negative, mantissa, exponent = round_literal(repr(value), digits)
        results.append(float(f"{'-' if negative else ''}{mantissa}e{exponent}"))
    return np.array(results, np.float64)[which]


def nearest(train: EncodedSplit, names: NDArray[np.object_], numbers: Floats) -> Floats:
    """Return, for each number, the nearest train value of its target, float64[n].

    If the target has no finite value in the split, the nearest of all finite numbers in the split
    is returned. The result is NaN if the split has no finite numbers.
    """
    results = np.full(len(numbers), np.nan)
    for has_name, seen_values in _by_target(train, names):
        results[has_name] = seen_values.nearest(numbers[has_name])
    return results


def outside(train: EncodedSplit, names: NDArray[np.object_], numbers: Floats) -> Bools:
    """Return bool[n]: True for numbers outside the range of their target's train values.

    If the target has no finite value in the split, the range of all finite numbers in the split is
    used. If the split has no finite numbers either, every result is False.
    """
    results = np.zeros(len(numbers), np.bool_)
    for has_name, seen_values in _by_target(train, names):
        results[has_name] = (numbers[has_name] < seen_values.values[0]) | (
            numbers[has_name] > seen_values.values[-1]
        )
    return results


def _by_target(
    train: EncodedSplit, names: NDArray[np.object_]
) -> Iterator[tuple[Bools, SeenValues]]:
    """Yield, for each target name, a mask of the numbers with that name, and the train values."""
    for name in set(names.tolist()):
        seen_values = SeenValues.nearby(train, name)
        if seen_values is not None:
            yield names == name, seen_values
