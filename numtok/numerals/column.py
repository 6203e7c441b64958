"""Columns of numbers, as float64 values and as literals. Schemes take them as input."""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools, Floats, Int32s, Ints, UInt8s
from numtok.numerals.literals import Significands, value_of


class Rounded(NamedTuple):
    """Numbers rounded to a given number of significant digits. Each number is about
    ``(-1)^negative * mantissa * 10^exponent``."""

    negative: Bools
    mantissa: Ints  # exactly the requested digits, or 0 for a zero
    exponent: NDArray[np.signedinteger[Any]]


class Literals(NamedTuple):
    """Numbers as written in a text: literal i is ``data[starts[i]:ends[i]]``."""

    data: UInt8s  # [bytes]
    starts: Int32s  # [n]
    ends: Int32s  # [n]

    @classmethod
    def of(cls, literals: Sequence[str]) -> "Literals":
        """Build literals from a list of strings."""
        encoded = [literal.encode() for literal in literals]
        bounds = np.zeros(len(encoded) + 1, np.int32)
        np.cumsum([len(literal) for literal in encoded], out=bounds[1:])
        return cls(
            np.frombuffer(b"".join(encoded), np.uint8), bounds[:-1].copy(), bounds[1:].copy()
        )

    def take(self, keep: Ints | Bools | slice) -> "Literals":
        """Return the literals at ascending indices, or those for which a mask [n] is True."""
        return Literals(self.data, self.starts[keep], self.ends[keep])

    def at(self, index: int) -> str:
        """Return the literal at an index as a string."""
        return self.data[self.starts[index] : self.ends[index]].tobytes().decode()


class Numerals:
    """A column of n numbers, with their float64 values and their literals as written.

    For values without a literal, such as normalized values, the literal is Python's ``repr``, which
    is computed only if a scheme needs digits.

    >>> Numerals.of_literals(["-6.02e1", "0.1435"]).rounded(3).mantissa
    array([602, 144])
    """

    def __init__(
        self,
        values: Floats,
        literals: Literals | None = None,
        significands: Significands | None = None,
        source: "Numerals | None" = None,
        keeps_zero: bool = False,
    ) -> None:
        self.values = values
        self._literals = literals
        self._significands = significands
        self._source = source
        self._keeps_zero = keeps_zero
        #: bool[n], which numbers are part of an answer; None outside of texts.
        self.in_answer: Bools | None = None

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def read(cls, literals: Literals) -> "Numerals":
        """Build the numbers from literals found by the scanner. A compiled kernel reads their
        values."""
        from numtok.numerals.decimals import read

        values, significands = read(*literals)
        return cls(values, literals, significands)

    @classmethod
    def of_literals(cls, literals: Sequence[str]) -> "Numerals":
        """Return the numbers for a list of literals. Each literal must be a number under the
        numeral policy, or nan, inf or -inf."""
        values = np.array([value_of(literal) for literal in literals], np.float64)
        return cls(values, Literals.of(literals))

    def with_values(self, values: Floats, keeps_zero: bool = False) -> "Numerals":
        """Return the same numbers with new (normalized) values [n], which are encoded in place of
        the original ones.

        ``keeps_zero`` is True if normalization maps only 0 to 0; any other number with a new value
        of 0 is then too small for float64.
        """
        made = Numerals(values, source=self, keeps_zero=keeps_zero)
        made.in_answer = self.in_answer
        return made

    def of_texts(self, in_answer: Bools) -> "Numerals":
        """Return a copy in which ``in_answer`` (bool[n]) marks the numbers that are part of an
        answer."""
        placed = copy.copy(self)
        placed.in_answer = in_answer
        return placed

    @property
    def literals(self) -> Literals:
        """Literals of the numbers.

        A number outside the range of float64 keeps its literal as written. If the new value of a
        finite number (see :meth:`with_values`) is out of range, its literal is a number such as
        1e400 or -1e-400.
        """
        if self._literals is None:
            written = [repr(value) for value in self.values.tolist()]
            if self._source is not None:
                infinite = np.isinf(self.values)
                _, below = self.out_of_float64()
                for index in np.flatnonzero(infinite | (below & (self.values == 0))).tolist():
                    written[index] = self._source.literals.at(index)
                flushed = below & (self._source.values != 0)
                for index in np.flatnonzero(flushed).tolist():
                    written[index] = "-1e-400" if self._source.values[index] < 0 else "1e-400"
                for index in np.flatnonzero(infinite & np.isfinite(self._source.values)).tolist():
                    written[index] = "1e400" if self.values[index] > 0 else "-1e400"
            self._literals = Literals.of(written)
        return self._literals

    @property
    def significands(self) -> Significands:
        """Sign, digits and exponent of each literal. The digits are 0 if a literal has none (nan,
        inf)."""
        if self._significands is None:
            from numtok.numerals.decimals import read

            _, self._significands = read(*self.literals)
        return self._significands

    def rounded(self, digits: int) -> Rounded:
        """Return every number rounded exactly to ``digits`` significant digits, with ties to even.

        The digits of the literals are rounded, not the float64 values. A literal without digits
        (nan, inf) has the mantissa 0.
        """
        from numtok.numerals.decimals import round_half_even

        significands = self.significands
        return Rounded(significands.negative, *round_half_even(significands, digits))

    def out_of_float64(self) -> tuple[Bools, Bools]:
        """Return two arrays bool[n]: which numbers are too large for float64, and which are too
        small.

        They mark literals such as 1e400 and 1e-400, and finite numbers whose new value (see
        :meth:`with_values`) is infinite, or is 0 although normalization maps only 0 to 0.
        """
        if self._source is not None:
            above, below = self._source.out_of_float64()
            above |= np.isinf(self.values) & np.isfinite(self._source.values)
            if self._keeps_zero:
                below |= (self.values == 0) & (self._source.values != 0)
            return above, below
        if self._literals is None:  # every value stands for itself
            return np.zeros(len(self), np.bool_), np.zeros(len(self), np.bool_)
        written = self.significands.digits != 0
        return written & np.isinf(self.values), written & (self.values == 0)
