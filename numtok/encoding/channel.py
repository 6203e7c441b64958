"""Normalized numbers for schemes and value heads, and counts of numbers that are stored inexactly
in the channel or in the float64 column ``numbers``."""

import re

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints, UInt8s
from numtok.encoding.normalizers.base import FittedNormalizer
from numtok.encoding.schemes.base import Channel, ChannelScheme, DigitLimit, Encoded, Outcome
from numtok.numerals.column import Numerals
from numtok.numerals.literals import Significands

_FLOAT64_HOLDS = 10**15  # float64 holds every literal whose digits, as an integer, are below this
_HELD = 10**6  # float32 holds digits below this, read as one integer, under any scaling
_E, _DIGIT = re.compile("[eE]"), re.compile("[0-9]")


def normalized(numerals: Numerals, by: FittedNormalizer) -> Numerals:
    """Normalize the numbers of a text, as input for a scheme."""
    if by.normalizer.identity:
        return numerals
    return numerals.with_values(by.forward(numerals.values), by.normalizer.keeps_zero)


def normalised_values(values: Floats, by: FittedNormalizer) -> NDArray[np.float32]:
    """Return the targets of a value head for schemes without a channel: the normalized values of
    raw float64[n] as float32[n], with NaN if float32 cannot hold them."""
    with np.errstate(over="ignore"):
        single = by.forward(values).astype(np.float32)
    return np.where(np.isfinite(single), single, np.float32(np.nan))


class ChannelValues:
    """Targets of a value head for a scheme with a channel.

    These are the channel values, or the numbers of the text if the channel holds them unchanged;
    NaN if the token alone determines the number.
    """

    def __init__(self, scheme: ChannelScheme, normalizer: FittedNormalizer) -> None:
        factors = scheme.factors
        self._wordy = np.isnan(factors)
        whole = bool((factors[~self._wordy] == 1).all())
        self._as_they_are = normalizer.normalizer.identity and whole

    def __call__(self, tokens: Ints, channel: Channel, numbers: Floats) -> Channel:
        """Return the targets [n], given the local ids [n] of the first tokens of numbers, their
        channel [n] and the numbers of the text, float64[n]."""
        values = numbers if self._as_they_are else channel
        return np.where(self._wordy[tokens], np.float32(np.nan), values)


def inexact(
    numerals: Numerals, encoded: Encoded, scheme: ChannelScheme, normalizer: FittedNormalizer
) -> int:
    """Count the ordinary numbers that the channel does not hold exactly as written.

    These are the numbers whose value is off by more than half a unit of the last digit (trailing
    zeros do not count as digits). A float32 channel holds about seven digits, fewer after some
    normalizations. A float64 channel holds fifteen digits, and exactly all numbers that were
    float64 before they were written.
    """
    assert encoded.channel is not None
    digits, exponents, negative, more = numerals.significands
    # If values are only scaled, numbers with fewer digits than float32 holds need no check. Float64
    # channels may have been rounded to a fixed number of decimals.
    multiplied = normalizer.normalizer.linear and normalizer.normalizer.keeps_zero
    alone = multiplied or normalizer.normalizer.identity
    few = _HELD if alone and not scheme.exact else 0
    near = np.flatnonzero((digits >= few) & (encoded.outcomes == 0))
    if not len(near):
        return 0
    from numtok.numerals.decimals import further_than_digits

    checked = slice(None) if len(near) == len(digits) else near
    first = near
    if scheme.tokens_per_number != 1:
        first = (np.cumsum(encoded.lengths) - encoded.lengths)[near]
    read = scheme.factors[encoded.tokens[first]] * encoded.channel[checked]
    if not normalizer.normalizer.identity:
        read = normalizer.inverse(read)
    parts = digits[checked], exponents[checked], negative[checked], more[checked]
    return further_than_digits(Significands(*parts), read)


def beyond_float64(numerals: Numerals, outcomes: UInt8s) -> int:
    """Count the ordinary numbers whose written digits float64 does not hold.

    outcomes
        uint8[n], the :class:`Outcome` of each of the ``n`` numbers.

    For a scheme that keeps every digit, these are the numbers whose tokens differ from the column
    ``numbers``, which has 9007199254740992 for 9007199254740993.
    """
    digits, exponents, negative, more = numerals.significands
    long = np.flatnonzero((digits >= _FLOAT64_HOLDS) & (outcomes == Outcome.NUMBER))
    if not len(long):
        return 0
    from numtok.numerals.decimals import further_than_digits

    parts = digits[long], exponents[long], negative[long], more[long]
    return further_than_digits(Significands(*parts), numerals.values[long])


def beyond_digits(numerals: Numerals, limit: DigitLimit) -> int:
    """Count the mantissas and exponents with more digits than an embedder sees."""
    _, starts, ends = numerals.literals
    count = 0
    for index in np.flatnonzero(ends - starts > min(limit)).tolist():  # long numbers are rare
        for part in _E.split(numerals.literals.at(index)):
            sizes = (len(_DIGIT.findall(some)) for some in part.partition(".")[::2])
            count += any(size > most for size, most in zip(sizes, limit, strict=True))
    return count
