"""What the schemes of [0, 1] share: the interval is cut into cells, and a number is one of them.

"Decoding-based Regression", Section 3.2, normalised tokenization: ``count = base^length`` cells.
Where they lie, and what is read, says ``point``:

=========  ==============================  ==================
point      cell ``j``                      read as
=========  ==============================  ==================
edge       ``j/count`` to ``(j+1)/count``  its lower end, as in the public code: half a cell too low
centre     the same                        ``(j+1/2)/count``
nearest    around ``j/(count-1)``          that, so 0 and 1 are exact
=========  ==============================  ==================

A number on the border of two cells belongs to the upper one, 1 to the last. Ends are those
fractions as float64, so 0.3 is in the cell that begins with 3/10. Numbers outside [0, 1] overflow.
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
    """Cells of [0, 1] as digits; a unit is one cell. Subclasses say which cell has which digits."""

    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(normalizer="unit")
    extras: ClassVar[tuple[str, ...]] = ("NAN", "+INF", "-INF", "+OVERFLOW", "-OVERFLOW")
    most_digits: ClassVar[int] = len(DIGITS)

    def __post_init__(self) -> None:
        check_shared_settings(name_of(self), self.digits, self.point, self.repeat, self.most_digits)
        check_digits(name_of(self), "length", self.length, self.digits)

    @property
    @abstractmethod
    def length(self) -> int:
        """How many digits a number has."""

    @property
    @abstractmethod
    def point(self) -> str:
        """The point of a cell that is read: edge, centre or nearest."""

    @property
    @abstractmethod
    def digits(self) -> int:
        """The number of different digits."""

    @cached_property
    def count(self) -> int:
        """The number of cells."""
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
        cells -= inside < self._begin(cells)  # where the product was rounded to the next cell
        cells += inside >= self._begin(cells + 1)
        return outcomes, self.cells_as_units(np.minimum(cells, self.most))

    @staticmethod
    def cells_as_units(cells: Ints) -> Units:
        """Cells, int64[n], as units: no cell is negative."""
        return Units(cells, np.zeros(len(cells), np.bool_))

    def values_of(self, units: Units) -> Floats:
        halves = 2 * units.counts + (self.point == "centre")
        return halves / (2 * self._steps)

    def ends(self, counts: Ints) -> tuple[Floats, Floats]:
        return self.between(counts, counts + 1)

    def between(self, first: Ints, beyond: Ints) -> tuple[Floats, Floats]:
        """float64[n] each: where the first of several cells begins, and where the last ends."""
        return np.maximum(self._begin(first), 0.0), np.minimum(self._begin(beyond), 1.0)

    @cached_property
    def _steps(self) -> int:
        """How often the distance from one cell to the next fits into [0, 1]."""
        return self.count - self._shift

    @cached_property
    def _shift(self) -> int:
        """By how many halves of a step the cells lie lower than those that begin at 0."""
        return int(self.point == "nearest")

    def _begin(self, cells: Ints) -> Floats:
        """float64[n]: where cells begin; exact operands, so each is the nearest float64."""
        return (2 * cells - self._shift) / (2 * self._steps)
