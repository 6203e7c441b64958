"""Conversion of head outputs to values and distributions in raw units, by undoing the
normalization."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from numtok.arrays import Bools, Floats, Ints
from numtok.encoding.automaton import automaton
from numtok.encoding.codec import Codec
from numtok.encoding.grammar import MOST_NUMBERS, Grammar, Support
from numtok.encoding.normalizers.base import Chained, Scaling, splits_answers
from numtok.encoding.schemes.base import ChannelScheme, Failure, splits_numbers
from numtok.errors import UsageError
from numtok.models.decoding import NumberReadings
from numtok.models.distributions.intervals import Intervals
from numtok.models.distributions.multiples import Multiples
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.tailed import Tailed
from numtok.models.heads.base import Calibration
from numtok.models.number_heads import NumberHeads
from numtok.numerals.literals import DIGITS_OF_FLOAT32

_AT_ONCE = 16  # distributions per block; more do not fit in a core's cache
_OF_MANTISSAS = 128  # the same, for mantissas times powers of ten


def listed(codec: Codec, heads: NumberHeads, grammar: Grammar) -> Support | None:
    """Return all numbers that the scheme can represent, in raw units, if the model's output is a
    distribution over them.

    Returns None if there are too many numbers, or if token probabilities do not determine such a
    distribution. The latter is the case if the model has a value head, if the scheme has a value
    channel, or if numbers vary in their number of tokens.
    """
    if heads.value_head is not None or isinstance(codec.scheme, ChannelScheme):
        return None
    if codec.scheme.tokens_per_number is None:
        return None
    try:
        if automaton(codec.scheme).count > MOST_NUMBERS:  # such as p10 with five digits
            return None
        return Support.of(grammar).raw(codec.normalizer)
    except UsageError:  # several sequences for one number, or too many to count
        return None


@dataclass(frozen=True, eq=False)
class RawNumbers:
    """Converts the outputs of heads to raw units.

    ``support`` is the result of :func:`listed` if one forward pass gives the probabilities of all
    tokens, otherwise None.
    """

    codec: Codec
    heads: NumberHeads
    support: Support | None

    def scaling(self, in_answer: bool | None = None) -> Scaling:
        """Return the scaling from raw values to the normalized values that the value head predicts.

        If the scheme splits each number into a token and a channel value, the scaling starts from
        the channel value instead of the raw value. ``in_answer`` is as in
        :meth:`FittedNormalizer.at`, here and below.
        """
        codec = self.codec
        own = self.heads.scaling
        if splits_numbers(codec.scheme):
            return own
        return Chained(codec.normalizer.at(in_answer), own)

    def points(self, parameters_NP: Tensor, in_answer: Bools | None = None) -> Floats:
        """Return the point predictions of a value head in raw units, float64[n], from its
        parameters [n, p]."""
        if self.heads.is_exact:  # its outputs are not normalized
            assert self.heads.value_head is not None
            return self.heads.value_head.point(parameters_NP)
        normalizer = self.codec.normalizer.at(in_answer)
        return normalizer.inverse(self.heads.value_point(parameters_NP))

    def values(
        self, reading: NumberReadings, in_answer: Bools | None = None
    ) -> tuple[Floats, NDArray[np.object_], Bools]:
        """Return values float64[n], literals [n] and validity bool[n] of decoded numbers."""
        codec, heads = self.codec, self.heads
        tokens = reading.tokens[reading.tokens >= 0].astype(np.uint32)
        channel = None
        if isinstance(codec.scheme, ChannelScheme):
            assert reading.parameters is not None
            channel = heads.channel(reading.parameters)
        decoded = codec.decode_numbers(tokens, reading.lengths, channel, in_answer)
        valid = (decoded.failures == Failure.NONE) & np.isfinite(decoded.values)
        values = decoded.values
        if reading.parameters is None:
            return values, np.array(list(map(decoded.literal, range(len(values)))), object), valid
        if heads.is_exact:
            values = np.where(valid, self.points(reading.parameters, in_answer), values)
            valid &= np.isfinite(values)
        elif not isinstance(codec.scheme, ChannelScheme):
            # Tokens only mark that it is a number; the value head gives its value.
            values = self.points(reading.parameters, in_answer)
            valid &= np.isfinite(values)
        return values, self.literals(values), valid

    def literals(self, values: Floats) -> NDArray[np.object_]:
        """Return values [n] as literals.

        They have the precision of float32, unless the value head predicts all digits.
        """
        form = "{!r}" if self.heads.is_exact else f"{{:.{DIGITS_OF_FLOAT32}g}}"
        return np.array([form.format(value) for value in values.tolist()], object)

    def distributions(
        self,
        reading: NumberReadings,
        calibrated: Iterable[tuple[Ints, Calibration]],
        in_answer: Bools | None = None,
    ) -> Iterator[tuple[slice | Ints, Predictive]]:
        """Yield blocks of decoded numbers: their indices, and their predictive distributions.

        ``calibrated`` contains pairs: the indices int64[k] of a set of numbers, and the calibration
        that these numbers share. Nothing is yielded if there is neither a value head nor
        ``support``.
        """
        scheme, head = self.codec.scheme, self.heads.value_head
        if head is not None:
            assert reading.parameters is not None
            for part, answered, calibration in self._parts(calibrated, in_answer):
                scaling = self.scaling(answered)
                if not splits_numbers(scheme):
                    yield part, head.predictive(reading.parameters[part], calibration, scaling)
                    continue
                assert reading.logits is not None
                normalizer = self.codec.normalizer.at(answered)
                for first in range(0, len(part), _OF_MANTISSAS):
                    near = part[first : first + _OF_MANTISSAS]
                    parameters, logits = reading.parameters[near], reading.logits[near, 0]
                    mantissa = head.predictive(parameters, calibration, scaling)
                    yield near, multiples(mantissa, scheme, logits, normalizer)
        elif self.support is not None:
            assert reading.logits is not None
            low, high, values = self.support.low, self.support.high, self.support.values
            for first in range(0, len(reading.logits), _AT_ONCE):
                block = slice(first, first + _AT_ONCE)
                mass = self.support.log_probabilities(reading.logits[block])
                yield block, Intervals(low=low, high=high, values=values, log_mass=mass)

    def _parts(
        self, calibrated: Iterable[tuple[Ints, Calibration]], in_answer: Bools | None
    ) -> Iterator[tuple[Ints, bool | None, Calibration]]:
        """Yield sets of numbers with the same calibration and the same normalization."""
        for part, calibration in calibrated:
            if in_answer is None or not splits_answers(self.codec.normalizer.normalizer):
                yield part, None, calibration
                continue
            for answered in (False, True):
                if len(alike := part[in_answer[part] == answered]):
                    yield alike, answered, calibration


def multiples(
    mantissa: Predictive, scheme: ChannelScheme, logits: NDArray[np.float32], normalizer: Scaling
) -> Multiples:
    """Return the distribution of numbers that are a mantissa times a power of ten.

    mantissa
        Distribution of the mantissa, which a value head predicts.
    scheme
        Scheme whose tokens represent powers of ten.
    logits
        float[n, tokens of the scheme], logits of these tokens.
    normalizer
        Normalization of the numbers. The returned distribution is in raw units.
    """
    every = np.arange(len(scheme.vocabulary()), dtype=np.uint32)
    ones = np.ones(len(every))
    atoms = scheme.decode(every, ones.astype(np.int32), ones.astype(np.float32)).values
    scores = logits.astype(np.float64)
    log_weights = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return Multiples(
        mantissa=mantissa,
        factors=scheme.factors,
        atoms=atoms,
        log_weights=log_weights,
        normalizer=normalizer,
    )


def with_tails(exact: Predictive, scaling: Scaling, train_count: int) -> Predictive:
    """Add explicit tails to a distribution whose range ``scaling`` maps to [0, 1] (see
    :class:`Tailed`).

    The tails have the total probability 1 / (``train_count`` + 1), where ``train_count`` is the
    number of training values. A distribution whose range has no width is returned unchanged.
    """
    low, high = scaling.inverse(np.array([0.0, 1.0]))
    return Tailed(exact, low, high, 1 / (train_count + 1)) if low < high else exact
