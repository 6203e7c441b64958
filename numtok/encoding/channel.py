"""Normalized numbers for schemes and value heads, and counts of numbers that are stored inexactly
(in the channel, or in the float64 column ``numbers``)."""

import re

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints, UInt8s
from numtok.encoding.normalizers.base import FittedNormalizer
from numtok.encoding.schemes.base import Channel, ChannelScheme, DigitLimit, Encoded, Outcome
from numtok.numerals.column import Numerals
from numtok.numerals.literals import Significands

_FLOAT64_HOLDS = 10**15  # float64 holds every literal whose digits, as an integer, are fewer
_HELD = 10**6  # digits, read as one number, that float32 holds whatever they are multiplied by
_E, _DIGIT = re.compile("[eE]"), re.compile("[0-9]")


def normalized(numerals: Numerals, by: FittedNormalizer) -> Numerals:
    """The numbers that a scheme is given: those of the text, normalised."""
    if by.normalizer.identity:
        return numerals
    return numerals.with_values(by.forward(numerals.values), by.normalizer.keeps_zero)


def normalised_values(values: Floats, by: FittedNormalizer) -> NDArray[np.float32]:
    """float32[n]: raw values float64[n] as a value head learns them where there is no channel; NaN
    for what float32 cannot hold."""
    with np.errstate(over="ignore"):
        single = by.forward(values).astype(np.float32)
    return np.where(np.isfinite(single), single, np.float32(np.nan))


class ChannelValues:
    """What a value head learns of the numbers of a scheme that has a channel: that, or the numbers
    of the text where it holds them as they are; NaN where the token says all of the number, and no
    value stands beside it."""

    def __init__(self, scheme: ChannelScheme, normalizer: FittedNormalizer) -> None:
        factors = scheme.factors
        self._wordy = np.isnan(factors)
        whole = bool((factors[~self._wordy] == 1).all())
        self._as_they_are = normalizer.normalizer.identity and whole

    def __call__(self, tokens: Ints, channel: Channel, numbers: Floats) -> Channel:
        """[n]: by the local ids [n] of the first tokens of numbers, the channel [n] beside these
        and the numbers float64[n] of the text."""
        beside = numbers if self._as_they_are else channel
        return np.where(self._wordy[tokens], np.float32(np.nan), beside)


def inexact(
    numerals: Numerals, encoded: Encoded, scheme: ChannelScheme, normalizer: FittedNormalizer
) -> int:
    """How many ordinary numbers their channel does not hold as they are written.

    That is, the value there is more than half a unit of the last digit off (zeros at the end are no
    such digits). A channel is float32, which holds about seven digits, fewer after some
    normalisations, or float64, which holds fifteen, and all of what was a float64 before it was
    written.
    """
    assert encoded.channel is not None
    digits, exponents, negative, more = numerals.significands
    # Where values are multiplied alone, fewer digits than float32 tells apart need no look; what is
    # beside a token as float64 may have been rounded at a fixed place.
    multiplied = normalizer.normalizer.linear and normalizer.normalizer.keeps_zero
    alone = multiplied or normalizer.normalizer.identity
    few = _HELD if alone and not scheme.exact else 0
    near = np.flatnonzero((digits >= few) & (encoded.outcomes == 0))
    if not len(near):
        return 0
    from numtok.numerals.decimals import further_than_digits

    looked_at = slice(None) if len(near) == len(digits) else near
    first = near
    if scheme.tokens_per_number != 1:
        first = (np.cumsum(encoded.lengths) - encoded.lengths)[near]
    read = scheme.factors[encoded.tokens[first]] * encoded.channel[looked_at]
    if not normalizer.normalizer.identity:
        read = normalizer.inverse(read)
    parts = digits[looked_at], exponents[looked_at], negative[looked_at], more[looked_at]
    return further_than_digits(Significands(*parts), read)


def beyond_float64(numerals: Numerals, outcomes: UInt8s) -> int:
    """Count the ordinary numbers whose written digits float64 does not hold.

    outcomes
        uint8[n], the :class:`Outcome` of each of the ``n`` numbers.

    These are the numbers that differ between the tokens of a scheme that keeps every digit and the
    column ``numbers``: 9007199254740993 is 9007199254740992 there.
    """
    digits, exponents, negative, more = numerals.significands
    long = np.flatnonzero((digits >= _FLOAT64_HOLDS) & (outcomes == Outcome.NUMBER))
    if not len(long):
        return 0
    from numtok.numerals.decimals import further_than_digits

    parts = digits[long], exponents[long], negative[long], more[long]
    return further_than_digits(Significands(*parts), numerals.values[long])


def beyond_digits(numerals: Numerals, limit: DigitLimit) -> int:
    """Count the numbers with more digits than an embedder sees; mantissa and exponent are two."""
    _, starts, ends = numerals.literals
    count = 0
    for index in np.flatnonzero(ends - starts > min(limit)).tolist():  # few are so long
        for part in _E.split(numerals.literals.at(index)):
            sizes = (len(_DIGIT.findall(some)) for some in part.partition(".")[::2])
            count += any(size > most for size, most in zip(sizes, limit, strict=True))
    return count
