"""Mergeable statistics of the numbers in each field, computed by compiled code in one pass.

Counts and extremes are exact. The 1,024 distinct values with the smallest hashes are kept with
their counts (a bottom-k sketch: Cohen and Kaplan 2007). If there are more distinct values, their
number is estimated from the largest of these hashes. If the hash of a value is among the smallest
in all rows, it is also among the smallest in each part of the data that contains the value, so the
count is complete. The result therefore does not depend on how rows are divided into parts.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Floats, Ints
from numtok.encoding.normalizers.base import Moments
from numtok.encoding.row_keys import ANYTHING, KEPT, SPANS, TEXTS, goes_on, hash_word
from numtok.encoding.texts import Texts
from numtok.kernel_types import boolean, float64, int32, int64, reads, struct, uint64, void, writes
from numtok.kernels import inlined, kernel, read_only
from numtok.numerals.column import Numerals
from numtok.numerals.decimals import count_digits
from numtok.numerals.find import Spans

MOST_DIGITS, MOST_DECIMALS = 20, 20  # the last count includes numbers with more
DECADES, FIRST_DECADE = 160, -80  # powers of ten; the first and last include those beyond

_ROOM, _FULL = 2 * KEPT, KEPT + KEPT // 2  # of a table of distinct values

_NEVER = np.iinfo(np.int64).max

_ONE, _TEN = np.uint64(1), np.uint64(10)
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@inlined
def _within(number, most):  # type: ignore[no-untyped-def]
    """Clamp a number to 0..``most``."""
    return np.int64(min(max(number, 0), most))


_INTEGERS = (
    "numbers", "negative", "zero", "integer", "outside", "after_comma", "rows", "before", "last",
    "used",
)  # fmt: skip
_FLOATS = ("low", "high", "least", "most", "mean", "squares", "magnitude")
#: Statistics of a field: counts as in :class:`NumberStatistics`; the ``last`` row with one of its
#: numbers; the number of ``used`` entries of its table of distinct values and the largest hash
#: that the table accepts (``limit``); the moments of its finite numbers.
_TALLY = np.dtype(
    [
        *((name, np.int64) for name in _INTEGERS),
        *((name, np.float64) for name in _FLOATS),
        ("limit", np.uint64),
    ],
    align=True,
)


class _Numbers(NamedTuple):
    """A column of numbers, each with its field."""

    values: Floats
    bits: NDArray[np.uint64]  # of the values
    fields: NDArray[np.int32]
    digits: NDArray[np.uint64]  # this and the rest as in ``Significands``
    exponents: NDArray[np.int32]
    negative: NDArray[np.bool_]
    more: NDArray[np.bool_]


class _Tallies(NamedTuple):
    """Statistics of several fields, filled by the kernels."""

    fields: NDArray[np.void]  # _TALLY[fields]
    digits: Ints  # [fields, 21] as in :class:`NumberStatistics`
    decimals: Ints  # [fields, 21]
    decades: Ints  # [fields, 160]
    keys: NDArray[np.uint64]  # [fields, room] tables of distinct values, by their hashes
    times: Ints  # [fields, room]

    @classmethod
    def of(cls, fields: int) -> "_Tallies":
        """Return empty statistics for this many fields."""
        tallies = np.zeros(fields, _TALLY)
        tallies["before"], tallies["limit"] = _NEVER, ANYTHING
        tallies["low"], tallies["least"] = np.inf, np.inf
        tallies["high"], tallies["most"] = -np.inf, -np.inf
        return cls(
            tallies,
            digits=np.zeros((fields, MOST_DIGITS + 1), np.int64),
            decimals=np.zeros((fields, MOST_DECIMALS + 1), np.int64),
            decades=np.zeros((fields, DECADES), np.int64),
            keys=np.zeros((fields, _ROOM), np.uint64),
            times=np.zeros((fields, _ROOM), np.int64),
        )

    def grown(self, fields: int) -> "_Tallies":
        """Return a copy with room for this many more fields."""
        pairs = zip(self, _Tallies.of(fields), strict=True)
        return _Tallies(*(np.concatenate(pair) for pair in pairs))

    def statistics(self, field: int) -> "NumberStatistics":
        """Return the statistics of one field."""
        totals = dict(zip(_TALLY.names or (), self.fields[field].item(), strict=True))
        finite = totals["numbers"] - totals["outside"]
        spread = {name: totals[name] for name in ("low", "high", "mean", "squares", "magnitude")}
        held = self.times[field] > 0
        order = np.argsort(self.keys[field][held])[:KEPT]
        return NumberStatistics(
            **{name: totals[name] for name in (*_SUMMED, "before", "least", "most")},
            moments=Moments(count=finite, **spread) if finite else Moments(),
            digits=self.digits[field].copy(),
            decimals=self.decimals[field].copy(),
            decades=self.decades[field].copy(),
            distinct=Distinct(self.keys[field][held][order], self.times[field][held][order]),
        )


_NUMBERS = struct(
    _Numbers, values=reads(float64), bits=reads(uint64), fields=reads(int32), digits=reads(uint64),
    exponents=reads(int32), negative=reads(boolean), more=reads(boolean),
)  # fmt: skip
_TALLIES = struct(
    _Tallies, fields=writes(_TALLY), digits=writes(int64, 2), decimals=writes(int64, 2),
    decades=writes(int64, 2), keys=writes(uint64, 2), times=writes(int64, 2),
)  # fmt: skip


@inlined
def _count_digits(tallies, field, n, numbers):  # type: ignore[no-untyped-def]
    """Count a number that is not 0 by its digits as written."""
    tally = tallies.fields[field]
    word = numbers.digits[n]
    tally.negative += numbers.negative[n]
    exponent = np.int64(numbers.exponents[n])
    width = count_digits(word)
    tallies.decades[field, _within(exponent + width - 1 - FIRST_DECADE, DECADES - 1)] += 1
    tallies.decimals[field, _within(-exponent, MOST_DECIMALS)] += 1
    if numbers.more[n]:
        width = MOST_DIGITS
    else:
        while word % _TEN == 0:
            word //= _TEN
            width -= 1
            exponent += 1
        tally.integer += exponent >= 0
    tallies.digits[field, width] += 1


@inlined
def _measure(tally, value):  # type: ignore[no-untyped-def]
    """Add a finite value, already counted, to the moments of its field."""
    tally.low = min(tally.low, value)
    tally.high = max(tally.high, value)
    if value != 0.0:
        tally.least = min(tally.least, abs(value))
        tally.most = max(tally.most, abs(value))
    step = value - tally.mean
    part = 1.0 / (tally.numbers - tally.outside)
    tally.mean += value * part - part * tally.mean  # no overflow
    tally.squares += step * (value - tally.mean)
    tally.magnitude += abs(value) * part - part * tally.magnitude


@inlined
def _shrink(keys, times, hashes, counts):  # type: ignore[no-untyped-def]
    """Keep the smallest hashes of a full table, and return the largest hash that it accepts
    afterwards. ``hashes`` and ``counts`` are working memory."""
    n = 0
    for k in range(_ROOM):
        if times[k] > 0:
            hashes[n] = keys[k]
            counts[n] = times[k]
            n += 1
            times[k] = 0
    limit = np.uint64(0)  # the hash with KEPT - 1 smaller ones: bit by bit, the highest first
    for k in range(64):
        higher = limit | (np.uint64(1) << np.uint64(63 - k))
        smaller = 0
        for n in range(_FULL):
            smaller += hashes[n] < higher
        if smaller < KEPT:
            limit = higher
    for k in range(_FULL):
        if hashes[k] <= limit:
            index = np.int64(hashes[k] & np.uint64(_ROOM - 1))
            while times[index] > 0:
                index = (index + 1) & (_ROOM - 1)
            keys[index] = hashes[k]
            times[index] = counts[k]
    return limit


@inlined
def _count_distinct(tallies, field, key, hashes, counts):  # type: ignore[no-untyped-def]
    """Count a value, by its hash, in the table of its field."""
    tally = tallies.fields[field]
    if key > tally.limit:
        return
    keys, times = tallies.keys[field], tallies.times[field]
    index = np.int64(key & np.uint64(_ROOM - 1))
    while times[index] > 0 and keys[index] != key:
        index = (index + 1) & (_ROOM - 1)
    times[index] += 1
    if times[index] == 1:
        keys[index] = key
        tally.used += 1
        if tally.used == _FULL:
            tally.limit = _shrink(keys, times, hashes, counts)
            tally.used = KEPT


@kernel(void(TEXTS, SPANS, _NUMBERS, int64, _TALLIES, writes(uint64), writes(int64)))
def _tally(texts, spans, numbers, row, tallies, hashes, counts):  # type: ignore[no-untyped-def]
    """Count the numbers of some rows; ``row`` is 1 more than the number of rows before them.
    ``hashes`` and ``counts`` are working memory."""
    first = np.int64(0)
    for r in range(len(spans.counts)):
        last = first + np.int64(spans.counts[r])
        for n in range(first, last):
            field = np.int64(numbers.fields[n])
            tally = tallies.fields[field]
            tally.numbers += 1
            tally.before = min(tally.before, n - first)
            tally.rows += tally.last != row
            tally.last = row
            if n > first and spans.starts[n] == spans.ends[n - 1] + 1:
                tally.after_comma += goes_on(
                    texts.data, texts.rows[r + 1], spans.starts[n - 1], spans.starts[n],
                    spans.ends[n],
                )  # fmt: skip
            value = numbers.values[n]
            if numbers.digits[n] == 0:
                tally.zero += 1
                tally.integer += 1
            else:
                _count_digits(tallies, field, n, numbers)
            if (numbers.digits[n] != 0 and value == 0.0) or value - value != 0.0:
                tally.outside += 1  # 1e400 and 1e-400
            else:
                _measure(tally, value)
            _count_distinct(tallies, field, hash_word(numbers.bits[n]), hashes, counts)
        row += 1
        first = last


@dataclass(frozen=True)
class Distinct:
    """Distinct values, as hashes with counts: all of them, or only the 1,024 with the smallest
    hashes."""

    hashes: NDArray[np.uint64]  # [n] ascending
    counts: Ints  # [n]

    @property
    def exact(self) -> bool:
        """True if all distinct values are included."""
        return len(self.hashes) < KEPT

    @property
    def number(self) -> int:
        """Number of distinct values; accurate to about 3% unless :attr:`exact`."""
        if self.exact:
            return len(self.hashes)
        return round((KEPT - 1) / ((float(self.hashes[-1]) + 1) / 2.0**64))

    @property
    def values(self) -> Floats:
        """The included values, float64[n], in the order of their hashes."""
        words = _unhash(self.hashes)
        return words.view(np.float64)

    def merged(self, other: "Distinct") -> "Distinct":
        """Return the distinct values in two parts of the data, ``self`` and ``other``."""
        hashes, index = np.unique(np.concatenate([self.hashes, other.hashes]), return_inverse=True)
        counts = np.zeros(len(hashes), np.int64)
        np.add.at(counts, index, np.concatenate([self.counts, other.counts]))
        return Distinct(hashes[:KEPT], counts[:KEPT])


def _unhash(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Invert :func:`hash_word`."""
    words = words.copy()
    for shift, multiplier in ((_S31, _M2), (_S27, _M1), (_S30, _ONE)):
        whole = words.copy()
        for _ in range(64 // int(shift)):  # each turn gets ``shift`` more bits right
            whole = words ^ (whole >> shift)
        words = whole * np.uint64(pow(int(multiplier), -1, 2**64))
    return words - _GAMMA


#: Fields of :class:`NumberStatistics` that add up.
_SUMMED = ("numbers", "negative", "zero", "integer", "outside", "after_comma", "rows")


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberStatistics:
    """Statistics of the numbers in one field. Magnitudes cover only finite, nonzero numbers."""

    numbers: int
    negative: int
    zero: int
    integer: int
    outside: int  # beyond float64
    after_comma: int
    rows: int
    before: int  # smallest number of numbers that precede one in its row
    moments: Moments  # of the finite numbers
    least: float  # magnitude; inf without any
    most: float  # magnitude; -inf without any
    digits: Ints  # [21] nonzero numbers by significant digits
    decimals: Ints  # [21] nonzero numbers by digits after the point
    decades: Ints  # [160] nonzero numbers by decade, from 1e-80
    distinct: Distinct

    def merged(self, other: "NumberStatistics") -> "NumberStatistics":
        """Return the statistics for two parts of the data, ``self`` and ``other``, together.

        ``rows`` is correct only if no row has numbers in both parts.
        """
        sums = (*_SUMMED, "digits", "decimals", "decades")
        return NumberStatistics(
            **{name: getattr(self, name) + getattr(other, name) for name in sums},
            before=min(self.before, other.before),
            moments=self.moments.merged(other.moments),
            least=min(self.least, other.least),
            most=max(self.most, other.most),
            distinct=self.distinct.merged(other.distinct),
        )


class FieldStatistics:
    """Statistics for all fields in a unit of rows, updated batch by batch.

    A field is identified by its node in :class:`Fields`.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._index: dict[int, int] = {}
        self._tallies = _Tallies.of(0)
        self._older: dict[int, NumberStatistics] = {}  # of nodes before they were merged

    def add(self, texts: Texts, spans: Spans, nodes: NDArray[np.int32], numerals: Numerals) -> None:
        """Add the numbers in a batch of rows. ``nodes`` int32[numbers] contains the node of each
        number."""
        present = np.flatnonzero(np.bincount(nodes, minlength=1)).tolist() if len(nodes) else []
        for node in present:
            self._index.setdefault(node, len(self._index))
        room = len(self._tallies.fields)
        if len(self._index) > room:
            self._tallies = self._tallies.grown(max(len(self._index) - room, room))
        index_of = np.zeros(max(present, default=0) + 1, np.int32)
        for node in present:
            index_of[node] = self._index[node]
        values = numerals.values + 0.0  # -0 is 0
        numbers = _Numbers(values, values.view(np.uint64), index_of[nodes], *numerals.significands)
        columns: tuple[Any, ...] = (texts, spans.offsets, numbers)
        scratch = np.empty(_FULL, np.uint64), np.empty(_FULL, np.int64)
        _tally(*map(read_only, columns), self._rows + 1, self._tallies, *scratch)
        self._rows += len(spans.counts)

    def move(self, became: NDArray[np.int32]) -> None:
        """Renumber the nodes: node i becomes ``became[i]`` (int32[nodes]).

        Fields whose nodes become equal are merged.
        """
        tallies = self.by_node()
        self._index, self._tallies = {}, _Tallies.of(0)
        self._older = merged_tallies([(int(became[node]), tallies[node]) for node in tallies])

    def by_node(self) -> dict[int, NumberStatistics]:
        """Return the statistics of each field that has numbers, keyed by node."""
        present = [(node, self._tallies.statistics(index)) for node, index in self._index.items()]
        return merged_tallies([*self._older.items(), *present])


def most(counts: Ints) -> int | None:
    """Return the largest index whose count is above 0, or None if all counts int64[n] are 0."""
    return int(np.flatnonzero(counts)[-1]) if counts.any() else None


def merged_tallies(tallies: Iterable[tuple[int, NumberStatistics]]) -> dict[int, NumberStatistics]:
    """Merge pairs of a node and its statistics into one entry per node, in the given order."""
    merged: dict[int, NumberStatistics] = {}
    for node, tally in tallies:
        merged[node] = merged[node].merged(tally) if node in merged else tally
    return merged
