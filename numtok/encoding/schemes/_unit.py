"""Base class for schemes that represent numbers in [0, 1]. The interval is divided into cells, and
each number is written as one cell.

This is the normalized tokenization of "Decoding-based Regression", Section 3.2, with
``count = base^length`` cells. ``point`` defines where the cells lie and how they are decoded:

=========  ==============================  ==================
point      cell ``j``                      decoded as
=========  ==============================  ==================
edge       ``j/count`` to ``(j+1)/count``  its lower end, as in the public code: half a cell too low
centre     the same                        ``(j+1/2)/count``
nearest    around ``j/(count-1)``          ``j/(count-1)``, so 0 and 1 are exact
=========  ==============================  ==================

A number on the boundary between two cells belongs to the upper cell; 1 belongs to the last cell.
The ends of cells are these fractions as float64, so 0.3 is in the cell that begins at 3/10. Numbers
outside [0, 1] overflow.
"""

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats, Ints, UInt8s
from numtok.encoding.grid import GridScheme, Places, Units
from numtok.encoding.schemes._radix import DIGITS, check_digits, check_shared_settings
from numtok.encoding.schemes.base import Bounds, LargestError, SchemeDefaults, outcomes_of
from numtok.numerals.column import Numerals
from numtok.registry import name_of


class UnitScheme(GridScheme):
    """Base class for schemes that write cells of [0, 1] as digits. A unit is one cell. Subclasses
    map cells to digits."""

    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(normalizer="unit")
    extras: ClassVar[tuple[str, ...]] = ("NAN", "+INF", "-INF", "+OVERFLOW", "-OVERFLOW")
    most_digits: ClassVar[int] = len(DIGITS)

    def __post_init__(self) -> None:
        check_shared_settings(name_of(self), self.digits, self.point, self.repeat, self.most_digits)
        check_digits(name_of(self), "length", self.length, self.digits)

    @property
    @abstractmethod
    def length(self) -> int:
        """Number of digits per number."""

    @property
    @abstractmethod
    def point(self) -> str:
        """Point of the cell used in decoding: edge, centre or nearest."""

    @property
    @abstractmethod
    def digits(self) -> int:
        """Number of distinct digits."""

    @cached_property
    def count(self) -> int:
        """Number of cells."""
        return int(self.digits**self.length)

    @property
    def most(self) -> int:
        return self.count - 1

    @property
    def bounds(self) -> Bounds:
        return Bounds(0.0, 1.0)

    @property
    def error(self) -> LargestError:
        if self.point == "nearest":
            return LargestError(0.5 / (self.count - 1), absolute=True)
        return LargestError((1.0 if self.point == "edge" else 0.5) / self.count, absolute=True)

    @cached_property
    def covered(self) -> tuple[Bounds, Bounds]:
        return Bounds(0.0, 0.0), Bounds(0.0, 1.0)

    @property
    def places(self) -> Places:
        digits = (
            DIGITS[: self.digits]
            if self.digits <= len(DIGITS)
            else tuple(map(str, range(self.digits)))
        )
        return (digits,) * self.length

    def units_of(self, numerals: Numerals) -> tuple[UInt8s, Units]:
        values = numerals.values
        outcomes = outcomes_of(numerals, over=(values > 1) | (values < 0))
        inside = np.where(outcomes, 0.0, values)
        cells = np.floor(inside * self._steps + self._shift / 2).astype(np.int64)
        cells -= inside < self._begin(cells)  # if the product was rounded up to the next cell
        cells += inside >= self._begin(cells + 1)
        return outcomes, self.cells_as_units(np.minimum(cells, self.most))

    @staticmethod
    def cells_as_units(cells: Ints) -> Units:
        """Convert cells, int64[n], to units. Cells are never negative."""
        return Units(cells, np.zeros(len(cells), np.bool_))

    def values_of(self, units: Units) -> Floats:
        halves = 2 * units.counts + (self.point == "centre")
        return halves / (2 * self._steps)

    def ends(self, counts: Ints) -> tuple[Floats, Floats]:
        return self.between(counts, counts + 1)

    def between(self, first: Ints, beyond: Ints) -> tuple[Floats, Floats]:
        """Return the low and high ends of ranges of cells, float64[n] each. A range begins with the
        cell ``first`` and stops before the cell ``beyond``."""
        return np.maximum(self._begin(first), 0.0), np.minimum(self._begin(beyond), 1.0)

    @cached_property
    def _steps(self) -> int:
        """Number of steps between cells in [0, 1]."""
        return self.count - self._shift

    @cached_property
    def _shift(self) -> int:
        """Downward shift of the cells, in half steps."""
        return int(self.point == "nearest")

    def _begin(self, cells: Ints) -> Floats:
        """Return where cells begin, float64[n]. Operands are exact, so each is the nearest
        float64."""
        return (2 * cells - self._shift) / (2 * self._steps)
