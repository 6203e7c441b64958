"""Distributions over intervals of the real line, with probabilities predicted by a token head.

The density is uniform within an interval. A token for zero, NaN or an infinity is an atom at that
value. An overflow, whose interval is unbounded, is an atom at infinity; its total mass is used as
the density of any value in its interval. An underflow is an ordinary interval, between zero
and the smallest number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from numtok.models.distributions import piecewise
from numtok.models.distributions.predictive import Floats, Predictive, checked

_POINT, _BOUNDED, _UNBOUNDED, _NONE = range(4)  # precedence at values that several contain


@dataclass(frozen=True, eq=False, kw_only=True)
class Intervals(Predictive):
    """``n`` distributions over the same ``m`` intervals, given in raw units.

    >>> support = Support.of(grammar).raw(codec.normalizer)
    >>> log_mass = support.log_probabilities(logits)
    >>> low, high, values = support.low, support.high, support.values
    >>> Intervals(low=low, high=high, values=values, log_mass=log_mass)

    Intervals are in ascending order and overlap at most at their ends; NaN comes last. An interval
    whose ends are equal after rounding is an atom. The arrays take about 3 * n * m * 8 bytes.
    """

    low: Floats  # [m]
    high: Floats  # [m]
    values: Floats  # [m], the decoded value of each; NaN if decoding fails
    log_mass: Floats  # [n, m], each row is normalized
    #: Function that maps raw values to intervals, or to -1 for none; None if the interval of a
    #: value at a boundary is not known exactly.
    places: Callable[[Floats], NDArray[np.int64]] | None = None
    #: Whether the mode is the interval with the highest density, as for a histogram, rather than
    #: the most probable interval, as for tokens.
    by_density: bool = False

    def __post_init__(self) -> None:
        for ends in (self.low, self.high):
            if not np.array_equal(ends, np.sort(ends), equal_nan=True):
                raise ValueError("the intervals of a distribution must ascend, with NaN last")

    # --- the support, shared by all rows ---------------------------------------------------------

    @cached_property
    def _kind(self) -> NDArray[np.int64]:
        point = (self.low == self.high) | np.isnan(self.low)
        endless = np.isinf(self.low) | np.isinf(self.high)
        return np.where(point, _POINT, np.where(endless, _UNBOUNDED, _BOUNDED))

    @cached_property
    def _start(self) -> Floats:
        """float64[m]: where each interval starts; an overflow is at its infinity."""
        return np.where(np.isinf(self.high), self.high, self.low)

    @cached_property
    def _width(self) -> Floats:
        """float64[m]: widths, 0 for an atom."""
        bounded = self._kind == _BOUNDED
        return np.subtract(self.high, self.low, where=bounded, out=np.zeros(len(self.low)))

    @cached_property
    def _end(self) -> Floats:
        return np.where(np.isinf(self.low), self.low, self.high)

    @cached_property
    def _numbers(self) -> slice:
        return slice(0, int(np.searchsorted(self.low, np.nan)))

    @cached_property
    def _finite(self) -> slice:
        ends = np.searchsorted(self._end, -np.inf, "right"), np.searchsorted(self._start, np.inf)
        return slice(int(ends[0]), int(ends[1]))

    @cached_property
    def _below(self) -> Floats:
        """float64[n, numbers + 1]: P(in an earlier interval), given a number."""
        return _cumulated(self.log_mass[:, self._numbers])

    # --- probabilities ---------------------------------------------------------------------------

    def log_density(self, values: Floats) -> Floats:
        """Return float64[n]: the log-density at each value, or the log-mass of an atom.

        At the boundary of two intervals, it is the mean of their densities if ``places`` is None,
        because a number at a boundary is a rounding tie, and the scheme's rounding rule decides
        which interval contains it. Zero belongs only to its atom, if there is one.
        """
        if self.places is None:
            first = np.searchsorted(self.high, values, "left")
            counts = np.maximum(np.searchsorted(self.low, values, "right") - first, 0)
        else:
            first = self.places(values)
            counts = (first >= 0).astype(np.int64)
        rows = np.repeat(
            np.arange(len(values)), counts
        )  # each value with all intervals containing it
        held = np.arange(len(rows)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        kind = np.full(len(values), _NONE)
        np.minimum.at(kind, rows, self._kind[held])
        counting = self._kind[held] == kind[rows]
        rows, held = rows[counting], held[counting]

        width = np.where(self._kind == _BOUNDED, self._width, 1.0)[held]
        total = np.full(len(values), -np.inf)
        np.logaddexp.at(total, rows, self.log_mass[rows, held] - np.log(width))
        share = np.where(kind == _BOUNDED, np.bincount(rows, minlength=len(values)), 1)
        return total - np.log(share)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        last = np.searchsorted(self._start[self._numbers], high, "right")
        first = np.searchsorted(self._end[self._numbers], low, "right")
        logs = np.where(np.isnan(low) | np.isnan(high), np.nan, -np.inf)
        for row in np.flatnonzero((low < high) & (first < last)).tolist():
            held = slice(first[row], last[row])
            width = self._width[held]
            bounded = width > 0  # atoms and overflows count as a whole
            share = np.ones(len(width))
            ends = np.minimum(self.high[held], high[row]), np.maximum(self.low[held], low[row])
            np.subtract(*ends, where=bounded, out=share)
            np.divide(share, width, where=bounded, out=share)
            mass = self.log_mass[row, held]
            shift = max(mass.max(), np.finfo(np.float64).min)  # finite even if all are -inf
            with np.errstate(divide="ignore"):  # an end can touch a neighboring interval
                logs[row] = np.log(np.sum(share * np.exp(mass - shift))) + shift
        return logs

    def cdf(self, values: Floats) -> Floats:
        rows, count = np.arange(len(values)), self._numbers.stop
        index = np.searchsorted(self._end[self._numbers], values, "right")  # all earlier are below
        around = np.minimum(index, count - 1)
        share = np.zeros(len(values))
        cut = self._width[around] > 0
        into = values[cut] - self._start[around[cut]]
        share[cut] = np.clip(into / self._width[around[cut]], 0.0, 1.0)
        below, through = self._below[rows, index], self._below[rows, np.minimum(index + 1, count)]
        return np.where(np.isnan(values), np.nan, below + share * (through - below))

    def quantiles(self, levels: Sequence[float]) -> Floats:
        array = checked(levels)
        return self._inverted(self._below, np.tile(array, (len(self.log_mass), 1)))

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        shares = 1.0 - rng.random((len(self.log_mass), count))  # never 0, which has no mass
        return self._inverted(_cumulated(self.log_mass), shares)

    def _inverted(self, below: Floats, shares: Floats) -> Floats:
        """Return float64[n, q]: where the cumulative probability reaches fractions in (0, 1]."""
        pairs = zip(below, shares, strict=True)
        index = np.array([np.searchsorted(sums[1:], wanted) for sums, wanted in pairs], np.int64)
        index = index.reshape(shares.shape)
        before = np.take_along_axis(below, index, axis=1)
        within = (shares - before) / (np.take_along_axis(below, index + 1, axis=1) - before)
        return self._start[index] + within * self._width[index]

    # --- point estimates and scores --------------------------------------------------------------

    def mean(self) -> Floats:
        centres = self.low[self._finite] / 2 + self.high[self._finite] / 2
        mass = _given(self.log_mass[:, self._finite])
        # Not BLAS: results must not depend on the number of threads.
        return np.asarray(np.einsum("nk,k->n", mass, centres))

    def mode(self) -> Floats:
        """Return float64[n]: the value of the most probable interval, or of the interval with the
        highest density if ``by_density``.

        Greedy decoding may miss the most probable interval, which need not start with the most
        probable first token.
        """
        heights = self.log_mass
        if self.by_density:  # ends that are equal after rounding are at least one spacing apart
            heights = heights - np.log(np.maximum(self._width, np.spacing(np.abs(self.low))))
        return np.asarray(self.values[heights.argmax(axis=1)])

    def crps(self, values: Floats) -> Floats:
        corners = np.column_stack([self._start[self._finite], self._end[self._finite]]).ravel()
        heights = np.empty_like(corners)
        scores = np.empty(len(values))
        for row, value in enumerate(values.tolist()):  # the corners of one row fit into the cache
            below = _cumulated(self.log_mass[row : row + 1, self._finite])[0]
            heights[::2], heights[1::2] = below[:-1], below[1:]
            scores[row] = piecewise.crps(corners, heights, value)
        return scores


def _given(log_mass: Floats) -> Floats:
    """Return float64[n, k]: the probabilities given that it is one of these ``k`` intervals."""
    mass: Floats = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    return mass


def _cumulated(log_mass: Floats) -> Floats:
    """Return float64[n, k + 1]: the sums of :func:`_given` before each interval, and then 1."""
    sums = np.zeros((len(log_mass), log_mass.shape[1] + 1))
    np.cumsum(np.exp(log_mass - log_mass.max(axis=1, keepdims=True)), axis=1, out=sums[:, 1:])
    sums /= sums[:, -1:]
    return sums
