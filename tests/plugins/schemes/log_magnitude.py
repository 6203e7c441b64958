"""log-magnitude: the sign is the token, the logarithm the channel. ``-60.2`` -> ``-``, 1.7796.

A scheme from outside the package, with a value channel that is not the number itself.
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

_LEAST, _MOST = 1e-30, 1e30
_TOKENS = ("+", "-", "0", "NAN", "+INF", "-INF", "+TINY", "-TINY", "+HUGE", "-HUGE")
_UNDERFLOW, _OVERFLOW = 6, 8  # ids of +TINY and +HUGE, which the negative ones follow


@dataclass(frozen=True)
class LogMagnitude(ChannelScheme):
    """float32 holds the base-10 logarithm, -30 to 30, to 2^-20."""

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "numtok's tests"
    defaults: ClassVar[SchemeDefaults] = SchemeDefaults(embedder="scaled", head="scalar")
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-1e2", "-", "-100.0"),
        ("-0", "0", "0.0"),
        ("1e-31", "+TINY", "underflow"),
    )

    @property
    def tokens_per_number(self) -> int:
        return 1

    @property
    def bounds(self) -> Bounds:
        return Bounds(_LEAST, _MOST)

    @property
    def error(self) -> LargestError:
        return LargestError(2.2e-6)  # 10 ** 2 ** -20 - 1

    def vocabulary(self) -> tuple[str, ...]:
        return _TOKENS

    def encode(self, numerals: Numerals) -> Encoded:
        values, negative = numerals.values, np.signbit(numerals.values)
        sizes = np.abs(values)
        above, below = numerals.out_of_float64()
        outcomes = np.zeros(len(values), np.uint8)
        for outcome, chosen in (
            (Outcome.POSITIVE_UNDERFLOW, sizes < _LEAST),
            (Outcome.POSITIVE_OVERFLOW, sizes > _MOST),
            (Outcome.ZERO, (sizes == 0) & ~below),
            (Outcome.POSITIVE_INFINITY, np.isinf(sizes) & ~above),
        ):
            outcomes[chosen] = outcome + negative[chosen]
        outcomes[np.isnan(values)] = Outcome.NAN
        tokens = np.where(outcomes, np.maximum(outcomes, 2), negative)  # 0 and -0 share one
        channel = np.log10(np.where(outcomes, 1.0, sizes)).astype(np.float32)
        lengths = np.ones(len(values), np.int32)
        return Encoded(tokens.astype(np.uint32), lengths, outcomes, channel)

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
        for index in np.flatnonzero(lengths == 1).tolist():
            token = int(tokens[ends[index] - 1])
            if token < len(_TOKENS):
                values[index], failures[index] = _read(token, float(channel[index]))
        return DecodedNumbers(values, failures)

    def next(self, prefix: tuple[int, ...]) -> Next:
        return Next(np.full(len(_TOKENS), not prefix), may_end=bool(prefix))

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        token = tokens[0]
        if 2 <= token < _UNDERFLOW:
            value = (0.0, np.nan, np.inf, -np.inf)[token - 2]
            return Bounds(value, value)
        if token < 2:
            low, high = _LEAST, _MOST
        else:
            low, high = (0.0, _LEAST) if token < _OVERFLOW else (_MOST, np.inf)
        return Bounds(-high, -low) if token % 2 else Bounds(low, high)


def _read(token: int, logarithm: float) -> tuple[float, Failure]:
    if token >= _OVERFLOW:
        return np.nan, Failure.OVERFLOW
    if token >= _UNDERFLOW:
        return np.nan, Failure.UNDERFLOW
    if token >= 2:
        return (0.0, np.nan, np.inf, -np.inf)[token - 2], Failure.NONE
    if np.isnan(logarithm):
        return np.nan, Failure.MALFORMED
    if logarithm > 30:
        return np.nan, Failure.OVERFLOW
    if logarithm < -30:
        return np.nan, Failure.UNDERFLOW
    # 10 ** -30 is a little off, and would not be written again.
    size = min(max(10**logarithm, _LEAST), _MOST)
    return (-size if token else size), Failure.NONE
