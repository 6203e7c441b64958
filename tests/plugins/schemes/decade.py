"""decade: a token for sign and power of ten, the mantissa in the value channel.

A scheme from outside the package, with a value channel and a setting. ``-60.2`` -> ``-E1``, -6.02.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes.base import (
    Bounds,
    Channel,
    ChannelScheme,
    DecodedNumbers,
    Encoded,
    Failure,
    LargestError,
    Next,
    Outcome,
    SchemeDefaults,
)
from numtok.numerals.column import Numerals
from numtok.setting_values import Interval

_LARGEST = float(np.nextafter(np.float32(10), np.float32(0)))
_EDGE = (_LARGEST + 10) / 2  # from here on float32 rounds to 10
_EXTRAS = tuple(outcome for outcome in Outcome if outcome)
_VALUES = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, np.nan, np.nan, np.nan, np.nan])
_FAILURES = np.array([0] * 5 + [Failure.UNDERFLOW] * 2 + [Failure.OVERFLOW] * 2, np.uint8)


@dataclass(frozen=True)
class Decade(ChannelScheme):
    """The channel holds only the mantissa, 1 to 10 with a sign."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "numtok's tests"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(embedder="scaled", head="scalar")
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-6.5e1", "-E1", "-65.0"),
        ("0", "ZERO", "0.0"),
        ("1e31", "POSITIVE_OVERFLOW", "overflow"),
    )

    exponents: Interval = Interval(-30, 30)

    @property
    def _first_extra(self) -> int:
        return 2 * len(self.exponents)

    @property
    def tokens_per_number(self) -> int:
        return 1

    @property
    def bounds(self) -> Bounds:
        return Bounds(10.0**self.exponents.first, _LARGEST * 10.0**self.exponents.last)

    @property
    def error(self) -> LargestError:
        return LargestError(2.0**-24)

    def vocabulary(self) -> tuple[str, ...]:
        powers = range(self.exponents.first, self.exponents.last + 1)
        counted = tuple(f"{sign}E{power}" for sign in "+-" for power in powers)
        return (*counted, *(extra.name for extra in _EXTRAS))

    def encode(self, numerals: Numerals) -> Encoded:
        above, below = numerals.out_of_float64()
        outcomes = np.zeros(len(numerals), np.uint8)
        tokens = np.zeros(len(numerals), np.uint32)
        channel = np.ones(len(numerals), np.float32)
        for index, value in enumerate(numerals.values.tolist()):
            negative = bool(np.signbit(value))
            if np.isnan(value):
                outcomes[index] = Outcome.NAN
            elif above[index]:
                outcomes[index] = Outcome.POSITIVE_OVERFLOW + negative
            elif below[index]:
                outcomes[index] = Outcome.POSITIVE_UNDERFLOW + negative
            elif np.isinf(value):
                outcomes[index] = Outcome.POSITIVE_INFINITY + negative
            elif value == 0:
                outcomes[index] = Outcome.ZERO + negative
            else:
                written, _, power = f"{abs(value):.17e}".partition("e")
                mantissa, exponent = np.float32(written), int(power)
                if mantissa >= 10:
                    mantissa, exponent = np.float32(1), exponent + 1
                if exponent > self.exponents.last:
                    outcomes[index] = Outcome.POSITIVE_OVERFLOW + negative
                elif exponent < self.exponents.first:
                    outcomes[index] = Outcome.POSITIVE_UNDERFLOW + negative
                else:
                    channel[index] = -mantissa if negative else mantissa
                    place = exponent - self.exponents.first
                    tokens[index] = negative * len(self.exponents) + place
            if outcomes[index]:
                tokens[index] = self._first_extra + outcomes[index] - 1
        return Encoded(tokens, np.ones(len(numerals), np.int32), outcomes, channel)

    def decode(
        self,
        tokens: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        channel: Channel | None = None,
    ) -> DecodedNumbers:
        assert channel is not None
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        ends = np.cumsum(lengths)
        for index in np.flatnonzero(lengths == 1):
            token = int(tokens[ends[index] - 1])
            if token < self._first_extra:
                power = token % len(self.exponents) + self.exponents.first
                values[index] = float(channel[index]) * 10.0**power
                failures[index] = Failure.NONE
            elif token < self._first_extra + len(_EXTRAS):
                values[index] = _VALUES[token - self._first_extra]
                failures[index] = _FAILURES[token - self._first_extra]
        return DecodedNumbers(values, failures)

    def next(self, prefix: tuple[int, ...]) -> Next:
        size = self._first_extra + len(_EXTRAS)
        return Next(np.full(size, not prefix), may_end=bool(prefix))

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        first, last = self.exponents.first, self.exponents.last
        token = tokens[0]
        if token < self._first_extra:
            negative, power = divmod(token, len(self.exponents))
            low, high = _EDGE * 10.0 ** (power + first - 1), _EDGE * 10.0 ** (power + first)
            return Bounds(-high, -low) if negative else Bounds(low, high)
        extra = _EXTRAS[token - self._first_extra]
        if "FLOW" not in extra.name:
            value = float(_VALUES[token - self._first_extra])
            return Bounds(value, value)
        least, most = _EDGE * 10.0 ** (first - 1), _EDGE * 10.0**last
        low, high = (most, np.inf) if "OVER" in extra.name else (0.0, least)
        return Bounds(low, high) if "POS" in extra.name else Bounds(-high, -low)
