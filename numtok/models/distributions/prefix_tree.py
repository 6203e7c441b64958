"""Exact sums over all numbers that consist of independent symbols, computed with the tree of their
prefixes.

There are ``n`` rows of ``K`` positions, most significant first, and each position has a
distribution over ``B`` symbols. A sequence of K symbols is a number, and stands for an interval,
its *cell*. Numbers are ordered by their symbols. All numbers with the same prefix form a subtree
whose mass is a product, so every sum over numbers reduces to K * B terms. It is exact even for
10^15 numbers (FoNE) or 2^63 numbers (BitTokens).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.models.distributions.predictive import Floats

Symbols = NDArray[np.int64]


class Areas(NamedTuple):
    """Integrals [n] of a distribution function G on both sides of a point z, used to compute a
    CRPS.

    G is defined on a line from 0 to 1 that is divided into cells of width 1 / B^K.
    """

    left: Floats  # of G over [0, z]
    left_squared: Floats  # of G^2
    right: Floats  # of 1 - G over [z, 1]
    right_squared: Floats  # of (1 - G)^2


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """Distributions of ``n`` numbers with ``K`` independent symbols each.

    >>> tree = PrefixTree(np.log([[[0.5, 0.5], [0.25, 0.75]]]))
    >>> tree.before(np.array([[1, 1]])).tolist(), tree.mass(np.array([[1, 1]])).tolist()
    ([0.625], [0.375])
    """

    log_p: Floats  # [n, K, B], each [B] is normalized

    @cached_property
    def p(self) -> Floats:
        """Probabilities of the symbols at each position, float64[n, K, B]."""
        return np.asarray(np.exp(self.log_p))

    @cached_property
    def _below(self) -> Floats:
        """float64[n, K, B]: the probability of a smaller symbol at each position."""
        return sums_before(self.p)

    @cached_property
    def _above(self) -> Floats:
        """float64[n, K, B]: the probability of a larger symbol at each position."""
        return sums_before(self.p[:, :, ::-1])[:, :, ::-1]

    def _at(self, table: Floats, symbols: Symbols) -> Floats:
        """Return float64[n, K]: the entries of a table [n, K, B] at symbols [n, K]."""
        return np.take_along_axis(table, symbols[:, :, None], axis=2)[:, :, 0]

    def _log_prefixes(self, symbols: Symbols) -> Floats:
        """Return float64[n, K + 1]: the log-probabilities of the first 0 ... K symbols."""
        sums = np.cumsum(self._at(self.log_p, symbols), axis=1)
        return np.concatenate([np.zeros((len(symbols), 1)), sums], axis=1)

    def _prefixes(self, symbols: Symbols) -> Floats:
        """Return float64[n, K + 1]: the probabilities of the first 0 ... K symbols."""
        return np.asarray(np.exp(self._log_prefixes(symbols)))

    def log_mass(self, symbols: Symbols) -> Floats:
        """Return float64[n]: the log-probability of the number with the given symbols [n, K]."""
        return np.asarray(self._at(self.log_p, symbols).sum(axis=1))

    def mass(self, symbols: Symbols) -> Floats:
        """Return float64[n]: the probability of the number with the given symbols [n, K]."""
        return self._prefixes(symbols)[:, -1]

    def before(self, symbols: Symbols) -> Floats:
        """Return float64[n]: the probability of all numbers smaller than the number with the given
        symbols [n, K]."""
        return np.asarray((self._prefixes(symbols)[:, :-1] * self._at(self._below, symbols)).sum(1))

    def after(self, symbols: Symbols) -> Floats:
        """Return float64[n]: the probability of all numbers larger than the number with the given
        symbols [n, K]."""
        return np.asarray((self._prefixes(symbols)[:, :-1] * self._at(self._above, symbols)).sum(1))

    def log_span(self, low: Symbols, into_low: Floats, high: Symbols, into_high: Floats) -> Floats:
        """Return float64[n]: the log-probability between two points, accurate even if it is tiny.

        The lower point is at the fraction ``into_low`` [n] of the cell of the symbols ``low``
        [n, K], and the upper point is at the fraction ``into_high`` of the cell of ``high``.
        """
        differ = low != high
        same = ~differ.any(axis=1)
        fork = np.where(same, low.shape[1], differ.argmax(axis=1))[:, None]
        index = np.arange(low.shape[1])
        symbol = np.arange(self.p.shape[2])
        inside = (symbol > low[:, :, None]) & (symbol < high[:, :, None])
        at_fork = (self.p * inside).sum(axis=2)
        above = np.where(index > fork, self._at(self._above, low), 0.0)
        above = np.where(index == fork, at_fork, above)
        below = np.where(index > fork, self._at(self._below, high), 0.0)
        ends = np.where(same, into_high - into_low, 1 - into_low), np.where(same, 0.0, into_high)
        with np.errstate(divide="ignore"):
            logs = [
                self._log_prefixes(cell)[:, :-1] + np.log(part)
                for cell, part in ((low, above), (high, below))
            ]
            logs += [
                (self.log_mass(cell) + np.log(np.maximum(end, 0.0)))[:, None]
                for cell, end in zip((low, high), ends, strict=True)
            ]
        return np.asarray(np.logaddexp.reduce(np.concatenate(logs, axis=1), axis=1))

    def reached(self, shares: Floats) -> tuple[Symbols, Floats]:
        """Return the points at which the cumulative probability reaches the given levels [n], which
        are in (0, 1].

        A point is described by the symbols [n, K] of its cell, and by its position in the cell, in
        (0, 1].
        """
        symbols = np.empty(self.p.shape[:2], np.int64)
        rest = shares
        for index in range(self.p.shape[1]):
            p = self.p[:, index]
            sums = np.cumsum(p, axis=1)
            last = p.shape[1] - 1 - (p[:, ::-1] > 0).argmax(axis=1)  # last possible symbol
            chosen = np.minimum((sums < rest[:, None]).sum(axis=1), last)
            rows = np.arange(len(p))
            rest = np.clip((rest - self._below[rows, index, chosen]) / p[rows, chosen], 0.0, 1.0)
            symbols[:, index] = chosen
        return symbols, rest

    def drawn(self, shares: Floats) -> Symbols:
        """Return int64[n, K, k]: sampled symbols, given independent random numbers [n, K, k],
        uniform in [0, 1)."""
        sums = np.cumsum(self.p, axis=2)
        sums /= sums[:, :, -1:]
        return np.asarray((sums[:, :, :, None] <= shares[:, :, None]).sum(axis=2))

    # --- integrals along the line ----------------------------------------------------------------

    @cached_property
    def _expected(self) -> Floats:
        """float64[n, K]: the mean symbol of each position."""
        return np.asarray((self.p * np.arange(self.p.shape[2])).sum(axis=2))

    def mean(self) -> Floats:
        """Return float64[n]: the expected start of a number's cell, on a line from 0 to 1."""
        base = float(self.p.shape[2])
        total: Floats = (self._expected * base ** -np.arange(1.0, self.p.shape[1] + 1)).sum(axis=1)
        return total

    @cached_property
    def _whole(self) -> NDArray[np.float64]:
        """float64[K + 1, 4, n]: :class:`Areas` of the whole line below a prefix of k symbols,
        stretched to length 1; within a cell G is a straight line."""
        n, places, base = self.p.shape
        half, third = np.full(n, 1 / 2), np.full(n, 1 / 3)
        areas = [np.stack([half, third, half, third])]
        for index in reversed(range(places)):
            p, below, above = self.p[:, index], self._below[:, index], self._above[:, index]
            areas.append(_joined(p, below, above, areas[-1]).sum(axis=2) / base)
        return np.stack(areas[::-1])

    def whole(self) -> Areas:
        """Return the :class:`Areas` of the whole line: to the left of its end, and to the right of
        its start."""
        return Areas(*self._whole[0])

    def areas(self, symbols: Symbols, into: Floats) -> Areas:
        """Return the :class:`Areas` on both sides of a point in the cell of the given symbols
        [n, K].

        The point is at the fraction ``into`` [n] of the cell.
        """
        n, places, base = self.p.shape
        rest = 1 - into
        areas = np.stack([into**2 / 2, into**3 / 3, rest**2 / 2, rest**3 / 3])
        rows, width, rest_of_line = np.arange(n), into, rest
        for index in reversed(range(places)):
            p, below, above = self.p[:, index], self._below[:, index], self._above[:, index]
            at = symbols[:, index]
            own, smaller, larger = (table[rows, at] for table in (p, below, above))
            inner = _partly(own, smaller, larger, inner=areas, width=width, rest=rest_of_line)
            siblings = _joined(p, below, above, self._whole[index + 1])
            symbol = np.arange(base)
            left = np.where(symbol < at[:, None], siblings[:2], 0.0).sum(axis=2)
            right = np.where(symbol > at[:, None], siblings[2:], 0.0).sum(axis=2)
            areas = (np.concatenate([left, right]) + inner) / base
            width = (at + width) / base
            rest_of_line = (base - 1 - at + rest_of_line) / base
        return Areas(*areas)


def sums_before(p: Floats) -> Floats:
    """Return the exclusive cumulative sum of an array of any shape along its last axis."""
    sums = np.zeros_like(p)
    np.cumsum(p[..., :-1], axis=-1, out=sums[..., 1:])
    return sums


def _joined(p: Floats, below: Floats, above: Floats, inner: Floats) -> Floats:
    """Return float64[4, n, B]: areas below each symbol, from the areas [4, n] of the subtrees."""
    part = inner[:, :, None]
    ones = np.ones_like(p)
    return _partly(
        p, below, above, inner=np.broadcast_to(part, (4, *p.shape)), width=ones, rest=ones
    )


def _partly(
    p: Floats, below: Floats, above: Floats, inner: Floats, width: Floats, rest: Floats
) -> Floats:
    """Return the areas [4, ...] of ``below + p G`` and ``above + p (1 - G)``, given the areas of G
    and 1 - G, over stretches of the given widths."""
    left, left_squared, right, right_squared = inner
    return np.stack(
        [
            below * width + p * left,
            below**2 * width + 2 * below * p * left + p**2 * left_squared,
            above * rest + p * right,
            above**2 * rest + 2 * above * p * right + p**2 * right_squared,
        ]
    )
