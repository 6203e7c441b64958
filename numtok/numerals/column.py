"""A column of numbers: literals as written, with their values; what schemes encode."""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Written exponents are taken as at most this. More zeros than that fit into no text, so
# no digits before the exponent can make up for it.
_EXPONENT_LIMIT = 10**9


class Rounded(NamedTuple):
    """Numbers rounded to significant digits: about ``(-1)^negative * mantissa * 10^exponent``."""

    negative: NDArray[np.bool_]
    mantissa: NDArray[np.int64]  # exactly the digits asked for, or 0 for a zero
    exponent: NDArray[np.int32]


class Literals(NamedTuple):
    """Numbers as written: literal i is ``data[starts[i]:ends[i]]``."""

    data: NDArray[np.uint8]  # [bytes]
    starts: NDArray[np.int32]  # [n]
    ends: NDArray[np.int32]  # [n]

    @classmethod
    def of(cls, literals: Sequence[str]) -> "Literals":
        """Literals from strings."""
        encoded = [literal.encode() for literal in literals]
        bounds = np.zeros(len(encoded) + 1, np.int32)
        np.cumsum([len(literal) for literal in encoded], out=bounds[1:])
        return cls(
            np.frombuffer(b"".join(encoded), np.uint8), bounds[:-1].copy(), bounds[1:].copy()
        )

    def at(self, index: int) -> str:
        """One literal."""
        return self.data[self.starts[index] : self.ends[index]].tobytes().decode()


class Significands(NamedTuple):
    """The digits of literals: a number is about ``(-1)^negative * digits * 10^exponents``."""

    digits: NDArray[np.uint64]  # [n] the first 19 significant digits, fewer if there are fewer
    exponents: NDArray[np.int32]  # [n] 0 for a zero
    negative: NDArray[np.bool_]  # [n]
    more: NDArray[np.bool_]  # [n] digits that are not zero follow after the 19


class Numerals:
    """A column of ``n`` numbers: float64 values, and literals as written.

    Where there is no literal (a normalised value, say), Python's ``repr`` of the value is the
    literal; those are made only when a scheme asks for digits.

    >>> Numerals.of_literals(["-6.02e1", "0.1435"]).rounded(3).mantissa
    array([602, 144])
    """

    def __init__(
        self,
        values: NDArray[np.float64],
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

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def read(cls, literals: Literals) -> "Numerals":
        """Numbers from literals that the scanner found: all values at once, compiled."""
        from numtok.numerals.decimals import read

        values, significands = read(*literals)
        return cls(values, literals, significands)

    @classmethod
    def of_literals(cls, literals: Sequence[str]) -> "Numerals":
        """Numbers from literals, each one number under the numeral policy, or nan, inf, -inf."""
        values = np.array([value_of(literal) for literal in literals], np.float64)
        return cls(values, Literals.of(literals))

    def with_values(self, values: NDArray[np.float64], keeps_zero: bool = False) -> "Numerals":
        """The same numbers with other (normalised) values, which become what is written.

        ``keeps_zero`` says that only 0 becomes 0: any other number whose value is 0 then was too
        small for float64.
        """
        return Numerals(values, source=self, keeps_zero=keeps_zero)

    @property
    def literals(self) -> Literals:
        """The literals; numbers that never fitted into float64 keep the literal they had, and
        finite ones whose other values do not fit are written beyond it."""
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
        """The digits of the literals; 0 for a literal without digits (nan, inf)."""
        if self._significands is None:
            from numtok.numerals.decimals import read

            _, self._significands = read(*self.literals)
        return self._significands

    def rounded(self, digits: int) -> Rounded:
        """Every literal rounded half to even to ``digits`` significant digits, exactly.

        A literal without digits (nan, inf) gives the mantissa 0.
        """
        from numtok.numerals.decimals import round_half_even

        significands = self.significands
        return Rounded(significands.negative, *round_half_even(significands, digits))

    def out_of_float64(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """bool[n], bool[n]: literals such as 1e400 and 1e-400, whose value is inf and 0; also
        finite numbers whose other value is inf, or 0 where only 0 may become 0."""
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


def plain_literal(literal: str) -> str:
    """A numeral as ``float()`` and ``decimal.Decimal()`` read it.

    >>> plain_literal("−1,234.5%")
    '-1234.5e-2'
    """
    if not literal.endswith("%"):
        return literal.replace(",", "").replace("\u2212", "-")
    digits, power = _digits_and_power(literal)
    return f"{digits}e{power}"


def _digits_and_power(literal: str) -> tuple[str, int]:
    """What stands before the exponent, and the power of ten that exponent and percent make."""
    percent = literal.endswith("%")
    plain = literal.removesuffix("%").replace(",", "").replace("\u2212", "-").lower()
    digits, _, exponent = plain.partition("e")
    power = Decimal(exponent or 0)  # int() refuses more than 4300 digits
    if abs(power) > _EXPONENT_LIMIT:
        power = Decimal(_EXPONENT_LIMIT).copy_sign(power)
    return digits, int(power) - 2 * percent


def value_of(literal: str) -> float:
    """The float64 nearest to one literal; ValueError if it is no number."""
    return float(plain_literal(literal))


def resolution(literal: str) -> float:
    """What a unit of the last written digit is worth; ValueError if it is no decimal number.

    >>> resolution("-1,234.50"), resolution("12%"), resolution("3e4")
    (0.01, 0.01, 10000.0)
    """
    written, power = _digits_and_power(literal)
    if not written.lstrip("+-").replace(".", "", 1).isdecimal():
        raise ValueError(f"{literal!r} is no decimal number")
    return float(f"1e{power - len(written.partition('.')[2])}")


def round_literal(literal: str, digits: int) -> tuple[bool, int, int]:
    """One literal rounded by Python's decimal arithmetic: what :meth:`Numerals.rounded` does,
    where no kernel is at hand (evaluation), and its oracle.

    >>> round_literal("9.996", 3)
    (False, 100, -1)
    """
    written, power = _digits_and_power(literal)
    exact = Decimal(written)
    if not exact:
        return exact.is_signed(), 0, 0
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=-(10**9), Emax=10**9)
    sign, kept, exponent = context.plus(exact).as_tuple()
    assert isinstance(exponent, int)  # a finite decimal
    missing = digits - len(kept)
    return bool(sign), int("".join(map(str, kept))) * 10**missing, exponent - missing + power
