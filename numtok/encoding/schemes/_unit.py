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
from numpy.typing import NDArray

from numtok.encoding.schemes._slots import DIGITS, SlotScheme, check_digits, check_shared_settings
from numtok.encoding.schemes.base import Bounds, outcomes_of
from numtok.numerals.column import Numerals
from numtok.registry import name_of


class UnitScheme(SlotScheme):
    """Cells of [0, 1] as digits; leaves say which cell has which digits."""

    normalizer: ClassVar[str] = "unit"
    absolute: ClassVar[bool] = True
    unit_interval: ClassVar[bool] = True
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
        """Where in a cell what is read lies: edge, centre or nearest."""

    @property
    @abstractmethod
    def digits(self) -> int:
        """How many digits there are; a digit's id is its value."""

    @abstractmethod
    def digits_of(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """The digit of each cell [n] at each position."""

    @abstractmethod
    def cells_of(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """The inverse of :meth:`digits_of`, for a table [n, length]."""

    @cached_property
    def count(self) -> int:
        """How many cells there are."""
        return int(self.digits**self.length)

    @property
    def bounds(self) -> Bounds:
        return Bounds(0.0, 1.0)

    @property
    def error(self) -> float:
        if self.point == "nearest":
            return 0.5 / (self.count - 1)
        return (1.0 if self.point == "edge" else 0.5) / self.count

    @property
    def covered(self) -> tuple[Bounds, Bounds]:
        return Bounds(0.0, 0.0), Bounds(0.0, 1.0)

    def slots(self) -> tuple[range, ...]:
        return (range(self.digits),) * self.length

    def counted_vocabulary(self) -> tuple[str, ...]:
        return tuple(
            DIGITS[: self.digits] if self.digits <= len(DIGITS) else map(str, range(self.digits))
        )

    def write_numbers(self, numerals: Numerals) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        values = numerals.values
        outcomes = outcomes_of(numerals, over=(values > 1) | (values < 0))
        inside = np.where(outcomes, 0.0, values)
        cells = np.floor(inside * self._steps + self._shift / 2).astype(np.int64)
        cells -= inside < self.ends(cells)  # where the product was rounded to the next cell
        cells += inside >= self.ends(cells + 1)
        cells = np.minimum(cells, self.count - 1)
        return outcomes, np.column_stack(self.digits_of(cells)).astype(np.uint32)

    def read_numbers(self, table: NDArray[np.int64]) -> NDArray[np.float64]:
        halves = 2 * self.cells_of(table) + (self.point == "centre")
        return halves / (2 * self._steps)

    def spans(self, table: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        cells = self.cells_of(table)
        return np.maximum(self.ends(cells), 0.0), np.minimum(self.ends(cells + 1), 1.0)

    @cached_property
    def _steps(self) -> int:
        """How often the distance from one cell to the next fits into [0, 1]."""
        return self.count - self._shift

    @cached_property
    def _shift(self) -> int:
        """By how many halves of a step the cells lie lower than those that begin at 0."""
        return int(self.point == "nearest")

    def ends(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64[n]: where cells begin; exact operands, so each is the nearest float64."""
        return (2 * cells - self._shift) / (2 * self._steps)
