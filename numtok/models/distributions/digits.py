"""Distributions of numbers with a sign and independent decimal digits, for the FoNE head."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools
from numtok.models.distributions.predictive import Floats, Predictive, checked
from numtok.models.distributions.prefix_tree import PrefixTree, Symbols

#: Periods of FoNE's angles, in units of a digit, by the name of the setting ``bases``.
BASES = {"10": (10,), "2+5": (2, 5)}


@dataclass(frozen=True, eq=False)
class IndependentDigits(Predictive):
    """Distributions of ``n`` numbers with a sign and K digits, ``decimals`` of them after the
    point.

    Signs and digits are independent. Numbers are rounded to K digits, so the density is uniform
    within half a unit in the last digit around each number. Zero has no sign. All results are
    exact; they are sums over the tree of prefixes (``prefix_tree``).

    >>> sure = np.log(np.eye(10)[[[1, 7, 5]]] + 1e-300)
    >>> one = IndependentDigits(sure, 1, np.log([[1.0, 1e-300]]))
    >>> one.mode().tolist(), one.mean().tolist(), one.cdf(np.array([17.5])).tolist()
    ([17.5], [17.5], [0.5])
    """

    log_digits: Floats  # [n, K, 10], highest digit first; each [10] is normalized
    decimals: int
    log_signs: Floats  # [n, 2], of positive and negative; each row is normalized

    # --- shared quantities -----------------------------------------------------------------------

    @cached_property
    def _tree(self) -> PrefixTree:
        return PrefixTree(self.log_digits)

    @property
    def _places(self) -> int:
        places: int = self.log_digits.shape[1]
        return places

    @property
    def _unit(self) -> float:
        """Unit of the last digit."""
        return float(f"1e{-self.decimals}")

    @property
    def _most(self) -> float:
        """The first number with more digits."""
        return 10.0 ** (self._places - self.decimals)

    @cached_property
    def _zero(self) -> Symbols:
        return np.zeros(self.log_digits.shape[:2], np.int64)

    def _sides(self, negative: Bools) -> tuple[Floats, Floats]:
        """Return float64[n] each: the probability of the given sign, and of the other sign."""
        signs = np.exp(self.log_signs)
        rows, own = np.arange(len(signs)), negative.astype(np.int64)
        return signs[rows, own], signs[rows, 1 - own]

    @cached_property
    def _centre(self) -> tuple[Floats, Floats]:
        """float64[n] each: the probability of zero, and of all other numbers."""
        return self._tree.mass(self._zero), self._tree.after(self._zero)

    def _cells(self, sizes: Floats) -> tuple[Symbols, Floats]:
        """Return the digits [n, K] of the cells of sizes [n], and the fraction of the cell below
        them.

        Cells extend half a unit of the last digit around each number; ties are in the even cell, as
        in training. Sizes out of range are at the end of the last cell.
        """
        units = np.minimum(sizes, self._most) * 10.0**self.decimals
        cell = np.minimum(np.rint(units), 10.0**self._places - 1)
        return digits_of(cell.astype(np.int64), self._places), np.clip(units + 0.5 - cell, 0.0, 1.0)

    # --- probabilities ---------------------------------------------------------------------------

    def log_density(self, values: Floats) -> Floats:
        sizes = np.abs(np.nan_to_num(values))
        digits, _ = self._cells(sizes)
        inside = np.isfinite(values) & (sizes < (10.0**self._places - 0.5) * self._unit)
        rows = np.arange(len(values))
        signed = digits.any(axis=1) * self.log_signs[rows, (values < 0).astype(np.int64)]
        log_p = self._tree.log_mass(digits) + signed - np.log(self._unit)
        return np.where(inside, log_p, -np.inf)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        half = self._unit / 2
        lowest, highest = np.nan_to_num(low), np.nan_to_num(high)
        middle = [np.clip(end, -half, half) for end in (lowest, highest)]
        with np.errstate(divide="ignore"):
            logs = [np.log((middle[1] - middle[0]) / self._unit) + self._tree.log_mass(self._zero)]
            for sign, (first, last) in enumerate(((lowest, highest), (-highest, -lowest))):
                ends = self._cells(np.maximum(first, half)), self._cells(np.maximum(last, half))
                span = self._tree.log_span(*ends[0], *ends[1])
                logs.append(np.where(last > half, span, -np.inf) + self.log_signs[:, sign])
            log_p = np.where(low < high, np.logaddexp.reduce(logs), -np.inf)
        return np.where(np.isnan(low) | np.isnan(high), np.nan, log_p)

    def cdf(self, values: Floats) -> Floats:
        points, half = np.nan_to_num(values), self._unit / 2
        digits, into = self._cells(np.abs(points))
        further = self._tree.after(digits) + self._tree.mass(digits) * (1 - into)
        own, _ = self._sides(points < 0)
        outer = np.where(points < 0, own * further, 1 - own * further)
        zero, nonzero = self._centre
        inner = np.exp(self.log_signs[:, 1]) * nonzero + zero * (
            np.clip(points, -half, half) / self._unit + 0.5
        )
        probability = np.where(np.abs(points) < half, inner, outer)
        return np.where(np.isnan(values), np.nan, np.clip(probability, 0.0, 1.0))

    def quantiles(self, levels: Sequence[float]) -> Floats:
        return np.column_stack([self._quantile(level) for level in checked(levels).tolist()])

    def _quantile(self, level: float) -> Floats:
        zero, nonzero = self._centre
        positive, negative = np.exp(self.log_signs).T
        below, above = negative * nonzero, positive * nonzero
        left, right = level < below, 1 - level < above
        sign = np.where(left, negative, positive)
        tail = np.where(left, level, 1 - level)
        with np.errstate(divide="ignore", invalid="ignore"):
            outside = np.where(left | right, 1 - tail / sign, 1.0)
            centre = np.where(zero > 0, (level - below) / zero, 0.5)
        digits, into = self._tree.reached(np.clip(outside, np.finfo(np.float64).tiny, 1.0))
        size = (numbers_of(digits) + (into - 0.5)) * self._unit
        size = np.maximum(size, self._unit / 2)
        inner = (np.clip(centre, 0.0, 1.0) - 0.5) * self._unit
        return np.where(left, -size, np.where(right, size, inner))

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        n = len(self.log_digits)
        digits = self._tree.drawn(rng.random((n, self._places, count)))
        negative = rng.random((n, count)) < np.exp(self.log_signs[:, 1:])
        whole = np.where(negative, -1.0, 1.0) * numbers_of(digits)
        return (whole + rng.random((n, count)) - 0.5) * self._unit

    # --- point estimates and scores --------------------------------------------------------------

    def mean(self) -> Floats:
        positive, negative = np.exp(self.log_signs).T
        return np.asarray((positive - negative) * self._tree.mean() * self._most)

    def mode(self) -> Floats:
        """Return float64[n]: the number with the most probable digits and sign."""
        size = numbers_of(self.log_digits.argmax(axis=2)) / 10.0**self.decimals
        negative = self.log_signs[:, 1] > self.log_signs[:, 0]
        return np.where(negative & (size > 0), -size, size)

    def crps(self, values: Floats) -> Floats:
        """Return float64[n]: the exact CRPS of each value.

        It is computed by summing the squared distribution function over the tree of prefixes.
        """
        finite = np.where(np.isfinite(values), values, 0.0)
        own, other = self._sides(finite < 0)
        scale = 10.0**self._places
        sizes = np.minimum(np.abs(finite), self._most) / self._unit
        zero, nonzero = self._centre
        edge = self._tree.areas(self._zero, np.ones(len(values)))
        # From the value's cell outwards, and from the cell of zero to it.
        here = self._tree.areas(*self._cells(np.abs(finite)))
        outwards = own**2 * here.right_squared * scale
        width = np.clip(sizes - 0.5, 0.0, scale - 1)
        between = (
            other**2 * width
            + 2 * other * own * (here.left - edge.left) * scale
            + own**2 * (here.left_squared - edge.left_squared) * scale
        )
        opposite = other**2 * edge.right_squared * scale
        beyond = np.maximum(np.abs(finite) - self._most + self._unit / 2, 0.0)
        below, upto = other * nonzero, other * nonzero + zero
        outside = opposite + _squared(below, upto, 1.0) + between + outwards
        # A value in the cell of zero divides that cell.
        into = np.minimum(sizes, 0.5) + 0.5
        reached = below + zero * into
        left = opposite + _squared(below, reached, into)
        right = own**2 * edge.right_squared * scale + _squared(1 - reached, 1 - upto, 1 - into)
        score = np.where(sizes < 0.5, left + right, outside) * self._unit + beyond
        return np.where(np.isfinite(values), score, np.abs(values))


def _squared(first: Floats, last: Floats, width: Floats | float) -> Floats:
    """Return float64[n]: the integral of the square of a straight line over a width."""
    return np.asarray(width * (first**2 + first * last + last**2) / 3)


def digits_of(numbers: NDArray[np.int64], places: int) -> Symbols:
    """Return int64[n, places]: the decimal digits of non-negative integers int64[n], most
    significant digit first.

    >>> digits_of(np.array([175, 8]), 4).tolist()
    [[0, 1, 7, 5], [0, 0, 0, 8]]
    """
    powers = 10 ** np.arange(places - 1, -1, -1)
    return numbers[:, None] // powers % 10


def numbers_of(digits: Symbols) -> Floats:
    """Return float64[n, ...]: the integers with the decimal digits int64[n, places, ...].

    This is the inverse of :func:`digits_of`, and exact for up to 15 digits.
    """
    powers = 10 ** np.arange(digits.shape[1] - 1, -1, -1)
    return np.asarray(np.einsum("nk...,k->n...", digits, powers).astype(np.float64))
