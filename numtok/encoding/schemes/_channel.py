"""Base classes for schemes with one token per number and a value channel.

:class:`ValuedScheme` writes ``[NUM]`` for every number; the channel holds the number itself.
:class:`MantissaScheme` writes the exponent; the channel holds the signed mantissa.
"""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from numtok.arrays import Floats, Int32s, Ints, UInt8s, UInt32s
from numtok.encoding.schemes._radix import compose
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
    outcomes_of,
)
from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from numtok.registry import name_of
from numtok.setting_values import Interval

# In the order of the outcomes, starting at NaN.
_VALUED_EXTRAS = ("NAN", "+INF", "-INF", "+UNDERFLOW", "-UNDERFLOW", "+OVERFLOW", "-OVERFLOW")
# By token; the token of an ordinary number comes first.
_VALUED_VALUES = np.array([0, np.nan, np.inf, -np.inf, np.nan, np.nan, np.nan, np.nan])
_FAILURES = np.array(
    [Failure.NONE] * 4 + [Failure.UNDERFLOW] * 2 + [Failure.OVERFLOW] * 2, np.uint8
)

_EXTRAS, _VALUES = ("NAN", "+INF", "-INF"), np.array([np.nan, np.inf, -np.inf])
_WIDEST = Interval(-290, 290)  # so that float64 holds all products
_POWERS_OF_TEN = np.uint64(10) ** np.arange(20, dtype=np.uint64)
_MOST = np.nextafter(np.float32(10), np.float32(0))  # a mantissa is below 10
_DIGITS = (6, 7, 8, 9)  # float32 keeps any 6 digits; 9 digits identify every float32
_PLACES = 8  # powers of ten around [1, 10) for which a channel is read by its decimal digits


class SingleTokenScheme(ChannelScheme):
    """Base class for schemes with one token per number. Subclasses decode the token together with
    its channel value."""

    @property
    def tokens_per_number(self) -> int:
        return 1

    @abstractmethod
    def read(self, tokens: Ints, channel: Channel) -> tuple[Floats, UInt8s]:
        """Return the values and failures of n numbers, given the token and the channel value of
        each number. All tokens are in the vocabulary."""

    def decode(
        self, tokens: UInt32s, lengths: Int32s, channel: Channel | None = None
    ) -> DecodedNumbers:
        if channel is None:
            raise ValueError(f"{name_of(self)}: decoding needs the value channel")
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        single = np.flatnonzero(lengths == 1)
        token = tokens.astype(np.int64)[np.cumsum(lengths, dtype=np.int64)[single] - 1]
        in_vocabulary = token < len(self.vocabulary())
        single = single[in_vocabulary]
        values[single], failures[single] = self.read(token[in_vocabulary], channel[single])
        return DecodedNumbers(values, failures)

    def next(self, prefix: tuple[int, ...]) -> Next:
        return Next(np.full(len(self.vocabulary()), not prefix), may_end=bool(prefix))


class ValuedScheme(SingleTokenScheme):
    """Base class for schemes that store the number itself in the channel. Zero is an ordinary
    number.

    A number that the channel cannot represent gets a special token and the channel value 1.
    Subclasses define which numbers the channel represents, and how.
    """

    @abstractmethod
    def held(self, values: Floats) -> Channel:
        """Return the channel values [n] of numbers, float64[n]. A number outside :attr:`bounds`
        must remain outside when it is converted."""

    @property
    def factors(self) -> Floats:
        return np.array([1.0, *[np.nan] * len(_VALUED_EXTRAS)])

    def vocabulary(self) -> tuple[str, ...]:
        return ("[NUM]", *_VALUED_EXTRAS)

    def encode(self, numerals: Numerals) -> Encoded:
        channel = self.held(numerals.values)
        _, below = numerals.out_of_float64()
        low, high = self.bounds
        under = (np.abs(channel) < low) & ((numerals.values != 0) | below)
        outcomes = outcomes_of(numerals, over=np.abs(channel) > high, under=under)
        channel[outcomes > 0] = 1.0
        tokens = np.maximum(outcomes, 2).astype(np.uint32) - np.uint32(2)
        return Encoded(tokens, np.ones(len(numerals), np.int32), outcomes, channel)

    def read(self, tokens: Ints, channel: Channel) -> tuple[Floats, UInt8s]:
        values = np.where(tokens == 0, channel.astype(np.float64), _VALUED_VALUES[tokens])
        failures = _FAILURES[tokens]
        # A model may predict values that no channel holds.
        failures[(tokens == 0) & np.isinf(values)] = Failure.OVERFLOW
        failures[(tokens == 0) & np.isnan(values)] = Failure.MALFORMED
        values[failures > 0] = np.nan
        return values, failures

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        low, high = self.bounds
        return (
            Bounds(-np.inf, np.inf),  # the channel holds the value
            Bounds(np.nan, np.nan),
            Bounds(np.inf, np.inf),
            Bounds(-np.inf, -np.inf),
            Bounds(0.0, low),
            Bounds(-low, 0.0),
            Bounds(high, np.inf),
            Bounds(-np.inf, -high),
        )[tokens[0]]


class EveryFloat(ValuedScheme):
    """Base class for schemes whose channel stores every float64, from 5e-324 to 1.8e308, and -0."""

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
    def error(self) -> LargestError:
        return LargestError(0.0)

    def held(self, values: Floats) -> Floats:
        return values.copy()


class MantissaScheme(SingleTokenScheme):
    """Base class for schemes that write the exponent of a number as its single token and store the
    signed mantissa in the channel. Subclasses choose the embedder and define the field
    ``exponents``.

    In addition to the tokens for ``exponents``, one token stands for all smaller exponents and one
    for all larger ones. The NumGPT paper calls them -INF and +INF. Here they are called
    ``UNDERFLOW`` and ``OVERFLOW``, because infinities have their own tokens. Numbers with these two
    tokens also keep their mantissa in the channel. Zero has mantissa 0 and exponent 0; NaN and
    infinities have the channel value 1.

    Decoding reads a channel as the shortest decimal that identifies the float32, so numbers of up
    to six digits are exact. A head may predict a mantissa outside [1, 10), which is used as is: 0.5
    with E3 is 500, and 12 with E0 is 12.
    """

    golden: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("-123", "E2", "-123.0"),  # Equation 1
        ("2300", "E3", "2300.0"),
        ("0.23", "E-1", "0.23"),
        ("1000", "E3", "1000.0"),
        ("9.99999999999", "E0", "9.999999"),
        ("0", "E0", "0.0"),
        ("1e-8", "E-8", "1e-08"),
        ("9e-9", "UNDERFLOW", "underflow"),
        ("-1e13", "OVERFLOW", "overflow"),
    )

    exponents: Interval

    def __post_init__(self) -> None:
        """Reject exponents that do not include 0 or whose numbers exceed float64."""
        ends = self.exponents.first, self.exponents.last
        if 0 not in self.exponents or not all(end in _WIDEST for end in ends):
            raise UsageError(
                f"{name_of(self)}: exponents must include 0 and lie within "
                f"{_WIDEST.first}..{_WIDEST.last} (got {self.exponents})"
            )

    @property
    def bounds(self) -> Bounds:
        # Literals just below the ends have the ends themselves as their float64.
        least, beyond = (float(f"1e{power}") for power in (self._powers[0], self._powers[-1] + 1))
        return Bounds(float(np.nextafter(least, np.inf)), float(np.nextafter(beyond, 0.0)))

    @property
    def error(self) -> LargestError:
        return LargestError(2.0**-23)  # just below 10; half of it elsewhere

    @property
    def factors(self) -> Floats:
        powers = [float(f"1e{power}") for power in self._powers]
        return np.array([*powers, 0.0, np.inf, *[np.nan] * len(_EXTRAS)])

    @property
    def _first_extra(self) -> int:
        """Id of the token for NaN, the first token that is not defined in the paper."""
        return len(self.exponents) + 2

    @property
    def _powers(self) -> range:
        return range(self.exponents.first, self.exponents.last + 1)

    def vocabulary(self) -> tuple[str, ...]:
        return (*(f"E{power}" for power in self._powers), "UNDERFLOW", "OVERFLOW", *_EXTRAS)

    def encode(self, numerals: Numerals) -> Encoded:
        digits, powers, negative, _ = numerals.significands
        places = np.searchsorted(_POWERS_OF_TEN, digits, "right") - 1  # after the first digit
        exponent = np.where(digits == 0, 0, powers.astype(np.int64) + places)
        size = digits.astype(np.float64) / 10.0 ** np.maximum(places, 0)
        channel = np.minimum(size.astype(np.float32), _MOST)
        channel[negative] *= np.float32(-1)

        first, last = self.exponents.first, self.exponents.last
        outcomes = outcomes_of(numerals, over=exponent > last, under=exponent < first)
        channel[(outcomes >= Outcome.NAN) & (outcomes <= Outcome.NEGATIVE_INFINITY)] = 1.0
        tokens = np.where(outcomes == 0, exponent - self.exponents.first, self._other[outcomes])
        lengths = np.ones(len(numerals), np.int32)
        return Encoded(tokens.astype(np.uint32), lengths, outcomes, channel)

    @property
    def _other(self) -> Ints:
        """Token of each outcome that is not an ordinary number, int64[outcomes]."""
        under, over, nan, plus, minus = range(len(self.exponents), len(self.vocabulary()))
        return np.array([0, 0, 0, nan, plus, minus, under, under, over, over])

    def read(self, tokens: Ints, channel: Channel) -> tuple[Floats, UInt8s]:
        ordinary, extra = tokens < len(self.exponents), tokens - self._first_extra
        values = np.where(extra >= 0, _VALUES[np.maximum(extra, 0)], np.nan)
        values[ordinary] = _product(channel[ordinary], tokens[ordinary] + self.exponents.first)
        failures = np.zeros(len(tokens), np.uint8)
        failures[extra == -2], failures[extra == -1] = Failure.UNDERFLOW, Failure.OVERFLOW
        return values, failures

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        (token,) = tokens
        if token >= self._first_extra:
            value = float(_VALUES[token - self._first_extra])
            return Bounds(value, value)
        if token == len(self.exponents) + 1:
            return Bounds(-np.inf, np.inf)
        power = self.exponents.first - 1 if token == len(self.exponents) else self._powers[token]
        edge = float(f"1e{power + 1}")
        return Bounds(-edge, edge)  # the sign is in the channel


def _product(channel: Channel, power: Ints) -> Floats:
    """Multiply channels by powers of ten: float64[n]. Each channel is read as its shortest decimal.

    >>> _product(np.array([-1.23, 0.5], np.float32), np.array([2, 3])).tolist()
    [-123.0, 500.0]
    """
    exact = channel.astype(np.float64)
    with np.errstate(over="ignore"):
        values: Floats = exact * np.array([float(f"1e{n}") for n in power.tolist()])
    size = np.abs(exact)
    lead = np.searchsorted(10.0 ** np.arange(1 - _PLACES, _PLACES + 1), size, "right") - _PLACES
    left = np.flatnonzero((size >= 10.0**-_PLACES) & (size < 10.0**_PLACES))
    none = np.zeros(len(channel), np.bool_)
    for digits in _DIGITS:
        unit = lead[left] - digits + 1
        mantissa = np.rint(compose(none[left], np.ones(len(left), np.int64), -unit) * size[left])
        whole = mantissa.astype(np.int64)
        read = compose(none[left], whole, unit).astype(np.float32)
        same = (read == np.abs(channel[left])) | (digits == _DIGITS[-1])
        values[left[same]] = compose(
            exact[left[same]] < 0, whole[same], unit[same] + power[left[same]]
        )
        left = left[~same]
    return values
