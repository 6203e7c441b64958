"""channel: prepares numbers as input to schemes and as training targets for value heads.

The module also counts inexact numbers, which cannot be stored exactly as written in a scheme's
value channel or in the float64 column ``numbers``.
"""

import re

import numpy as np

from numtok.arrays import Bools, Floats, Ints, UInt8s
from numtok.encoding.normalizers.base import FittedNormalizer
from numtok.encoding.schemes.base import Channel, ChannelScheme, DigitLimit, Encoded, Outcome
from numtok.numerals.column import Numerals
from numtok.numerals.literals import Significands

_FLOAT64_HOLDS = 10**15  # float64 holds every literal whose digits, as an integer, are below this
_HELD = 10**6  # float32 holds digits below this, read as one integer, under any scaling
_E, _DIGIT = re.compile("[eE]"), re.compile("[0-9]")


def normalized(numerals: Numerals, by: FittedNormalizer) -> Numerals:
    """Return the numbers in a text after normalization, as input to a scheme."""
    if by.normalizer.identity:
        return numerals
    values = by.at(numerals.in_answer).forward(numerals.values)
    return numerals.with_values(values, by.normalizer.keeps_zero)


def normalised_values(values: Floats, by: FittedNormalizer) -> Floats:
    """Return training targets, float64[n], for the value head of a model whose scheme has no value
    channel.

    The targets are the normalized ``values``, float64[n]. A target that float32 cannot represent is
    NaN.
    """
    targets = by.forward(values)
    with np.errstate(over="ignore"):
        is_single = np.isfinite(targets.astype(np.float32))
    return np.where(is_single, targets, np.nan)


class ChannelValues:
    """Callable that returns training targets for the value head of a model whose scheme has a value
    channel.

    If the channel has whole numbers, the targets are the normalized numbers of the text in float64:
    at an edge of a histogram, float32 would put them into another bin than that of their density.
    If numbers are split between token and channel, the targets are the channel values. A target is
    NaN if the token already determines the number, as for an overflow.
    """

    def __init__(self, scheme: ChannelScheme, normalizer: FittedNormalizer) -> None:
        factors = scheme.factors
        self._wordy = np.isnan(factors)
        self._is_whole = bool((factors[~self._wordy] == 1).all())
        self._normalizer = normalizer

    def __call__(
        self, tokens: Ints, channel: Channel, numbers: Floats, in_answer: Bools
    ) -> Channel:
        """Return the targets [n], given the local ids [n] of the first tokens of numbers, their
        channel [n], the numbers of the text, float64[n], and whether they are in answers,
        bool[n]."""
        values = channel
        if self._normalizer.normalizer.identity and self._is_whole:
            values = numbers
        elif self._is_whole:
            exact = self._normalizer.at(in_answer).forward(numbers)
            values = np.where(np.isfinite(channel), exact, channel)
        return np.where(self._wordy[tokens], np.float32(np.nan), values)


def inexact(
    numerals: Numerals, encoded: Encoded, scheme: ChannelScheme, normalizer: FittedNormalizer
) -> int:
    """Return the number of ordinary numbers that the value channel cannot represent exactly.

    A number is represented exactly if its value in the channel is off by at most half a unit in the
    last digit of the number as written (trailing zeros do not count as digits). A float32 channel
    represents about seven digits, fewer after some normalizations. A float64 channel represents
    fifteen digits, and the ``repr`` of any float64.
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
        answered = None if numerals.in_answer is None else numerals.in_answer[checked]
        read = normalizer.at(answered).inverse(read)
    parts = digits[checked], exponents[checked], negative[checked], more[checked]
    return int(further_than_digits(Significands(*parts), read).sum())


def beyond_float64(numerals: Numerals, outcomes: UInt8s) -> int:
    """Return the number of ordinary numbers with more digits than float64 can represent exactly.

    outcomes
        uint8[n], the :class:`Outcome` of each of the ``n`` numbers.

    If a scheme keeps every digit, the tokens of such a number represent a different value than the
    column ``numbers``, where 9007199254740993 is stored as 9007199254740992.
    """
    digits, exponents, negative, more = numerals.significands
    long = np.flatnonzero((digits >= _FLOAT64_HOLDS) & (outcomes == Outcome.NUMBER))
    if not len(long):
        return 0
    from numtok.numerals.decimals import further_than_digits

    parts = digits[long], exponents[long], negative[long], more[long]
    return int(further_than_digits(Significands(*parts), numerals.values[long]).sum())


def beyond_digits(numerals: Numerals, limit: DigitLimit) -> int:
    """Return the number of mantissas and exponents with more digits than an embedder can read.
    ``limit`` is the largest number of digits that the embedder can read."""
    _, starts, ends = numerals.literals
    count = 0
    for index in np.flatnonzero(ends - starts > min(limit)).tolist():  # long numbers are rare
        for part in _E.split(numerals.literals.at(index)):
            sizes = (len(_DIGIT.findall(some)) for some in part.partition(".")[::2])
            count += any(size > most for size, most in zip(sizes, limit, strict=True))
    return count
