"""shortest: the digits that float64 needs, then an exponent. ``-60.2`` -> ``- 6 0 2 E1``.

A scheme from outside the package with a variable number of tokens.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes.base import (
    Bounds,
    Channel,
    DecodedNumbers,
    Encoded,
    Failure,
    LargestError,
    Next,
    Outcome,
    Scheme,
)
from numtok.numerals.column import Numerals

_EXPONENTS = range(-324, 309)
_FIRST_EXTRA = 12 + len(_EXPONENTS)
_EXTRAS = tuple(outcome for outcome in Outcome if outcome)
_FIXED = {
    Outcome.ZERO: 0.0,
    Outcome.NEGATIVE_ZERO: -0.0,
    Outcome.POSITIVE_INFINITY: np.inf,
    Outcome.NEGATIVE_INFINITY: -np.inf,
}


@dataclass(frozen=True)
class Shortest(Scheme):
    """The digits of Python's ``repr``, which keep every float64 exactly."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Steele and White (1990)"
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-6.02e1", "- 6 0 2 E1", "-60.2"),
        ("1e400", "POSITIVE_OVERFLOW", "overflow"),
    )

    @property
    def tokens_per_number(self) -> None:
        return None

    @property
    def bounds(self) -> Bounds:
        return Bounds(5e-324, float(np.finfo(np.float64).max))

    @property
    def error(self) -> LargestError:
        return LargestError(0.0)

    def vocabulary(self) -> tuple[str, ...]:
        exponents = tuple(f"E{exponent}" for exponent in _EXPONENTS)
        return ("+", "-", *"0123456789", *exponents, *(extra.name for extra in _EXTRAS))

    def encode(self, numerals: Numerals) -> Encoded:
        above, below = numerals.out_of_float64()
        outcomes = np.zeros(len(numerals), np.uint8)
        negative = np.signbit(numerals.values)
        for outcome, chosen in (
            (Outcome.ZERO, numerals.values == 0),
            (Outcome.POSITIVE_INFINITY, np.isinf(numerals.values)),
            (Outcome.POSITIVE_UNDERFLOW, below),
            (Outcome.POSITIVE_OVERFLOW, above),
        ):
            outcomes[chosen] = outcome + negative[chosen]
        outcomes[np.isnan(numerals.values)] = Outcome.NAN
        tokens: list[int] = []
        lengths = np.ones(len(numerals), np.int32)
        for index, value in enumerate(numerals.values.tolist()):
            if outcomes[index]:
                tokens.append(_FIRST_EXTRA + int(outcomes[index]) - 1)
                continue
            sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
            exponent = Decimal(repr(value)).adjusted()
            tokens += [sign, *(2 + one for one in digits), 12 + exponent - _EXPONENTS.start]
            lengths[index] = len(digits) + 2
        return Encoded(np.array(tokens, np.uint32), lengths, outcomes)

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: Channel | None = None,
    ) -> DecodedNumbers:
        values = np.full(len(lengths), np.nan)
        failures = np.zeros(len(lengths), np.uint8)
        end = 0
        for index, length in enumerate(lengths.tolist()):
            end += length
            values[index], failures[index] = self._read(tokens[end - length : end].tolist())
        return DecodedNumbers(values, failures)

    def _read(self, tokens: list[int]) -> tuple[float, Failure]:
        prefix: list[int] = []
        for token in tokens:
            if token >= _FIRST_EXTRA + len(_EXTRAS) or not self.next(tuple(prefix)).allowed[token]:
                return np.nan, Failure.MALFORMED
            prefix.append(token)
        if not self.next(tuple(tokens)).may_end:
            return np.nan, Failure.MALFORMED
        if tokens[0] >= _FIRST_EXTRA:
            extra = _EXTRAS[tokens[0] - _FIRST_EXTRA]
            if "FLOW" in extra.name:
                over = "OVER" in extra.name
                return np.nan, Failure.OVERFLOW if over else Failure.UNDERFLOW
            return _FIXED.get(extra, np.nan), Failure.NONE
        sign, *digits, exponent = tokens
        mantissa = "".join(str(token - 2) for token in digits)
        power = exponent - 12 + _EXPONENTS.start
        value = float(f"{'-' * sign}{mantissa[0]}.{mantissa[1:]}e{power}")
        if np.isinf(value):
            return np.nan, Failure.OVERFLOW
        return (value, Failure.NONE) if value else (np.nan, Failure.UNDERFLOW)

    def next(self, prefix: tuple[int, ...]) -> Next:
        allowed = np.zeros(_FIRST_EXTRA + len(_EXTRAS), np.bool_)
        if not prefix:
            allowed[:2] = allowed[_FIRST_EXTRA:] = True
        elif prefix[-1] < 12:
            allowed[3 if len(prefix) == 1 else 2 : 12] = len(prefix) <= 17
            allowed[12:_FIRST_EXTRA] = len(prefix) > 1
        return Next(allowed, may_end=bool(prefix) and prefix[-1] >= 12)

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        least, most = self.bounds
        if tokens[0] >= _FIRST_EXTRA:
            extra = _EXTRAS[tokens[0] - _FIRST_EXTRA]
            if "FLOW" in extra.name:
                low, high = (most, np.inf) if "OVER" in extra.name else (0.0, least)
                return Bounds(low, high) if "POS" in extra.name else Bounds(-high, -low)
        value, _ = self._read(list(tokens))
        return Bounds(value, value)
