"""What a scheme costs and loses on the numbers of each slot.

Numbers are written in the scheme and read back, and what comes back is compared
with what stood there: all values of a slot that has few, else those of a sample
(``number_sample``). What follows from counts is exact all the same: a slot whose
smallest and largest numbers are not clipped has none that are, numbers far
beyond the range of a scheme are counted by their decade, and nothing is lost of
numbers with no more digits than the scheme keeps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import floor, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.analysis.profiling.slot_statistics import DECADES, FIRST_DECADE, NumberStatistics, most
from numtok.arrays import Bools, Floats, Ints
from numtok.encoding.channel import normalized
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer, Moments, fit
from numtok.encoding.number_sample import Sample, joined
from numtok.encoding.row_keys import KEPT
from numtok.encoding.schemes.base import LOSSES, ChannelScheme, DecodedNumbers, Scheme
from numtok.errors import DataError
from numtok.numerals.column import Literals, Numerals
from numtok.registry import spec_of

_POWERS = np.uint64(10) ** np.arange(20, dtype=np.uint64)


@dataclass(frozen=True)
class OfLength:
    """The numbers of one length: their share of all, their mean and standard deviation."""

    tokens: int
    share: float
    mean: float
    deviation: float


@dataclass(frozen=True)
class LengthLeakage:
    """How much the token counts of numbers reveal about their values.

    numbers
        Number of numbers in the sample.
    groups
        By length, the shortest numbers first.
    variance
        The share of the variance of the values that the mean by length explains: R2, adjusted for
        as many means as there are lengths (Theil 1961), because few numbers lie close to means of
        their own whatever their length; 0 where it would be less. None where the values do not
        vary, or there are no more of them than lengths.
    bits
        Mutual information of length and number: the entropy of the lengths, because a number as
        written has one length.
    """

    numbers: int
    groups: tuple[OfLength, ...]
    variance: float | None
    bits: float


def length_leakage(
    values: Floats, lengths: NDArray[np.int32], weights: Ints
) -> LengthLeakage | None:
    """Of numbers [n] with their tokens, each standing for ``weights`` equal ones; those that are
    not finite are left out. None without any.

    >>> one = length_leakage(np.array([1.0, 3.0, 12.0]), np.array([1, 1, 2]), np.array([1, 1, 2]))
    >>> [(of.tokens, of.share, of.mean, of.deviation) for of in one.groups]
    [(1, 0.5, 2.0, 1.0), (2, 0.5, 12.0, 0.0)]
    >>> one.bits, round(one.variance, 3)  # of 25.5, 0.5 is left; 3 numbers, 2 means
    (1.0, 0.961)
    """
    finite = np.isfinite(values) & (weights > 0)
    if not finite.any():
        return None
    values, lengths, weights = values[finite], lengths[finite], weights[finite]
    size = float(np.abs(values).max()) or 1.0  # squares of scaled values stay within float64
    groups, within = [], 0.0
    for tokens in np.unique(lengths).tolist():
        of = lengths == tokens
        mean, variance = _moments(values[of] / size, weights[of])
        share = float(weights[of].sum() / weights.sum())
        groups.append(OfLength(tokens, share, mean * size, float(np.sqrt(variance)) * size))
        within += share * variance
    _, whole = _moments(values / size, weights)
    shares = np.array([of.share for of in groups])
    numbers, means = len(values), len(groups)
    explained = None
    if whole > 0 and numbers > means:
        explained = max(0.0, 1 - within / whole * (numbers - 1) / (numbers - means))
    return LengthLeakage(
        numbers,
        tuple(groups),
        explained,
        float(-(shares * np.log2(shares)).sum()) + 0.0,
    )


def _moments(values: Floats, weights: Ints) -> tuple[float, float]:
    """Mean and variance."""
    mean = float(np.average(values, weights=weights))
    return mean, float(np.average(np.square(values - mean), weights=weights))


@dataclass(frozen=True, kw_only=True)
class SlotLoss:
    """What a scheme does to the numbers of one slot; None is not known or not defined.

    tokens_per_number
        On average.
    clipped
        Numbers that under- or overflow; exact, or from decades and the sample.
    error_of_spread
        Root mean square error of the others, relative to the standard deviation of the slot;
        exact where the slot has few values or cannot lose anything, or from the sample.
    largest_relative_error
        Of a number that was tried.
    distinct_left
        Of the distinct values, how many are told apart; known where there are few.
    channel_share
        Share of the range of the value channel, over all slots, that the slot takes.
    length_leakage
        What the number of tokens tells of the value, of those of the sample; None where all
        numbers have as many.
    """

    slot: str
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
    """One scheme: its losses by node, or why it cannot write these numbers at all."""

    scheme: Scheme
    normalizer: FittedNormalizer | None
    by_node: Mapping[int, SlotLoss]
    vocabulary: int  # number tokens
    problem: str = ""
    channel: tuple[float, float] | None = None  # what the value channel ranges over, normalised

    @property
    def spec(self) -> str:
        """The scheme as ``--scheme`` takes it."""
        return spec_of(self.scheme)


class _TriedNumbers(NamedTuple):
    """Which numbers of a trial are those of one slot, as indices."""

    sampled: Ints  # as written, for the tokens
    complete: bool  # these are all
    compared: Ints  # with what is read back
    exact: bool  # these are all
    ends: Ints  # the smallest and the largest magnitude; none where all are 0


@dataclass(frozen=True)
class Trial:
    """``n`` numbers that every scheme is tried out on."""

    numerals: Numerals  # [n]
    weights: Ints  # [n] how many numbers each stands for
    decades: Ints  # [n] as tallies count them
    by_node: Mapping[int, _TriedNumbers]

    @classmethod
    def of(cls, tallies: Mapping[int, NumberStatistics], sample: Sample) -> "Trial":
        """The sample, all values of slots that have few, and the ends of each."""
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
            ends = [one for one in (tally.least, tally.most) if 0 < one < np.inf]
            unweighed = further(ends, [0] * len(ends))
            by_node[node] = _TriedNumbers(sampled, complete, compared, exact, unweighed)
        others = Sample(
            np.zeros(len(values), np.int32),
            np.zeros(len(values), np.uint64),
            np.array(weights, np.int64),
            Literals.of([repr(value) for value in values]),
        )
        every = joined([sample, others])
        numerals = Numerals.read(every.literals)
        digits, exponents, _, _ = numerals.significands
        decades = exponents + np.searchsorted(_POWERS, digits, side="right") - 1
        decades = decades.clip(FIRST_DECADE, FIRST_DECADE + DECADES - 1)
        decades[digits == 0] = FIRST_DECADE - 1  # 0 has none
        return cls(numerals, every.weights, decades, by_node)


def losses(
    scheme: Scheme,
    tallies: Mapping[int, NumberStatistics],
    names: Mapping[int, str],
    trial: Trial,
    moments: Moments,
    normalize: str | None = None,
) -> SchemeLosses:
    """Try a scheme on the slots of ``names``, normalized as ``normalize`` (a spec; default: the
    scheme's own) and fitted on ``moments``."""
    vocabulary = len(scheme.vocabulary())
    try:
        normalizer = fit(NORMALIZERS.build(normalize or scheme.defaults.normalizer), moments)
    except DataError as problem:
        return SchemeLosses(
            scheme=scheme, normalizer=None, by_node={}, vocabulary=vocabulary, problem=str(problem)
        )
    tried = _Tried.of(scheme, normalizer, trial)
    channel, taken = _channel(scheme, normalizer, tallies)
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
        by_node[node] = SlotLoss(
            slot=names[node],
            tokens_per_number=tokens,
            tokens_exact=fixed is not None or own.complete,
            clipped=clipped,
            clipped_exact=clipped_exact,
            error_of_spread=error,
            error_exact=own.exact or (whole and not error and not largest),
            largest_relative_error=largest,
            distinct_left=_left(tried, own) if own.exact else None,
            channel_share=taken.get(node),
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
    """The numbers of a trial, written in a scheme and read back."""

    scheme: Scheme
    normalizer: FittedNormalizer
    trial: Trial
    lengths: NDArray[np.int32]  # [n]
    clipped: Bools  # [n]
    read: Floats  # [n] raw values; NaN where there is none
    failures: NDArray[np.uint8]  # [n]

    @classmethod
    def of(cls, scheme: Scheme, normalizer: FittedNormalizer, trial: Trial) -> "_Tried":
        encoded = scheme.encode(normalized(trial.numerals, normalizer))
        decoded: DecodedNumbers = scheme.decode(encoded.tokens, encoded.lengths, encoded.channel)
        read = decoded.values
        if not normalizer.normalizer.identity:
            read = normalizer.inverse(read)
        clipped = np.isin(encoded.outcomes, [int(outcome) for outcome in LOSSES])
        return cls(
            scheme=scheme,
            normalizer=normalizer,
            trial=trial,
            lengths=encoded.lengths,
            clipped=clipped,
            read=read,
            failures=decoded.failures,
        )


def _errors(
    tried: _Tried, own: _TriedNumbers, tally: NumberStatistics
) -> tuple[float | None, float | None]:
    """The errors of :class:`SlotLoss`."""
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
        rms = float(worst * np.sqrt(_mean(np.square(off / worst), weights)))  # squares do not fit
        found = float((off[size > 0] / size[size > 0]).max(initial=0.0))
        # Of a number at the very end of float64 it can be more than float64 holds.
        largest = found if np.isfinite(found) else None
    spread = tally.moments.deviation
    return (rms / spread if 0 < spread < np.inf and np.isfinite(rms) else None), largest


def _mean(values: NDArray[np.generic], weights: Ints) -> float:
    total = weights.sum()
    return float((values.astype(np.float64) * weights).sum() / total) if total else 0.0


def _left(tried: _Tried, own: _TriedNumbers) -> int:
    """How many different numbers are read back; each kind of failure is one."""
    failures, read = tried.failures[own.compared], tried.read[own.compared]
    failed = failures != 0
    return len(np.unique(read[~failed])) + len(np.unique(failures[failed]))


def digits_kept(relative_error: float) -> tuple[int, bool]:
    """How many significant digits stay where rounding is off by at most so much, and whether that
    is half a step of the last one (relative to 1.00) and so all that is lost."""
    digits = 1 - log10(2 * relative_error)
    return floor(digits + 0.01), abs(digits - round(digits)) < 0.01


def _keeps_digits(scheme: Scheme, normalizer: FittedNormalizer, tally: NumberStatistics) -> bool:
    """Whether no number of a slot has more digits than a scheme keeps."""
    if not normalizer.normalizer.identity or scheme.error.absolute:
        return False
    if scheme.error.size == 0:
        return True
    kept, exactly = digits_kept(scheme.error.size)
    return exactly and (most(tally.digits) or 0) <= kept


def _clipped(tried: _Tried, own: _TriedNumbers, tally: NumberStatistics) -> tuple[int, bool]:
    """How many numbers the scheme clips or flushes, and whether that is exact."""
    weights = tried.trial.weights[own.compared]
    lost = weights * tried.clipped[own.compared]
    if own.exact:
        return int(lost.sum()), True
    normalizer, outside = tried.normalizer.normalizer, tally.outside > 0
    ends = tried.clipped[own.ends]
    # What keeps 0 rises with the magnitude, so the ends tell of all numbers between them.
    rises = normalizer.identity or normalizer.keeps_zero
    if tried.scheme.unit_interval:  # its ends are those of the values
        values = np.array([tally.moments.low, tally.moments.high])
        within = tried.normalizer.forward(values)
        ends, rises = (within < 0) | (within > 1), True
    if not ends.any() and not outside and rises:
        return 0, True
    least = max(int(lost.sum()), int(ends.any()))
    if not normalizer.identity:
        return max(round(tally.numbers * _mean(lost > 0, weights)), least), False
    # Rounding decides in the decades of the bounds, and just below the lower one (9.996e-7).
    decades = np.arange(DECADES) + FIRST_DECADE
    first, last = map(_decade, tried.scheme.bounds)
    clipped = float(tally.decades[(decades < first - 1) | (decades > last)].sum())
    exact = True
    unsure = [first - 1, first] * (outside or bool(ends[0])) + [last] * (outside or bool(ends[1]))
    for decade in sorted(set(unsure) & set(decades.tolist())):
        if count := int(tally.decades[decade - FIRST_DECADE]):
            seen = tried.trial.decades[own.compared] == decade
            share = _mean(lost[seen] > 0, weights[seen]) if seen.any() else float(decade < first)
            clipped += count * share
            exact = False
    return max(round(clipped), least), exact


def _decade(bound: float) -> int:
    """The power of ten of the leading digit of a bound, or the last one that is counted; beyond
    these where there is no bound."""
    if bound == 0:
        return FIRST_DECADE - 1
    if bound == np.inf:
        return FIRST_DECADE + DECADES
    decade = Decimal(repr(bound)).adjusted()
    return min(max(decade, FIRST_DECADE), FIRST_DECADE + DECADES - 1)


def _channel(
    scheme: Scheme, normalizer: FittedNormalizer, tallies: Mapping[int, NumberStatistics]
) -> tuple[tuple[float, float] | None, dict[int, float]]:
    """What the channel ranges over, and the share of it that each slot takes; nothing without a
    channel of whole numbers, or where it ranges over nothing."""
    ranges = {
        node: normalizer.forward(np.array([tally.moments.low, tally.moments.high]))
        for node, tally in tallies.items()
        if tally.moments.count
    }
    if not isinstance(scheme, ChannelScheme) or scheme.splits or not ranges:
        return None, {}
    both = np.stack(list(ranges.values()))
    low, high = float(both.min()), float(both.max())
    if not 0 < high - low < np.inf:
        return None, {}
    return (low, high), {
        node: float((one[1] - one[0]) / (high - low)) for node, one in ranges.items()
    }
