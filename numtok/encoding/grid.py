"""grid: schemes that round numbers to a grid and write a fixed number of tokens.

Subclasses of :class:`GridScheme` define the tokens at each position (``places``), the largest
number of units (``most``), and the conversion between units and tokens (``write``, ``read``). By
default a unit is ``10^-decimals``; other grids define their own units.

An ordinary number has one token at each position. Every other number, such as NaN or an overflow,
is written as one of the extra tokens, repeated at every position. The length of a masked number
therefore does not reveal whether it was zero.

All tokens of a number may be written several times, as in "Decoding-based Regression", Section 4.5.
Decoding takes a majority vote of the copies. The first vote decides whether the number is ordinary
or which extra token it is. Then each position is decided among the copies that agree with the first
vote. In a tie, the earlier copy wins.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools, Floats, Int32s, Ints, UInt8s, UInt32s
from numtok.encoding.schemes.base import (
    EXTRAS,
    Bounds,
    Channel,
    DecodedNumbers,
    Encoded,
    Failure,
    LargestError,
    Next,
    Outcome,
    Scheme,
    outcomes_of,
)
from numtok.numerals.column import Numerals
from numtok.numerals.literals import units_of

_EXTRA_OF_OUTCOME = ("ZERO", *EXTRAS)  # starting at Outcome.ZERO; both zeros share a token
_VALUE_OF_EXTRA = {"ZERO": 0.0, "NAN": np.nan, "+INF": np.inf, "-INF": -np.inf}


#: Names of the tokens, by position.
Places = tuple[Sequence[str], ...]
#: Index of the token of each number, int64[n] or bool[n], by position.
Columns = Sequence[NDArray[Any]]


class Units(NamedTuple):
    """``n`` numbers on a grid, each given as a count of units and a sign."""

    counts: Ints  # [n]
    negative: Bools  # [n]


class GridScheme(Scheme):
    """Base class for schemes that round numbers to a grid.

    By default, the unit is ``10^-decimals``, and the grid consists of its multiples up to ``most``
    units. Nonzero numbers that round to zero underflow.

    contiguous
        True if the numbers with a common token prefix form an interval. If so, :meth:`span` accepts
        prefixes, and after the first token, ids ascend or descend with the values.
    """

    extras: ClassVar[tuple[str, ...]] = EXTRAS[1:]  # zero is an ordinary number
    contiguous: ClassVar[bool] = False

    @property
    @abstractmethod
    def places(self) -> Places:
        """Names of the tokens at each position, in the order of their indices. Equal names at
        different positions are the same token."""

    @property
    @abstractmethod
    def most(self) -> int:
        """Largest magnitude that the scheme can represent, in units. Tokens for a larger magnitude
        decode to an overflow."""

    @property
    def decimals(self) -> int:
        """Number of decimal places that are kept."""
        return 0

    @abstractmethod
    def write(self, units: Units) -> Columns:
        """Return the token index of each number, int64[n] or bool[n], for every position."""

    @abstractmethod
    def read(self, indices: Ints) -> Units:
        """Return the numbers with the given token indices, int64[n, positions], in units. This is
        the inverse of :meth:`write`."""

    # --- for other grids ----------------------------------------------------------------------

    @property
    def repeat(self) -> int:
        """Number of times that the tokens of a number are written."""
        return 1

    def units_of(self, numerals: Numerals) -> tuple[UInt8s, Units]:
        """Return the outcome of each number, uint8[n], and the numbers in units. The units of
        numbers that are not ordinary are arbitrary."""
        values, (_, below) = numerals.values, numerals.out_of_float64()
        inside = np.abs(values) <= (self.most + 1) / 10**self.decimals
        counts = units_of(np.where(inside, values, 0.0), self.decimals)
        over = ~inside | (counts > self.most)
        under = inside & (counts == 0) & ((values != 0) | below)
        return outcomes_of(numerals, over, under), Units(counts, np.signbit(values))

    def values_of(self, units: Units) -> Floats:
        """Return the values of numbers in units, float64[n]. An overflow is infinite, and an
        underflow is NaN."""
        sizes = np.where(units.counts > self.most, np.inf, units.counts / 10.0**self.decimals)
        return np.where(units.negative, -sizes, sizes)

    def ends(self, counts: Ints) -> tuple[Floats, Floats]:
        """Return the interval of magnitudes that each count of units represents: low and high ends,
        float64[n] each."""
        steps = 2 * 10.0**self.decimals
        low, high = (2 * np.minimum(counts, self.most + 1) - 1) / steps, (2 * counts + 1) / steps
        zero, beyond = counts == 0, counts > self.most
        return np.where(zero, 0.0, low), np.where(zero, 0.0, np.where(beyond, np.inf, high))

    @property
    def bounds(self) -> Bounds:
        return Bounds(1 / 10**self.decimals, self.most / 10**self.decimals)

    @property
    def error(self) -> LargestError:
        return LargestError(0.5 / 10**self.decimals, absolute=True)

    @cached_property
    def covered(self) -> tuple[Bounds, Bounds]:
        """Ranges of the negative and the positive ordinary numbers, excluding zero."""
        low, high = self.ends(np.array([1, self.most]))
        return Bounds(-float(high[1]), -float(low[0])), Bounds(float(low[0]), float(high[1]))

    def are_written(self, indices: Ints) -> Bools:
        """Return whether :meth:`follow` allows each number, bool[n]. Numbers are given as token
        indices, int64[n, positions]."""
        return np.ones(len(indices), np.bool_)

    def follow(self, prefix: tuple[int, ...]) -> Ints | slice:
        """Return the indices of the tokens that may follow a prefix of an ordinary number,
        int64[k], or a slice if all may follow."""
        return slice(None)

    def remembered(self, prefix: tuple[int, ...]) -> tuple[int, ...]:
        """Return the part of a prefix that, together with its length, determines which tokens may
        follow."""
        return ()

    def span(self, prefix: tuple[int, ...]) -> Bounds:
        """Return the interval of values that the token indices of an ordinary number represent. If
        the scheme is contiguous, prefixes are also accepted."""
        (low,), (high,) = (ends.tolist() for ends in self.spans(np.array([prefix])))
        return Bounds(low, high)

    def counted_vocabulary(self) -> tuple[str, ...]:
        """Return the tokens of ordinary numbers, in the order of their local ids. They form the
        vocabulary defined in the scheme's paper."""
        return tuple(dict.fromkeys(chain.from_iterable(self._places)))

    # --- derived ------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> Places:
        return self.places

    @cached_property
    def tokens_per_number(self) -> int:
        return len(self._places) * self.repeat

    def vocabulary(self) -> tuple[str, ...]:
        return self._every_token

    @cached_property
    def _every_token(self) -> tuple[str, ...]:
        return self.counted_vocabulary() + self.extras

    @cached_property
    def ids(self) -> list[Ints]:
        """Local ids of the tokens at each position, int64[k] each."""
        numbers = {name: number for number, name in enumerate(self.counted_vocabulary())}
        return [np.array([numbers[name] for name in names]) for names in self._places]

    @cached_property
    def _indices(self) -> Ints:
        """Index of each id at each position, int64[positions, vocabulary + 1]; -1 if invalid."""
        indices = np.full((len(self._places), len(self.vocabulary()) + 1), -1)
        for position, ids in enumerate(self.ids):
            indices[position, ids] = np.arange(len(ids))
        return indices

    def encode(self, numerals: Numerals) -> Encoded:
        outcomes, units = self.units_of(numerals)
        tokens = np.empty((len(numerals), len(self._places)), np.uint32)
        for position, indices in enumerate(self.write(units)):
            tokens[:, position] = self.ids[position].take(indices, mode="clip")
        special = np.flatnonzero(outcomes)
        ids = np.zeros(len(Outcome), np.uint32)
        for outcome, extra in zip(list(Outcome)[1:], _EXTRA_OF_OUTCOME, strict=True):
            if extra in self.extras:
                ids[outcome] = self._counted + self.extras.index(extra)
        tokens[special] = ids[outcomes[special], None]
        lengths = np.full(len(numerals), self.tokens_per_number, np.int32)
        copies = tokens if self.repeat == 1 else np.tile(tokens, self.repeat)
        return Encoded(copies.reshape(-1), lengths, outcomes)

    @cached_property
    def _counted(self) -> int:
        return len(self.vocabulary()) - len(self.extras)

    def decode(
        self, tokens: UInt32s, lengths: Int32s, channel: Channel | None = None
    ) -> DecodedNumbers:
        values = np.full(len(lengths), np.nan)
        failures = np.full(len(lengths), Failure.MALFORMED, np.uint8)
        width = self.tokens_per_number
        whole = np.flatnonzero(lengths == width)
        firsts = np.cumsum(lengths, dtype=np.int64)[whole] - width
        table = tokens.astype(np.int64)[firsts[:, None] + np.arange(width)]
        copies = table.reshape(len(whole), self.repeat, len(self._places))
        indices = self._indices_of(copies)
        ordinary = np.all(indices >= 0, axis=2)
        ordinary[ordinary] = self.are_written(_chosen(indices, ordinary))
        extra = copies[:, :, 0] - self._counted
        special = (extra >= 0) & (extra < len(self.extras)) & (copies == copies[:, :, :1]).all(2)
        formed = (ordinary | special).all(axis=1)
        whole = _chosen(whole, formed)
        table = _majority(_chosen(copies, formed), _chosen(ordinary, formed))

        extra = table[:, 0] - self._counted
        number = extra < 0
        decoded = np.empty(len(table))
        voted = _chosen(indices, formed)[:, 0] if self.repeat == 1 else self._indices_of(table)
        decoded[number] = self.values_of(self.read(_chosen(voted, number)))
        decoded[~number] = np.array([_VALUE_OF_EXTRA.get(name, np.nan) for name in self.extras])[
            extra[~number]
        ]
        failed = np.zeros(len(table), np.uint8)
        failed[number & np.isinf(decoded)] = Failure.OVERFLOW
        failed[number & np.isnan(decoded)] = Failure.UNDERFLOW
        failed[~number] = np.array([_failure_of(name) for name in self.extras])[extra[~number]]
        values[whole] = np.where(failed, np.nan, decoded)
        failures[whole] = failed
        return DecodedNumbers(values, failures)

    def next(self, prefix: tuple[int, ...]) -> Next:
        counted = self._counted
        allowed = np.zeros(counted + len(self.extras), np.bool_)
        if len(prefix) == self.tokens_per_number:
            return Next(allowed, may_end=True)
        copy = prefix[len(prefix) - len(prefix) % len(self._places) :]
        if copy and copy[0] >= counted:
            allowed[copy[0]] = True
            return Next(allowed, may_end=False, state=copy[:1])
        indices = self._prefix(copy)
        allowed[self.ids[len(copy)][self.follow(indices)]] = True
        allowed[counted:] = not copy
        # Extras have ids beyond all indices, so states stay distinct.
        return Next(allowed, may_end=False, state=self.remembered(indices))

    def interval(self, tokens: tuple[int, ...]) -> Bounds:
        copy = tokens[: len(self._places)]
        if tokens and tokens == copy * self.repeat:  # all copies agree
            tokens = copy
        elif len(tokens) == self.tokens_per_number and self.repeat > 1:
            copies = np.array(tokens).reshape(1, self.repeat, -1)
            tokens = tuple(_majority(copies, copies[:, :, 0] < self._counted)[0].tolist())
        elif self.repeat > 1 or not tokens:
            return Bounds(-np.inf, np.inf)  # the other copies decide
        if tokens[0] >= self._counted:
            return self._interval_of_extra(self.extras[tokens[0] - self._counted])
        return self.span(self._prefix(tokens))

    def cells(self, tokens: NDArray[np.integer[Any]]) -> tuple[Floats, Floats]:
        """Return the intervals of many complete numbers (see :meth:`interval`): low and high ends,
        float64[n] each.

        tokens
            int64[n, tokens_per_number], local ids.
        """
        copies = tokens.astype(np.int64).reshape(len(tokens), self.repeat, len(self._places))
        table = _majority(copies, copies[:, :, 0] < self._counted)
        extra = table[:, 0] - self._counted
        ends = np.empty((len(table), 2))
        ends[extra < 0] = np.column_stack(self.spans(self._indices_of(table[extra < 0])))
        of_extras = np.array([self._interval_of_extra(name) for name in self.extras])
        ends[extra >= 0] = of_extras[extra[extra >= 0]]
        low, high = ends.T
        return low, high

    def spans(self, indices: Ints) -> tuple[Floats, Floats]:
        """Return the interval of values that each number's tokens represent: low and high ends,
        float64[n] each.

        indices
            int64[n, positions], token indices.
        """
        counts, negative = self.read(indices)
        low, high = self.ends(counts)
        return np.where(negative, -high, low), np.where(negative, -low, high)

    def _indices_of(self, ids: Ints) -> Ints:
        """Return the indices of ids [..., positions]; -1 for ids that are invalid at a position."""
        width = self._indices.shape[1]
        flat = np.minimum(ids, width - 1) + width * np.arange(len(self._places))
        indices: Ints = self._indices.ravel().take(flat)
        return indices

    def _prefix(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(int(self._indices[position, token]) for position, token in enumerate(ids))

    def _interval_of_extra(self, extra: str) -> Bounds:
        if extra in _VALUE_OF_EXTRA:
            return Bounds(_VALUE_OF_EXTRA[extra], _VALUE_OF_EXTRA[extra])
        negative, positive = self.covered
        return {
            "+UNDERFLOW": Bounds(0.0, positive.low),
            "-UNDERFLOW": Bounds(negative.high, 0.0),
            "+OVERFLOW": Bounds(positive.high, np.inf),
            "-OVERFLOW": Bounds(-np.inf, negative.low),
        }[extra]


def cells(scheme: Scheme, tokens: NDArray[np.integer[Any]]) -> tuple[Floats, Floats]:
    """Return the interval of values that each token sequence represents (see
    :meth:`Scheme.interval`): low and high ends, float64[n] each.

    tokens
        int[n, k], local ids. ``k`` is the number of tokens per number, or less if the scheme is
        contiguous.

    >>> cells(SCHEMES.build("nd"), np.array([[0, 2], [9, 9]]))
    (array([0.02, 0.99]), array([0.03, 1.  ]))
    """
    if isinstance(scheme, GridScheme) and tokens.shape[1] == scheme.tokens_per_number:
        return scheme.cells(tokens)
    intervals = [scheme.interval(path) for path in map(tuple, tokens.tolist())]
    low, high = np.array(intervals, np.float64).reshape(-1, 2).T
    return low, high


def is_contiguous(scheme: Scheme) -> bool:
    """Return whether the numbers with a common token prefix always form an interval in this
    scheme. They do not if each number is encoded as several copies, of which the majority
    counts."""
    return isinstance(scheme, GridScheme) and scheme.contiguous and scheme.repeat == 1


def ascending(scheme: Scheme, prefix: tuple[int, ...]) -> Ints | None:
    """Return the tokens that may follow a prefix, int64[k], in ascending order of the values of
    their numbers. NaN comes last.

    This order allows the cumulative distribution function and its inverse to be computed exactly,
    one token at a time. Returns None if the scheme is not contiguous.

    >>> ascending(SCHEMES.build("nd,base=4"), (3,))
    array([0, 1, 2, 3])
    """
    if not is_contiguous(scheme):
        return None
    tokens = np.flatnonzero(scheme.next(prefix).allowed)
    if prefix:  # the ids ascend or descend with the values
        first, last = (scheme.interval((*prefix, int(token))) for token in tokens[[0, -1]])
        tokens = tokens if first.low <= last.low else tokens[::-1]
        apart = len(tokens) == 1 or first.low != last.low
    else:
        low, high = cells(scheme, tokens[:, None])
        order = np.lexsort((high, low))
        tokens, low, high = tokens[order], low[order], high[order]
        apart = not (low[1:] < high[:-1]).any()
    return tokens if apart else None


def _chosen(array: NDArray[Any], mask: Bools) -> NDArray[Any]:
    """Return ``array[mask]``, without a copy in the common case that the mask is all true."""
    if mask.all():
        return array.reshape(mask.size, *array.shape[mask.ndim :])
    return array[mask]


def _failure_of(extra: str) -> Failure:
    if extra in _VALUE_OF_EXTRA:
        return Failure.NONE
    return Failure.OVERFLOW if extra.endswith("OVERFLOW") else Failure.UNDERFLOW


def _majority(copies: Ints, ordinary: Bools) -> Ints:
    """Return the majority of [n, copies, positions] at each position, int64[n, positions]."""
    if copies.shape[1] == 1:
        return copies[:, 0]
    kind = _voted(copies[:, :, 0], np.ones_like(ordinary))
    alike = ordinary == np.take_along_axis(ordinary, kind[:, None], axis=1)
    chosen = [_voted(copies[:, :, position], alike) for position in range(copies.shape[2])]
    return np.take_along_axis(copies, np.stack(chosen, axis=1)[:, None], axis=1)[:, 0]


def _voted(tokens: Ints, counting: Bools) -> Ints:
    """Return the index of the first copy that has the most frequent token, int64[n]. Only the
    copies marked in ``counting`` are considered."""
    votes = ((tokens[:, :, None] == tokens[:, None]) & counting[:, None]).sum(axis=2)
    first: Ints = np.where(counting, votes, -1).argmax(axis=1)
    return first
