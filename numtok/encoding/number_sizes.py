"""number_sizes: largest magnitude and largest number of decimals among the numbers in the data.

Some schemes adapt their default settings to these sizes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numtok.data.reading.units import Unit
from numtok.encoding.row_numbers import numbers_in
from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.unit import Screening
from numtok.numerals.column import Numerals
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import name_in
from numtok.store.engines.engine import Engine


class NumberSizes(NamedTuple):
    """Largest finite magnitude in a set of numbers, and largest number of decimals as written. Both
    are 0 for an empty set."""

    largest: float = 0.0
    decimals: int = 0

    @classmethod
    def of(cls, numerals: Numerals) -> "NumberSizes":
        """Return the sizes of all numbers in a column."""
        finite = np.abs(numerals.values[np.isfinite(numerals.values)])
        digits, exponents, _, _ = numerals.significands
        decimals = -exponents[digits > 0]
        return cls(float(finite.max(initial=0.0)), int(decimals.max(initial=0)))

    def merged(self, other: "NumberSizes") -> "NumberSizes":
        """Return the sizes of the union of two sets of numbers."""
        return NumberSizes(max(self.largest, other.largest), max(self.decimals, other.decimals))


@dataclass(frozen=True)
class SizeUnit:
    """Callable that workers run on each unit of work. A call returns the index of the unit and the
    sizes of its numbers across all splits."""

    screening: Screening
    policy: NumeralPolicy

    def __call__(self, unit: Unit) -> tuple[int, NumberSizes]:
        sizes = NumberSizes()
        for batch, _ in self.screening.accepted(unit, self.policy):
            _, spans = numbers_in(batch.rows, self.policy)
            sizes = sizes.merged(NumberSizes.of(spans.numerals()))
        return unit.index, sizes


def measure_sizes(
    work: SizeUnit, units: Sequence[Unit], workers: Engine, progress: Callable[[int], None]
) -> NumberSizes:
    """Return the sizes of the numbers in all units, measured by workers. ``progress`` is called
    with the number of bytes read so far."""
    sizes, done = NumberSizes(), 0
    for index, part in workers.run(work, units):
        sizes = sizes.merged(part)
        done += units[index].size
        progress(done)
    return sizes


def is_sized(spec: str) -> bool:
    """Return whether the scheme with this spec adapts its settings to the numbers in the data (see
    :meth:`Scheme.suited`).

    Any explicit setting disables this: ``fone`` is sized to the data, ``fone,whole=10`` is not.
    """
    name = name_in(spec)
    return spec == name and SCHEMES[name].defaults.sized
