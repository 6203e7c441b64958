"""Distributions of numbers that consist of independent symbols: a sign, an exponent and a
significand."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from numtok.models.distributions.predictive import Floats, Predictive, checked
from numtok.models.distributions.prefix_tree import Areas, PrefixTree, Symbols, sums_before


class FloatingPlaces(Predictive):
    """Base class for distributions of ``n`` numbers with independent symbols (bits or digits).

    A number consists of a sign and the symbols of its absolute value (its size). Subclasses define
    the symbols and how to convert them to sizes. Every number is an atom. Sizes are ordered
    like their sequences of symbols, so the probability of all smaller numbers is a sum over the
    tree of a number's prefixes (``prefix_tree``). The density is the mass of a number divided by
    the distance to the next larger number. The mean and the CRPS are exact. They can be huge,
    because even a very improbable large exponent can contribute a huge amount.

    exponents
        Number of exponent symbols; they precede the symbols of the significand.
    skipped
        Fraction of the possible significands that do not occur, which are always the smallest: 0.1
        if the first decimal digit is never 0.
    """

    exponents: ClassVar[int]
    skipped: ClassVar[float] = 0.0

    @property
    @abstractmethod
    def log_signs(self) -> Floats:
        """[n, 2]: log-probabilities of a positive and of a negative sign; the probabilities sum to
        1."""

    @property
    @abstractmethod
    def log_sizes(self) -> Floats:
        """[n, K, B]: log-probabilities of the B symbols at each of the K positions of the absolute
        value, most significant position first.

        They are conditional on the number not being a separate zero (:attr:`log_zero`).
        """

    @property
    def log_zero(self) -> Floats:
        """[n]: log-probability of a zero that is encoded separately; -inf if zero is an ordinary
        number."""
        return np.full(len(self.log_signs), -np.inf)

    @property
    def log_others(self) -> Floats:
        """[n]: log of the total probability of all numbers other than a separate zero
        (:attr:`log_zero`)."""
        return np.zeros(len(self.log_signs))

    @property
    @abstractmethod
    def starts(self) -> tuple[Floats, Floats]:
        """For each exponent of finite numbers, the smallest absolute value with this exponent and
        its distance to the smallest value with the next exponent, [E] each."""

    @property
    @abstractmethod
    def last(self) -> Symbols:
        """[K]: the symbols of the largest absolute value that is a number; all larger sequences of
        symbols mean NaN."""

    @abstractmethod
    def symbols_of(self, sizes: Floats) -> Symbols:
        """Return [n, K]: the symbols of absolute values ``sizes`` [n].

        If several sequences of symbols mean infinity, the smallest is returned.
        """

    @abstractmethod
    def sizes_of(self, symbols: Symbols) -> Floats:
        """Return [n, ...]: the absolute values with the symbols [n, K, ...]. An absolute value can
        be infinite or NaN."""

    @abstractmethod
    def resolution(self, sizes: Floats) -> Floats:
        """Return [n]: the distance from each finite absolute value in ``sizes`` [n] to the next
        larger one."""

    # --- shared quantities -----------------------------------------------------------------------

    @cached_property
    def _tree(self) -> PrefixTree:
        return PrefixTree(self.log_sizes)

    @cached_property
    def _reversed(self) -> PrefixTree:
        """The tree with the largest size first."""
        return PrefixTree(self.log_sizes[:, :, ::-1])

    @cached_property
    def _significand(self) -> PrefixTree:
        return PrefixTree(self.log_sizes[:, self.exponents :])

    @cached_property
    def _signs(self) -> tuple[Floats, Floats]:
        """float64[n] each: the probability of a positive and of a negative number, zero
        excluded."""
        positive, negative = np.exp(self.log_signs + self.log_others[:, None]).T
        return positive, negative

    @cached_property
    def _zero(self) -> Floats:
        return np.asarray(np.exp(self.log_zero))

    def _of_all(self, size: float) -> Symbols:
        """Return [n, K]: the symbols of one absolute value, repeated for each number."""
        return np.tile(self.symbols_of(np.array([size])), (len(self.log_signs), 1))

    @cached_property
    def _finite(self) -> Floats:
        """float64[n]: the probability of a finite size."""
        return self._tree.before(self._of_all(np.inf))

    @cached_property
    def _number(self) -> Floats:
        """float64[n]: the probability of a size that is a number, including infinity."""
        last = np.tile(self.last, (len(self.log_signs), 1))
        return self._tree.before(last) + self._tree.mass(last)

    @property
    def _last(self) -> Symbols:
        """[n, K]: ``last``, repeated."""
        return np.tile(self.last, (len(self.log_signs), 1))

    def _upto(self, sizes: Floats) -> Symbols:
        """Return [n, K]: the last symbols that mean the absolute values ``sizes`` [n]; infinity has
        several."""
        return np.where(np.isinf(sizes)[:, None], self.last, self.symbols_of(sizes))

    # --- probabilities ---------------------------------------------------------------------------

    def log_density(self, values: Floats) -> Floats:
        sizes = np.abs(np.nan_to_num(values, posinf=np.inf, neginf=-np.inf))
        rows, ends = np.arange(len(values)), (np.zeros(len(values)), np.ones(len(values)))
        at = self.symbols_of(sizes)
        infinite = self._tree.log_span(self._of_all(np.inf), ends[0], self._last, ends[1])
        log_p = np.where(np.isinf(sizes), infinite, self._tree.log_mass(at)) + self.log_others
        signed = log_p + self.log_signs[rows, (values < 0).astype(np.int64)]
        log_p = np.where(sizes == 0, np.logaddexp(self.log_zero, log_p), signed)
        finite = np.isfinite(values)
        log_p = np.where(finite, log_p - np.log(self.resolution(sizes)), log_p)
        with np.errstate(divide="ignore"):
            nothing = np.log(self._tree.after(self._last)) + self.log_others
        return np.where(np.isnan(values), nothing, log_p)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        nowhere, ones = np.zeros(len(low)), np.ones(len(low))
        least, most = (
            np.nan_to_num(low, posinf=np.inf, neginf=-np.inf),
            np.nan_to_num(high, posinf=np.inf, neginf=-np.inf),
        )

        def first(values: Floats) -> Symbols:
            return self.symbols_of(np.maximum(values, 0.0))

        # Positive numbers: from above one end up to the other; all of them if the first is
        # negative.
        positive = first(least), np.where(least < 0, nowhere, ones), self._upto(np.maximum(most, 0))
        spans = (
            (*positive, ones, most >= 0),
            (first(-most), nowhere, first(-least), nowhere, least < 0),
        )
        logs = [np.where((least < 0) & (most >= 0), self.log_zero, -np.inf)]
        for sign, (begin, into_begin, end, into_end, possible) in enumerate(spans):
            span = self._tree.log_span(begin, into_begin, end, into_end)
            signed = span + self.log_signs[:, sign] + self.log_others
            logs.append(np.where(possible & (low < high), signed, -np.inf))
        log_p = np.where(low < high, np.logaddexp.reduce(logs), -np.inf)
        return np.where(np.isnan(low) | np.isnan(high), np.nan, log_p)

    def cdf(self, values: Floats) -> Floats:
        sizes = np.abs(np.nan_to_num(values, posinf=np.inf, neginf=-np.inf))
        positive, negative = self._signs
        last = self._upto(sizes)
        upto = self._tree.before(last) + self._tree.mass(last)
        beyond = self._number - self._tree.before(self.symbols_of(sizes))
        right = negative * self._number + self._zero + positive * upto
        probability = np.where(values < 0, negative * beyond, right) / self._all
        return np.where(np.isnan(values), np.nan, np.clip(probability, 0.0, 1.0))

    @cached_property
    def _all(self) -> Floats:
        """float64[n]: the probability of a number."""
        positive, negative = self._signs
        return negative * self._number + self._zero + positive * self._number

    def quantiles(self, levels: Sequence[float]) -> Floats:
        return np.column_stack([self._quantile(level) for level in checked(levels).tolist()])

    def _quantile(self, level: float) -> Floats:
        positive, negative = self._signs
        share = level * self._all
        below = negative * self._number
        left, right = share <= below, share > below + self._zero
        least = np.finfo(np.float64).tiny
        with np.errstate(divide="ignore", invalid="ignore"):
            # Negative numbers begin with the largest, after all sizes that are NaN.
            downwards = np.where(left, 1 - self._number + share / negative, 1.0)
            upwards = np.where(right, (share - below - self._zero) / positive, 1.0)
        large, _ = self._reversed.reached(np.clip(downwards, least, 1.0))
        small, _ = self._tree.reached(np.clip(upwards, least, 1.0))
        symbols = np.where(left[:, None], self.log_sizes.shape[2] - 1 - large, small)
        sizes = self.sizes_of(symbols)
        sizes = np.where(left | right, sizes, 0.0)
        sizes = np.where(np.isnan(sizes), np.inf, sizes)  # by rounding
        return np.where(left & (sizes > 0), -sizes, sizes)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        n, places, _ = self.log_sizes.shape
        sizes = self.sizes_of(self._tree.drawn(rng.random((n, places, count))))
        chances = np.exp(np.column_stack([self.log_zero, self.log_signs[:, 1]]))
        zero, negative = (rng.random((n, count)) < chance[:, None] for chance in chances.T)
        return np.where(zero, 0.0, np.where(negative, -sizes, sizes))

    # --- point estimates and scores --------------------------------------------------------------

    @cached_property
    def _exponents(self) -> Floats:
        """float64[n, E]: the probability of each exponent, given a finite number that is not a
        separate zero."""
        masses = np.ones((len(self.log_signs), 1))
        for index in range(self.exponents):
            of_place = np.exp(self.log_sizes[:, None, index])
            masses = (masses[:, :, None] * of_place).reshape(len(masses), -1)
        return masses[:, : len(self.starts[0])] / self._finite[:, None]

    @cached_property
    def _finite_signs(self) -> tuple[Floats, Floats]:
        """float64[n] each: :attr:`_signs`, given a finite number."""
        positive, negative = (sign * self._finite for sign in self._signs)
        total = positive + negative + self._zero
        return positive / total, negative / total

    def mean(self) -> Floats:
        positive, negative = self._finite_signs
        starts, widths = self.starts
        along = (self._significand.mean() - self.skipped) / (1 - self.skipped)
        with np.errstate(over="ignore"):
            sizes = starts + widths * along[:, None]
            total: Floats = (self._exponents * sizes).sum(axis=1)
        return (positive - negative) * total

    def crps(self, values: Floats) -> Floats:
        """Return float64[n]: the exact CRPS of each value.

        It is computed by summing the squared distribution function over all exponents and over the
        tree of significands.
        """
        masses, (_, widths) = self._exponents, self.starts
        rows, base = np.arange(len(values)), self.log_sizes.shape[2]
        places = self.symbols_of(np.abs(np.nan_to_num(values, posinf=np.inf, neginf=-np.inf)))
        exponent = places[:, : self.exponents] @ base ** np.arange(self.exponents)[::-1]
        finite = exponent < masses.shape[1]
        exponent = np.where(finite, exponent, 0)
        digits = places[:, self.exponents :]
        at = (digits * float(base) ** -np.arange(1, digits.shape[1] + 1)).sum(axis=1)
        here = self._stretched(self._significand.areas(digits, np.zeros(len(values))), at)
        every = self._stretched(self._significand.whole(), np.zeros(len(values)))
        at = np.maximum(at - self.skipped, 0.0) / (1 - self.skipped)
        below, above = sums_before(masses), sums_before(masses[:, ::-1])[:, ::-1]
        signs = np.stack(self._finite_signs)
        negative = (values < 0).astype(np.int64)
        own, other = signs[negative, rows][:, None], signs[1 - negative, rows][:, None]
        wide = np.ones_like(own)
        # For each size: the squared probability of a smaller one or one of the other sign, and of a
        # larger one.
        left = _squares(
            1 - own + own * below, own * masses, wide, *_columns(every.left, every.left_squared)
        )
        right = _squares(above, masses, wide, *_columns(every.right, every.right_squared))
        squares = np.where(exponent[:, None] > np.arange(masses.shape[1]), left, own**2 * right)
        share = masses[rows, exponent]
        own_sign = own[:, 0]
        smaller = 1 - own_sign + own_sign * below[rows, exponent]
        squares[rows, exponent] = _squares(
            smaller, own_sign * share, at, here.left, here.left_squared
        ) + own_sign**2 * _squares(
            above[rows, exponent], share, 1 - at, here.right, here.right_squared
        )
        squares += other**2 * right
        with np.errstate(over="ignore"):
            scores = (squares * widths).sum(axis=1)
        return np.where(finite & ~np.isnan(values), scores, np.abs(values))

    def _stretched(self, areas: Areas, at: Floats) -> Areas:
        """Return the areas on both sides of points [n], on the part of the line after ``skipped``.

        That part is stretched to length 1; before it, G is 0.
        """
        before = np.maximum(self.skipped - at, 0.0)
        left, left_squared, right, right_squared = (area / (1 - self.skipped) for area in areas)
        before /= 1 - self.skipped
        return Areas(left, left_squared, right - before, right_squared - before)


def _squares(offset: Floats, times: Floats, width: Floats, area: Floats, squared: Floats) -> Floats:
    """Return the integral of ``(offset + times * G)^2`` over a width, given the integrals of G and
    G^2."""
    return offset**2 * width + 2 * offset * times * area + times**2 * squared


def _columns(*rows: Floats) -> tuple[Floats, ...]:
    """Return float64[n, 1] for each float64[n]."""
    return tuple(row[:, None] for row in rows)
