"""Schemes that write ``[NUM]`` for every number, the number itself in the channel beside it."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.schemes._single import SingleTokenScheme
from numtok.encoding.schemes.base import Bounds, Channel, Encoded, Failure, outcomes_of
from numtok.numerals.column import Numerals

# In the order of their outcomes, from that of NaN on.
_EXTRAS = ("NAN", "+INF", "-INF", "+UNDERFLOW", "-UNDERFLOW", "+OVERFLOW", "-OVERFLOW")
# By token, that of an ordinary number first.
_VALUES = np.array([0, np.nan, np.inf, -np.inf, np.nan, np.nan, np.nan, np.nan])
_FAILURES = np.array(
    [Failure.NONE] * 4 + [Failure.UNDERFLOW] * 2 + [Failure.OVERFLOW] * 2, np.uint8
)


class ValuedScheme(SingleTokenScheme):
    """Zero is an ordinary number. What the channel cannot hold has a declared token and 1 beside
    it. Leaves say which numbers the channel holds, and how.
    """

    @abstractmethod
    def held(self, values: NDArray[np.float64]) -> Channel:
        """[n]: what the channel holds of values float64[n]; what lies beyond :attr:`bounds` is
        beyond them there too."""

    @property
    def paper_vocabulary_size(self) -> int:
        return 1

    @property
    def factors(self) -> NDArray[np.float64]:
        return np.array([1.0, *[np.nan] * len(_EXTRAS)])

    def vocabulary(self) -> tuple[str, ...]:
        return ("[NUM]", *_EXTRAS)

    def encode(self, numerals: Numerals) -> Encoded:
        channel = self.held(numerals.values)
        _, below = numerals.out_of_float64()
        low, high = self.bounds
        under = (np.abs(channel) < low) & ((numerals.values != 0) | below)
        outcomes = outcomes_of(numerals, over=np.abs(channel) > high, under=under)
        channel[outcomes > 0] = 1.0
        tokens = np.maximum(outcomes, 2).astype(np.uint32) - np.uint32(2)
        return Encoded(tokens, np.ones(len(numerals), np.int32), outcomes, channel)

    def read(
        self, tokens: NDArray[np.int64], channel: Channel
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        values = np.where(tokens == 0, channel.astype(np.float64), _VALUES[tokens])
        failures = _FAILURES[tokens]
        # A model may have said what no channel holds.
        failures[(tokens == 0) & np.isinf(values)] = Failure.OVERFLOW
        failures[(tokens == 0) & np.isnan(values)] = Failure.MALFORMED
        values[failures > 0] = np.nan
        return values, failures

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        low, high = self.bounds
        return (
            Bounds(-np.inf, np.inf),  # the channel says which
            Bounds(np.nan, np.nan),
            Bounds(np.inf, np.inf),
            Bounds(-np.inf, -np.inf),
            Bounds(0.0, low),
            Bounds(-low, 0.0),
            Bounds(high, np.inf),
            Bounds(-np.inf, -high),
        )[tokens[0]]


class EveryFloat(ValuedScheme):
    """The channel holds every float64, from 5e-324 to 1.8e308, and -0."""

    exact: ClassVar[bool] = True
    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-60.20", "[NUM]", "-60.2"),
        ("-0", "[NUM]", "-0.0"),
        ("0.30000000000000004", "[NUM]", "0.30000000000000004"),
        ("5e-324", "[NUM]", "5e-324"),
        ("1e400", "+OVERFLOW", "overflow"),
        ("nan", "NAN", "nan"),
    )

    @property
    def bounds(self) -> Bounds:
        return Bounds(float(np.nextafter(0.0, 1.0)), float(np.finfo(np.float64).max))

    @property
    def error(self) -> float:
        return 0.0

    def held(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values.copy()
