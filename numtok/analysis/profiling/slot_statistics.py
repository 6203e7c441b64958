"""Statistics of the numbers of each slot, in one pass, compiled; any two can be merged.

Counts and extremes are exact. Distinct values are kept with their counts, the
1,024 with the smallest hashes (a bottom-k sketch: Cohen and Kaplan 2007): fewer
are all there are, and where there are more, the largest of these hashes says how
many. Whatever value is among the smallest in the whole was among them in every
part, so its count is complete, and the result does not depend on the division.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int32, int64, types, uint8, uint64
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.encoding.normalizers.base import Moments
from numtok.encoding.row_keys import ANYTHING, KEPT, LONGEST, code_of, goes_on, hash_word, key_of
from numtok.encoding.texts import Spans, Texts
from numtok.kernels import inlined, kernel, reads, writes
from numtok.numerals.column import Numerals
from numtok.numerals.decimals import count_digits

MOST_DIGITS, MOST_DECIMALS = 20, 20  # "19 and more" stand together in the last place
DECADES, FIRST_DECADE = 160, -80  # powers of ten; what is beyond is in the first and last one

_ROOM, _FULL = 2 * KEPT, KEPT + KEPT // 2  # of a table of distinct values

# Fields of ``sums`` (int64) and of ``measures`` (float64).
COUNT, NEGATIVE, ZERO, INTEGER, OUTSIDE, COMMA, ROWS, BEFORE, LAST, USED = range(10)
_SUMS = 10
LOW, HIGH, LEAST, MOST, MEAN, SQUARES, MAGNITUDE = range(7)
_MEASURES = 7
_NEVER = np.iinfo(np.int64).max

_ONE, _TEN = np.uint64(1), np.uint64(10)
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@inlined
def _within(number, most):  # type: ignore[no-untyped-def]
    """The nearest number from 0 to ``most``."""
    return np.int64(min(max(number, 0), most))


@inlined
def _shrink(keys, counts, base, used):  # type: ignore[no-untyped-def]
    """Keep the smallest hashes of a full table; returns the largest that may still come in."""
    found = np.empty(used, np.uint64)
    times = np.empty(used, np.int64)
    n = 0
    for k in range(base, base + _ROOM):
        if counts[k] > 0:
            found[n] = keys[k]
            times[n] = counts[k]
            n += 1
            counts[k] = 0
    limit = np.sort(found)[KEPT - 1]
    for k in range(used):
        if found[k] <= limit:
            place = np.int64(found[k] & np.uint64(_ROOM - 1))
            while counts[base + place] > 0:
                place = (place + 1) & (_ROOM - 1)
            keys[base + place] = found[k]
            counts[base + place] = times[k]
    return limit


@kernel(
    types.UniTuple(int64, 2)(  # type: ignore[no-untyped-call]
        reads(uint8), reads(int32), reads(uint8), reads(int32), reads(int32), reads(int32),
        reads(int32), reads(int32), reads(float64), reads(uint64), reads(uint64), reads(int32),
        reads(boolean), reads(boolean), int64,
        writes(int64), writes(float64), writes(int64), writes(int64), writes(int64),
        writes(uint64), writes(int64), writes(uint64), reads(uint64), uint64,
        writes(int32), writes(uint64), writes(int32), writes(uint64),
    )
)  # fmt: skip
def _tally(  # type: ignore[no-untyped-def]
    ids, id_bounds, data, bounds, counts, starts, ends, slots,
    values, bits, digits, exponents, negative, more, row,
    sums, measures, digit_counts, decimal_counts, decade_counts,
    keys, times, limits, sample_limits, row_limit, chosen, chosen_hashes, rows, row_hashes,
):  # fmt: skip
    """``row`` is 1 more than the rows before these. Lists the numbers that may be in the sample of
    their slot in ``chosen``, the rows that may be in the sample of rows in ``rows``; returns how
    many they are."""
    first = np.int64(0)
    found = 0
    rows_found = 0
    for r in range(len(counts)):
        last = first + np.int64(counts[r])
        code = code_of(
            ids, id_bounds[r], id_bounds[r + 1], data, np.int64(bounds[r]), np.int64(bounds[r + 1]),
            starts, ends, digits, exponents, negative, first, last,
        )  # fmt: skip
        if last > first and code <= row_limit:
            rows[rows_found] = r
            row_hashes[rows_found] = code
            rows_found += 1
        for n in range(first, last):
            slot = np.int64(slots[n])
            at = slot * _SUMS
            sums[at + COUNT] += 1
            sums[at + BEFORE] = min(sums[at + BEFORE], n - first)
            sums[at + ROWS] += sums[at + LAST] != row
            sums[at + LAST] = row
            if n > first and starts[n] == ends[n - 1] + 1:
                sums[at + COMMA] += goes_on(data, bounds[r + 1], starts[n - 1], starts[n], ends[n])
            value = values[n]
            word = digits[n]
            if word == 0:
                sums[at + ZERO] += 1
                sums[at + INTEGER] += 1
            else:
                sums[at + NEGATIVE] += negative[n]
                exponent = np.int64(exponents[n])
                width = count_digits(word)
                decade = _within(exponent + width - 1 - FIRST_DECADE, DECADES - 1)
                decade_counts[slot * DECADES + decade] += 1
                decimals = _within(-exponent, MOST_DECIMALS)
                decimal_counts[slot * (MOST_DECIMALS + 1) + decimals] += 1
                if more[n]:
                    width = MOST_DIGITS
                else:
                    while word % _TEN == 0:
                        word //= _TEN
                        width -= 1
                        exponent += 1
                    sums[at + INTEGER] += exponent >= 0
                digit_counts[slot * (MOST_DIGITS + 1) + width] += 1
            if (word != 0 and value == 0.0) or value - value != 0.0:
                sums[at + OUTSIDE] += 1  # 1e400 and 1e-400
            else:
                at = slot * _MEASURES
                measures[at + LOW] = min(measures[at + LOW], value)
                measures[at + HIGH] = max(measures[at + HIGH], value)
                if value != 0.0:
                    measures[at + LEAST] = min(measures[at + LEAST], abs(value))
                    measures[at + MOST] = max(measures[at + MOST], abs(value))
                inside = sums[slot * _SUMS + COUNT] - sums[slot * _SUMS + OUTSIDE]
                step = value - measures[at + MEAN]
                part = 1.0 / inside
                measures[at + MEAN] += value * part - part * measures[at + MEAN]  # no overflow
                measures[at + SQUARES] += step * (value - measures[at + MEAN])
                measures[at + MAGNITUDE] += abs(value) * part - part * measures[at + MAGNITUDE]

            key = hash_word(bits[n])
            if key <= limits[slot]:
                base = slot * _ROOM
                place = np.int64(key & np.uint64(_ROOM - 1))
                while times[base + place] > 0 and keys[base + place] != key:
                    place = (place + 1) & (_ROOM - 1)
                times[base + place] += 1
                if times[base + place] == 1:
                    keys[base + place] = key
                    sums[slot * _SUMS + USED] += 1
                    if sums[slot * _SUMS + USED] == _FULL:
                        limits[slot] = _shrink(keys, times, base, _FULL)
                        sums[slot * _SUMS + USED] = KEPT
            key = key_of(code, n - first)
            if key <= sample_limits[slot] and ends[n] - starts[n] <= LONGEST:
                chosen[found] = n
                chosen_hashes[found] = key
                found += 1
        row += 1
        first = last
    return found, rows_found


@dataclass(frozen=True)
class Distinct:
    """Distinct values, all or the 1,024 with the smallest hashes, each with how often it comes."""

    hashes: NDArray[np.uint64]  # [n] rising
    counts: Ints  # [n]

    @property
    def exact(self) -> bool:
        """Whether these are all."""
        return len(self.hashes) < KEPT

    @property
    def number(self) -> int:
        """How many distinct values there are; where not :attr:`exact`, to some 3%."""
        if self.exact:
            return len(self.hashes)
        return round((KEPT - 1) / ((float(self.hashes[-1]) + 1) / 2.0**64))

    @property
    def values(self) -> Floats:
        """float64[n]: the values themselves, in the order of the hashes."""
        words = _unhash(self.hashes)
        return words.view(np.float64)

    def merged(self, other: "Distinct") -> "Distinct":
        """Those of both together."""
        hashes, place = np.unique(np.concatenate([self.hashes, other.hashes]), return_inverse=True)
        counts = np.zeros(len(hashes), np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, other.counts]))
        return Distinct(hashes[:KEPT], counts[:KEPT])


def _unhash(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The inverse of :func:`hash_word`."""
    words = words.copy()
    for shift, multiplier in ((_S31, _M2), (_S27, _M1), (_S30, _ONE)):
        whole = words.copy()
        for _ in range(64 // int(shift)):  # each turn gets ``shift`` more bits right
            whole = words ^ (whole >> shift)
        words = whole * np.uint64(pow(int(multiplier), -1, 2**64))
    return words - _GAMMA


class NumberStatistics(NamedTuple):
    """The statistics of one slot; magnitudes are of finite numbers that are not 0."""

    numbers: int
    negative: int
    zero: int
    integer: int
    outside: int  # beyond float64
    after_comma: int
    rows: int
    before: int  # the fewest numbers before one in its row
    moments: Moments  # of the finite numbers
    least: float  # magnitude; inf without any
    most: float  # magnitude; -inf without any
    digits: Ints  # [21] numbers of so many significant digits, but zeros
    decimals: Ints  # [21] of so many places after the point, but zeros
    decades: Ints  # [160] of magnitudes from 1e-80 on, but zeros
    distinct: Distinct

    def merged(self, other: "NumberStatistics") -> "NumberStatistics":
        """The statistics of both together; ``rows`` holds for rows that are all different."""
        return NumberStatistics(
            numbers=self.numbers + other.numbers,
            negative=self.negative + other.negative,
            zero=self.zero + other.zero,
            integer=self.integer + other.integer,
            outside=self.outside + other.outside,
            after_comma=self.after_comma + other.after_comma,
            rows=self.rows + other.rows,
            before=min(self.before, other.before),
            moments=self.moments.merged(other.moments),
            least=min(self.least, other.least),
            most=max(self.most, other.most),
            digits=self.digits + other.digits,
            decimals=self.decimals + other.decimals,
            decades=self.decades + other.decades,
            distinct=self.distinct.merged(other.distinct),
        )


class Chosen(NamedTuple):
    """What may be in samples: numbers of some rows, and rows of them that have numbers."""

    numbers: NDArray[np.int32]  # [n] indices
    hashes: NDArray[np.uint64]  # [n]
    rows: NDArray[np.int32]  # [m] indices
    row_hashes: NDArray[np.uint64]  # [m]


class _Arrays(NamedTuple):
    """What the kernel writes for some slots, each field flat."""

    sums: Ints
    measures: Floats
    digits: Ints
    decimals: Ints
    decades: Ints
    keys: NDArray[np.uint64]  # of the tables of distinct values
    times: Ints
    limits: NDArray[np.uint64]  # the largest hash that may still come into each table

    @classmethod
    def of(cls, slots: int) -> "_Arrays":
        """For so many slots without a number."""
        sums = np.zeros((slots, _SUMS), np.int64)
        sums[:, BEFORE] = _NEVER
        measures = np.zeros((slots, _MEASURES))
        measures[:, [LOW, LEAST]], measures[:, HIGH] = np.inf, -np.inf
        return cls(
            sums=sums.reshape(-1),
            measures=measures.reshape(-1),
            digits=np.zeros(slots * (MOST_DIGITS + 1), np.int64),
            decimals=np.zeros(slots * (MOST_DECIMALS + 1), np.int64),
            decades=np.zeros(slots * DECADES, np.int64),
            keys=np.zeros(slots * _ROOM, np.uint64),
            times=np.zeros(slots * _ROOM, np.int64),
            limits=np.full(slots, ANYTHING),
        )

    def grown(self, slots: int) -> "_Arrays":
        """With room for so many slots more."""
        pairs = zip(self, _Arrays.of(slots), strict=True)
        return _Arrays(*(np.concatenate(pair) for pair in pairs))

    def tally(self, slot: int) -> NumberStatistics:
        """The statistics of one slot."""

        def own(field: Ints, width: int) -> Ints:
            return field[slot * width : (slot + 1) * width].copy()

        sums, times = own(self.sums, _SUMS).tolist(), own(self.times, _ROOM)
        low, high, least, most, *spread = self.measures.reshape(-1, _MEASURES)[slot].tolist()
        hashes = self.keys[slot * _ROOM : (slot + 1) * _ROOM][times > 0]
        order = np.argsort(hashes)[:KEPT]
        finite = sums[COUNT] - sums[OUTSIDE]
        counts = own(self.digits, MOST_DIGITS + 1), own(self.decimals, MOST_DECIMALS + 1)
        moments = Moments()
        if finite:
            mean, squares, magnitude = spread
            moments = Moments(
                count=finite, low=low, high=high, mean=mean, squares=squares, magnitude=magnitude
            )
        distinct = Distinct(hashes[order], times[times > 0][order])
        return NumberStatistics._make(
            [*sums[:LAST], moments, least, most, *counts, own(self.decades, DECADES), distinct]
        )


class SlotStatistics:
    """The statistics of all slots of a unit, by node; they grow as nodes are met."""

    def __init__(self) -> None:
        self._rows = 0
        self._place: dict[int, int] = {}
        self._arrays = _Arrays.of(0)
        self._older: dict[int, NumberStatistics] = {}  # of nodes that became another one

    def add(
        self,
        ids: Texts,
        texts: Texts,
        spans: Spans,
        nodes: NDArray[np.int32],
        numerals: Numerals,
        sample_limits: Mapping[int, np.uint64],
        row_limit: np.uint64,
    ) -> Chosen:
        """Count the numbers of some rows, each at its node; ``ids`` tell the rows apart.

        The limits are the largest hash that a number at a node, and a row, may have to be chosen.
        """
        present = np.flatnonzero(np.bincount(nodes, minlength=1)).tolist() if len(nodes) else []
        for node in present:
            self._place.setdefault(node, len(self._place))
        room = len(self._arrays.limits)
        if len(self._place) > room:
            self._arrays = self._arrays.grown(max(len(self._place) - room, room))
        place_of = np.zeros(max(present, default=0) + 1, np.int32)
        limits = np.full(len(self._arrays.limits), ANYTHING)
        for node in present:
            place_of[node] = self._place[node]
            limits[self._place[node]] = sample_limits.get(node, ANYTHING)
        chosen = np.empty(len(nodes), np.int32)
        hashes = np.empty(len(nodes), np.uint64)
        values = numerals.values + 0.0  # -0 is 0
        significands = numerals.significands
        rows = np.empty(len(spans.counts), np.int32)
        row_hashes = np.empty(len(spans.counts), np.uint64)
        found, rows_found = _tally(
            ids.data, ids.rows, texts.data, texts.rows, spans.counts, spans.starts, spans.ends,
            place_of[nodes], values, values.view(np.uint64), *significands,
            self._rows + 1, *self._arrays, limits,
            row_limit, chosen, hashes, rows, row_hashes,
        )  # fmt: skip
        self._rows += len(spans.counts)
        return Chosen(
            chosen[:found].copy(),
            hashes[:found].copy(),
            rows[:rows_found].copy(),
            row_hashes[:rows_found].copy(),
        )

    def move(self, became: NDArray[np.int32]) -> None:
        """Nodes have become other nodes: node i is now ``became[i]``."""
        tallies = self.by_node()
        self._place, self._arrays = {}, _Arrays.of(0)
        self._older = merged_tallies([(int(became[node]), tallies[node]) for node in tallies])

    def by_node(self) -> dict[int, NumberStatistics]:
        """The statistics of every node that has numbers."""
        found = [(node, self._arrays.tally(place)) for node, place in self._place.items()]
        return merged_tallies([*self._older.items(), *found])


def most(counts: Ints) -> int | None:
    """The largest size, of int64[sizes], the count of numbers of each; None without any."""
    return int(np.flatnonzero(counts)[-1]) if counts.any() else None


def merged_tallies(tallies: Iterable[tuple[int, NumberStatistics]]) -> dict[int, NumberStatistics]:
    """One for each node, merged in the order given."""
    merged: dict[int, NumberStatistics] = {}
    for node, tally in tallies:
        merged[node] = merged[node].merged(tally) if node in merged else tally
    return merged
