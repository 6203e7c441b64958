"""What a scheme costs and loses on the numbers of each slot.

Numbers are written in the scheme and read back, and what comes back is compared
with what stood there: all values of a slot that has few, else those of a sample
(``_sampled``). Where it is cheap, counts are exact too: numbers far beyond the
range of a scheme are counted by their decade, and a slot that lies within the
range has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numtok.errors import DataError
from numtok.normalizers.base import NORMALIZERS, FittedNormalizer, Moments, fit
from numtok.numerals.column import Numerals
from numtok.registry import spec_of
from numtok.schemes.base import LOSSES, Decoded, Scheme
from numtok.stages._sampled import Sample
from numtok.stages._tallies import COUNT, DECADES, FIRST_DECADE, KEPT, LEAST, MOST, OUTSIDE, Tally


@dataclass(frozen=True)
class Loss:
    """What a scheme does to the numbers of one slot; None is not known or not defined.

    tokens
        A number, on average.
    clipped
        Numbers that under- or overflow; exact, or from the sample.
    error
        Root mean square error of the others, relative to the standard deviation of the slot;
        exact where the slot has few values, or from the sample.
    largest
        Largest relative error of a number that was tried.
    left
        Of the distinct values, how many are told apart; known where there are few.
    channel
        Share of the range of the value channel, over all slots, that the slot takes.
    """

    tokens: float
    tokens_exact: bool
    clipped: int
    clipped_exact: bool
    error: float | None
    error_exact: bool
    largest: float | None
    left: int | None
    channel: float | None


@dataclass(frozen=True)
class SchemeLosses:
    """One scheme: its losses by node, or why it cannot write these numbers at all."""

    scheme: Scheme
    normalizer: FittedNormalizer | None
    by_node: Mapping[int, Loss]
    vocabulary: int  # number tokens
    problem: str = ""
    channel: tuple[float, float] | None = None  # what the value channel ranges over, normalised

    @property
    def spec(self) -> str:
        """The scheme as ``--scheme`` takes it."""
        return spec_of(self.scheme)


def losses(
    scheme: Scheme, tallies: Mapping[int, Tally], sample: Sample, moments: Moments
) -> SchemeLosses:
    """Try a scheme out, with the normalisation that it has by default, fitted on ``moments``."""
    vocabulary = len(scheme.vocabulary())
    try:
        normalizer = fit(NORMALIZERS.build(scheme.normalizer), moments)
    except DataError as problem:
        return SchemeLosses(scheme, None, {}, vocabulary, str(problem))
    numerals = Numerals.read(sample.literals)
    tried = _Tried.of(scheme, normalizer, numerals)
    few = _few(scheme, normalizer, tallies)
    channel, taken = _channel(scheme, normalizer, tallies)
    by_node = {}
    for node, tally in tallies.items():
        among = np.flatnonzero(sample.nodes == node)
        weights = sample.weights[among]
        complete = len(among) < KEPT and int(weights.sum()) == int(tally.sums[COUNT])
        fixed = scheme.tokens_per_number
        tokens = _mean(tried.lengths[among], weights) if fixed is None else float(fixed)
        values, read = numerals.values[among], tried.read[among]
        clipped, clipped_exact = _clipped(tried, values, among, weights, tally, complete)
        error, largest, left = few.get(node, (None, None, None))
        known = complete or error is not None
        if error is None:
            error, largest = _errors(values, read, weights, tally)
        by_node[node] = Loss(
            tokens,
            fixed is not None or complete,
            clipped,
            clipped_exact,
            error,
            known,
            largest,
            left,
            taken.get(node),
        )
    return SchemeLosses(scheme, normalizer, by_node, vocabulary, channel=channel)


@dataclass(frozen=True)
class _Tried:
    """``n`` numbers written in a scheme and read back."""

    scheme: Scheme
    normalizer: FittedNormalizer
    lengths: NDArray[np.int32]  # [n]
    clipped: NDArray[np.bool_]  # [n]
    read: NDArray[np.float64]  # [n] raw values; NaN where there is none
    failures: NDArray[np.uint8]  # [n]

    @classmethod
    def of(cls, scheme: Scheme, normalizer: FittedNormalizer, numerals: Numerals) -> "_Tried":
        if not normalizer.normalizer.identity:
            values = normalizer.forward(numerals.values)
            numerals = numerals.with_values(values, normalizer.normalizer.keeps_zero)
        encoded = scheme.encode(numerals)
        decoded: Decoded = scheme.decode(encoded.tokens, encoded.lengths, encoded.channel)
        read = decoded.values
        if not normalizer.normalizer.identity:
            read = normalizer.inverse(read)
        clipped = np.isin(encoded.outcomes, [int(outcome) for outcome in LOSSES])
        return cls(scheme, normalizer, encoded.lengths, clipped, read, decoded.failures)


def _errors(
    raw: NDArray[np.float64],
    read: NDArray[np.float64],
    weights: NDArray[np.int64],
    tally: Tally,
) -> tuple[float | None, float | None]:
    """The fields ``error`` and ``largest`` of :class:`Loss`, from numbers and what is read back."""
    whole = np.isfinite(read) & np.isfinite(raw)
    if not whole.any():
        return None, None
    with np.errstate(over="ignore", invalid="ignore"):
        off, size = np.abs(read[whole] - raw[whole]), np.abs(raw[whole])
        rms = float(np.sqrt(_mean(np.square(off), weights[whole])))
    largest = float((off[size > 0] / size[size > 0]).max(initial=0.0))
    spread = tally.moments.deviation
    if rms == 0.0:
        return 0.0, largest
    return (rms / spread if 0 < spread < np.inf and np.isfinite(rms) else None), largest


def _mean(values: NDArray[np.generic], weights: NDArray[np.int64]) -> float:
    total = weights.sum()
    return float((values.astype(np.float64) * weights).sum() / total) if total else 0.0


def _clipped(
    tried: _Tried,
    values: NDArray[np.float64],
    among: NDArray[np.int64],
    weights: NDArray[np.int64],
    tally: Tally,
    complete: bool,
) -> tuple[int, bool]:
    """How many numbers the scheme clips or flushes, and whether that is exact; ``values`` are
    those at ``among``."""
    lost = weights * tried.clipped[among]
    if complete:
        return int(lost.sum()), True
    low, high = tried.scheme.bounds
    share = int(tally.sums[COUNT]) / max(1, int(weights.sum()))
    if not tried.normalizer.normalizer.identity:
        # It rises, and 0 stays 0: small numbers stay the smallest, large ones the largest.
        edges = tried.normalizer.forward(tally.measures[[LEAST, MOST]])
        within = not np.isfinite(tally.measures[LEAST]) or (edges[0] >= low and edges[1] <= high)
        if within and tried.normalizer.normalizer.keeps_zero and not tally.sums[OUTSIDE]:
            return 0, True
        return round(share * float(lost.sum())), False
    if tally.measures[LEAST] >= low and tally.measures[MOST] <= high and not tally.sums[OUTSIDE]:
        return 0, True
    # Rounding decides in the decades of the bounds, and just below the lower one (9.996e-7).
    decades = np.arange(DECADES) + FIRST_DECADE
    first, last = _decade(low), _decade(high)
    beyond = int(tally.decades[(decades < first - 1) | (decades > last)].sum())
    unsure = [first - 1, first, last]
    if not tally.decades[np.isin(decades, unsure)].any():
        return beyond, True
    with np.errstate(divide="ignore"):
        own = np.floor(np.log10(np.abs(values)))
    own = own.clip(FIRST_DECADE, FIRST_DECADE + DECADES - 1)  # as they are counted
    return beyond + round(share * float(lost[np.isin(own, unsure)].sum())), False


def _decade(bound: float) -> int:
    """The power of ten of the leading digit of a bound, or the last one that is counted; beyond
    these where there is no bound."""
    if bound == 0:
        return FIRST_DECADE - 1
    if bound == np.inf:
        return FIRST_DECADE + DECADES
    decade = int(f"{bound:.16e}".partition("e")[2])
    return min(max(decade, FIRST_DECADE), FIRST_DECADE + DECADES - 1)


def _few(
    scheme: Scheme, normalizer: FittedNormalizer, tallies: Mapping[int, Tally]
) -> dict[int, tuple[float | None, float | None, int]]:
    """The fields ``error``, ``largest`` and ``left`` of :class:`Loss` where all distinct values of
    a slot are known; the errors None where some of them are beyond float64."""
    nodes = [node for node, tally in tallies.items() if tally.distinct.exact]
    if not nodes:
        return {}
    values = [tallies[node].distinct.values for node in nodes]
    tried = _Tried.of(scheme, normalizer, Numerals(np.concatenate(values)))
    ends = np.cumsum([len(one) for one in values])
    found: dict[int, tuple[float | None, float | None, int]] = {}
    for node, end, own in zip(nodes, ends.tolist(), values, strict=True):
        among = slice(end - len(own), end)
        failed, read, tally = tried.failures[among] != 0, tried.read[among], tallies[node]
        kinds = len(np.unique(tried.failures[among][failed]))
        left = len(np.unique(read[~failed])) + kinds
        error = largest = None
        if not tally.sums[OUTSIDE]:
            error, largest = _errors(own, read, tally.distinct.counts, tally)
        found[node] = error, largest, left
    return found


def _channel(
    scheme: Scheme, normalizer: FittedNormalizer, tallies: Mapping[int, Tally]
) -> tuple[tuple[float, float] | None, dict[int, float]]:
    """What the channel ranges over, and the share of it that each slot takes; nothing without a
    channel, or where it ranges over nothing."""
    ranges = {
        node: normalizer.forward(np.array([tally.moments.low, tally.moments.high]))
        for node, tally in tallies.items()
        if tally.moments.count
    }
    if not scheme.channel or not ranges:
        return None, {}
    both = np.stack(list(ranges.values()))
    low, high = float(both.min()), float(both.max())
    if not 0 < high - low < np.inf:
        return None, {}
    return (low, high), {
        node: float((one[1] - one[0]) / (high - low)) for node, one in ranges.items()
    }
