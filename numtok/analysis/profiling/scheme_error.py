"""Token counts and errors of a scheme on the numbers in each field.

Numbers are encoded and decoded, and the results are compared with the numbers as written. If a
field has few distinct values, all of them are tested; otherwise, a sample of the numbers is tested
(see ``number_sample``). Some results follow from counts and are exact even with a sample. If the
smallest and the largest number in a field are not clipped, no number is. Numbers far beyond the
range of a scheme are counted by their decade. Numbers with no more digits than the scheme keeps
lose no precision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import floor, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.analysis.profiling.field_statistics import DECADES, FIRST_DECADE, NumberStatistics, most
from numtok.arrays import Bools, Floats, Ints
from numtok.encoding.channel import normalized
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer, Moments, fit
from numtok.encoding.number_sample import Sample, joined
from numtok.encoding.row_keys import KEPT
from numtok.encoding.schemes.base import LOSSES, DecodedNumbers, Scheme, scales_values
from numtok.errors import DataError
from numtok.numerals.column import Literals, Numerals
from numtok.numerals.decimals import further_than_digits
from numtok.numerals.literals import MOST_DIGITS, Significands
from numtok.registry import spec_of

_POWERS = np.uint64(10) ** np.arange(20, dtype=np.uint64)


@dataclass(frozen=True)
class LengthGroup:
    """Fraction, mean and standard deviation of the numbers with the same token count."""

    tokens: int
    share: float
    mean: float
    deviation: float


@dataclass(frozen=True)
class LengthLeakage:
    """Measures of how much the token counts of numbers reveal about their values.

    numbers
        Count of numbers in the sample.
    groups
        Statistics per token count, in ascending order of token count.
    variance
        Fraction of the variance of the values that is explained by the mean for each token count:
        R2, adjusted for the number of token counts (Theil 1961), and at least 0. None if the values
        do not vary, or if there are no more numbers than token counts.
    bits
        Mutual information of token count and number. It equals the entropy of the token counts,
        because a number as written has only one token count.
    """

    numbers: int
    groups: tuple[LengthGroup, ...]
    variance: float | None
    bits: float


def length_leakage(
    values: Floats, lengths: NDArray[np.int32], weights: Ints
) -> LengthLeakage | None:
    """Measure how much the token counts ``lengths`` [n] of numbers reveal about their values [n].

    ``weights`` [n] contains the number of occurrences of each value. Returns None if no number is
    finite.

    >>> leakage = length_leakage(
    ...     np.array([1.0, 3.0, 12.0]), np.array([1, 1, 2]), np.array([1, 1, 2])
    ... )
    >>> [(group.tokens, group.share, group.mean, group.deviation) for group in leakage.groups]
    [(1, 0.5, 2.0, 1.0), (2, 0.5, 12.0, 0.0)]
    >>> leakage.bits, round(leakage.variance, 3)  # 0.5 of 25.5 remains; 3 numbers, 2 means
    (1.0, 0.961)
    """
    finite = np.isfinite(values) & (weights > 0)
    if not finite.any():
        return None
    values, lengths, weights = values[finite], lengths[finite], weights[finite]
    size = float(np.abs(values).max()) or 1.0  # squares of scaled values stay within float64
    groups, within = [], 0.0
    for tokens in np.unique(lengths).tolist():
        chosen = lengths == tokens
        mean, variance = _moments(values[chosen] / size, weights[chosen])
        share = float(weights[chosen].sum() / weights.sum())
        groups.append(LengthGroup(tokens, share, mean * size, float(np.sqrt(variance)) * size))
        within += share * variance
    _, whole = _moments(values / size, weights)
    shares = np.array([group.share for group in groups])
    numbers, means = len(values), len(groups)
    explained = None
    if whole > 0 and numbers > means:
        explained = max(0.0, 1 - within / whole * (numbers - 1) / (numbers - means))
    return LengthLeakage(
        numbers, tuple(groups), explained, float(-(shares * np.log2(shares)).sum()) + 0.0
    )


def _moments(values: Floats, weights: Ints) -> tuple[float, float]:
    """Return the mean and the variance."""
    mean = float(np.average(values, weights=weights))
    return mean, float(np.average(np.square(values - mean), weights=weights))


@dataclass(frozen=True, kw_only=True)
class FieldLoss:
    """Token count and losses of a scheme on the numbers in one field.

    Values that are unknown or undefined are None.

    tokens_per_number
        Mean number of tokens per number.
    clipped
        Count of numbers that underflow or overflow; exact, or estimated from decades and the
        sample.
    error_of_spread
        Root mean square error of the numbers that are not clipped, relative to the standard
        deviation of the field. It is exact if the field has few values or nothing can be lost, and
        otherwise estimated from the sample.
    largest_relative_error
        Largest relative error of a tested number.
    distinct_left
        Number of distinct values after decoding; known for fields with few values.
    channel_share
        Fraction of the value channel's range, over all fields, that this field uses. None for exact
        schemes such as ``bits`` and ``fone``: models read all digits of a number, so fields do not
        share one scale.
    length_leakage
        Measures of how much the token count of a number in the sample reveals about its value; None
        if all numbers have the same token count.
    """

    field: str
    tokens_per_number: float
    tokens_exact: bool
    clipped: int
    clipped_exact: bool
    error_of_spread: float | None
    error_exact: bool
    largest_relative_error: float | None
    distinct_left: int | None
    channel_share: float | None
    length_leakage: LengthLeakage | None


@dataclass(frozen=True, kw_only=True)
class SchemeLosses:
    """Losses of one scheme on each field, or the reason why it cannot represent the numbers.

    ``by_node`` is keyed by the node of the field.
    """

    scheme: Scheme
    normalizer: FittedNormalizer | None
    by_node: Mapping[int, FieldLoss]
    vocabulary: int  # number tokens
    problem: str = ""
    channel: tuple[float, float] | None = None  # range of the value channel, normalized

    @property
    def spec(self) -> str:
        """Spec of the scheme, in the form that ``--scheme`` accepts."""
        return spec_of(self.scheme)


class _TriedNumbers(NamedTuple):
    """Indices of the numbers of one field within a trial."""

    sampled: Ints  # as written, to count tokens
    complete: bool  # ``sampled`` are all numbers of the field
    compared: Ints  # with the decoded values
    exact: bool  # ``compared`` are all values of the field
    ends: Ints  # the smallest and the largest magnitude; empty if all are 0
    in_answer: bool


@dataclass(frozen=True)
class Trial:
    """The ``n`` numbers that every scheme is tested on."""

    numerals: Numerals  # [n]
    weights: Ints  # [n] number of equal numbers that each represents
    decades: Ints  # [n] as tallies count them
    rounded: Bools  # [n] numbers that float64 cannot represent as written
    by_node: Mapping[int, _TriedNumbers]

    @classmethod
    def of(
        cls, tallies: Mapping[int, NumberStatistics], sample: Sample, answer: int | None
    ) -> "Trial":
        """Select the numbers to test every scheme on.

        The numbers are those in the sample, all values of fields with few distinct values, and
        the extremes of each field. ``answer`` is the node of the field that is in answers.
        """
        values: list[float] = []
        weights: list[int] = []
        by_node = {}

        def further(more: list[float], times: list[int]) -> Ints:
            values.extend(more)
            weights.extend(times)
            return np.arange(len(values) - len(more), len(values)) + len(sample)

        for node, tally in tallies.items():
            sampled = np.flatnonzero(sample.nodes == node)
            complete = len(sampled) < KEPT and int(sample.weights[sampled].sum()) == tally.numbers
            compared, few = sampled, tally.distinct
            exact = complete or (few.exact and not tally.outside)
            if exact and not complete:
                compared = further(few.values.tolist(), few.counts.tolist())
            ends = [end for end in (tally.least, tally.most) if 0 < end < np.inf]
            unweighed = further(ends, [0] * len(ends))
            by_node[node] = _TriedNumbers(
                sampled, complete, compared, exact, unweighed, in_answer=node == answer
            )
        added = Sample(
            np.zeros(len(values), np.int32),
            np.zeros(len(values), np.uint64),
            np.array(weights, np.int64),
            Literals.of([repr(value) for value in values]),
        )
        every = joined([sample, added])
        numerals = Numerals.read(every.literals)
        digits, exponents, negative, more = numerals.significands
        decades = exponents + np.searchsorted(_POWERS, digits, side="right") - 1
        decades = decades.clip(FIRST_DECADE, FIRST_DECADE + DECADES - 1)
        decades[digits == 0] = FIRST_DECADE - 1  # 0 has none
        rounded = np.zeros(len(numerals), np.bool_)
        long = np.flatnonzero(digits >= 10**MOST_DIGITS)
        parts = Significands(digits[long], exponents[long], negative[long], more[long])
        rounded[long] = further_than_digits(parts, numerals.values[long])
        in_answer = np.zeros(len(numerals), np.bool_)
        if answer is not None:
            own = by_node[answer]
            in_answer[np.concatenate([own.sampled, own.compared, own.ends])] = True
        return cls(numerals.of_texts(in_answer), every.weights, decades, rounded, by_node)


def losses(
    scheme: Scheme,
    tallies: Mapping[int, NumberStatistics],
    names: Mapping[int, str],
    trial: Trial,
    moments: Sequence[Moments],
    *,
    normalize: str | None = None,
) -> SchemeLosses:
    """Measure the losses of a scheme on each field.

    names
        Name of each field, keyed by node, as in ``tallies``.
    moments
        Moments that the normalizer is fitted to: those of all numbers or, if it has separate
        constants for answers, of the numbers outside of answers and of those within.
    normalize
        Spec of the normalizer; None for the default of the scheme.
    """
    vocabulary = len(scheme.vocabulary())
    try:
        normalizer = fit(NORMALIZERS.build(normalize or scheme.defaults.normalizer), *moments)
    except DataError as problem:
        return SchemeLosses(
            scheme=scheme, normalizer=None, by_node={}, vocabulary=vocabulary, problem=str(problem)
        )
    tried = _Tried.of(scheme, normalizer, trial)
    channel, fractions = _channel(tried, tallies)
    by_node = {}
    for node, tally in tallies.items():
        own = trial.by_node[node]
        fixed = scheme.tokens_per_number
        raw, weights = trial.numerals.values[own.sampled], trial.weights[own.sampled]
        lengths = tried.lengths[own.sampled]
        tokens = _mean(lengths, weights) if fixed is None else float(fixed)
        clipped, clipped_exact = _clipped(tried, own, tally)
        error, largest = _errors(tried, own, tally)
        whole = clipped == 0 and clipped_exact and _keeps_digits(scheme, normalizer, tally)
        seen = not tried.rounded[own.sampled].any()  # else rounded values are compared
        by_node[node] = FieldLoss(
            field=names[node],
            tokens_per_number=tokens,
            tokens_exact=fixed is not None or own.complete,
            clipped=clipped,
            clipped_exact=clipped_exact,
            error_of_spread=error,
            error_exact=seen and (own.exact or (whole and not error and not largest)),
            largest_relative_error=largest,
            distinct_left=_left(tried, own) if own.exact else None,
            channel_share=fractions.get(node),
            length_leakage=length_leakage(raw, lengths, weights) if fixed is None else None,
        )
    return SchemeLosses(
        scheme=scheme,
        normalizer=normalizer,
        by_node=by_node,
        vocabulary=vocabulary,
        channel=channel,
    )


@dataclass(frozen=True, kw_only=True)
class _Tried:
    """The numbers of a trial, encoded in a scheme and decoded."""

    scheme: Scheme
    normalizer: FittedNormalizer
    trial: Trial
    lengths: NDArray[np.int32]  # [n]
    clipped: Bools  # [n]
    read: Floats  # [n] decoded values, raw; NaN for a failure
    failures: NDArray[np.uint8]  # [n]
    rounded: Bools  # [n] numbers of which the scheme sees a float64 value that differs

    @classmethod
    def of(cls, scheme: Scheme, normalizer: FittedNormalizer, trial: Trial) -> "_Tried":
        encoded = scheme.encode(normalized(trial.numerals, normalizer))
        decoded: DecodedNumbers = scheme.decode(encoded.tokens, encoded.lengths, encoded.channel)
        read = decoded.values
        if not normalizer.normalizer.identity:
            read = normalizer.at(trial.numerals.in_answer).inverse(read)
        clipped = np.isin(encoded.outcomes, [int(outcome) for outcome in LOSSES])
        return cls(
            scheme=scheme,
            normalizer=normalizer,
            trial=trial,
            lengths=encoded.lengths,
            clipped=clipped,
            read=read,
            failures=decoded.failures,
            rounded=trial.rounded & (decoded.written is None),
        )


def _errors(
    tried: _Tried, own: _TriedNumbers, tally: NumberStatistics
) -> tuple[float | None, float | None]:
    """Return ``error_of_spread`` and ``largest_relative_error`` of :class:`FieldLoss`."""
    raw, read = tried.trial.numerals.values[own.compared], tried.read[own.compared]
    whole = np.isfinite(read) & np.isfinite(raw) & ~tried.clipped[own.compared]
    if not whole.any():
        return None, None
    weights = tried.trial.weights[own.compared][whole]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        off, size = np.abs(read[whole] - raw[whole]), np.abs(raw[whole])
        worst = off.max()
        if worst == 0.0:
            return 0.0, 0.0
        # Scaled before squaring, since the squares may exceed float64.
        rms = float(worst * np.sqrt(_mean(np.square(off / worst), weights)))
        relative = float((off[size > 0] / size[size > 0]).max(initial=0.0))
        # The relative error of a number near the smallest float64 may overflow.
        largest = relative if np.isfinite(relative) else None
    spread = tally.moments.deviation
    return (rms / spread if 0 < spread < np.inf and np.isfinite(rms) else None), largest


def _mean(values: NDArray[np.generic], weights: Ints) -> float:
    total = weights.sum()
    return float((values.astype(np.float64) * weights).sum() / total) if total else 0.0


def _left(tried: _Tried, own: _TriedNumbers) -> int:
    """Return the number of distinct decoded values; each kind of failure counts as one."""
    failures, read = tried.failures[own.compared], tried.read[own.compared]
    failed = failures != 0
    return len(np.unique(read[~failed])) + len(np.unique(failures[failed]))


def digits_kept(relative_error: float) -> tuple[int, bool]:
    """Return the number of significant digits that are correct at a relative error, and whether the
    error is exactly half a unit in the last digit (relative to 1.00)."""
    digits = 1 - log10(2 * relative_error)
    return floor(digits + 0.01), abs(digits - round(digits)) < 0.01


def _keeps_digits(scheme: Scheme, normalizer: FittedNormalizer, tally: NumberStatistics) -> bool:
    """Return whether no number of a field has more digits than a scheme keeps."""
    if not normalizer.normalizer.identity or scheme.error.absolute:
        return False
    if scheme.error.size == 0:
        return True
    kept, exactly = digits_kept(scheme.error.size)
    return exactly and (most(tally.digits) or 0) <= kept


def _clipped(tried: _Tried, own: _TriedNumbers, tally: NumberStatistics) -> tuple[int, bool]:
    """Return the number of numbers that the scheme clips or flushes, and whether that is exact."""
    weights = tried.trial.weights[own.compared]
    lost = weights * tried.clipped[own.compared]
    if own.exact:
        return int(lost.sum()), True
    normalizer, outside = tried.normalizer.normalizer, tally.outside > 0
    ends = tried.clipped[own.ends]
    # A normalizer that keeps 0 is monotonic in the magnitude, so the ends decide for all numbers.
    rises = normalizer.identity or normalizer.keeps_zero
    if tried.scheme.unit_interval:  # its ends are those of the values
        values = np.array([tally.moments.low, tally.moments.high])
        within = tried.normalizer.at(own.in_answer).forward(values)
        ends, rises = (within < 0) | (within > 1), True
    if not ends.any() and not outside and rises:
        return 0, True
    least = max(int(lost.sum()), int(ends.any()))
    if not normalizer.identity:
        return max(round(tally.numbers * _mean(lost > 0, weights)), least), False
    # In the decades of the bounds, and just below the lower one (9.996e-7), rounding decides.
    decades = np.arange(DECADES) + FIRST_DECADE
    first, last = map(_decade, tried.scheme.bounds)
    clipped = float(tally.decades[(decades < first - 1) | (decades > last)].sum())
    exact = True
    unsure = [first - 1, first] * (outside or bool(ends[0])) + [last] * (outside or bool(ends[1]))
    for decade in sorted(set(unsure) & set(decades.tolist())):
        if count := int(tally.decades[decade - FIRST_DECADE]):
            in_decade = tried.trial.decades[own.compared] == decade
            share = float(decade < first)
            if in_decade.any():
                share = _mean(lost[in_decade] > 0, weights[in_decade])
            clipped += count * share
            exact = False
    return max(round(clipped), least), exact


def _decade(bound: float) -> int:
    """Return the decade of the leading digit of a bound, limited to the counted decades.

    An infinite bound is one decade beyond these.
    """
    if bound == 0:
        return FIRST_DECADE - 1
    if bound == np.inf:
        return FIRST_DECADE + DECADES
    decade = Decimal(repr(bound)).adjusted()
    return min(max(decade, FIRST_DECADE), FIRST_DECADE + DECADES - 1)


def _channel(
    tried: _Tried, tallies: Mapping[int, NumberStatistics]
) -> tuple[tuple[float, float] | None, dict[int, float]]:
    """Return the range of the value channel, and the fraction of it that each field uses.

    None and {} unless the channel puts all numbers on one scale: exact schemes keep all digits
    in float64 and models see these digits, not a value on a common scale.
    """
    ranges = {
        node: tried.normalizer.at(tried.trial.by_node[node].in_answer).forward(
            np.array([tally.moments.low, tally.moments.high])
        )
        for node, tally in tallies.items()
        if tally.moments.count
    }
    if not scales_values(tried.scheme) or not ranges:
        return None, {}
    both = np.stack(list(ranges.values()))
    low, high = float(both.min()), float(both.max())
    if not 0 < high - low < np.inf:
        return None, {}
    return (low, high), {
        node: float((end - start) / (high - low)) for node, (start, end) in ranges.items()
    }
