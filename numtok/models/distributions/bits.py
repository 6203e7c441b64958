"""Numbers said bit by bit: the 64 of a float64, each on its own, as BitTokens' head says them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from numtok.models.distributions.predictive import Floats, Predictive, checked
from numtok.models.distributions.prefix_tree import PrefixTree, Symbols, sums_before

EXPONENT, SIGNIFICAND = 11, 52  # bits, behind that of the sign
_PLACES = EXPONENT + SIGNIFICAND
_SHIFTS = np.arange(_PLACES, -1, -1)
#: By exponent, but for that of infinity and NaN: what the significand is multiplied by, and what it
#: has before the point.
_EXPONENTS = np.arange((1 << EXPONENT) - 1)
_SCALES = np.ldexp(1.0, np.maximum(_EXPONENTS, 1) - 1023)


def bits_of(values: Floats) -> NDArray[np.int64]:
    """int64[n, 64]: the bits of float64[n]: sign, exponent, significand, the highest first.

    >>> "".join(map(str, bits_of(np.array([17.5]))[0].tolist()))[:16]
    '0100000000110001'
    """
    return (values.view(np.int64)[:, None] >> _SHIFTS) & 1


def values_of(bits: NDArray[np.int64]) -> Floats:
    """float64[n, ...]: the numbers of bits int64[n, 64, ...]; the inverse of :func:`bits_of`, also
    where they are infinite or NaN."""
    shifts = _SHIFTS.reshape(-1, *[1] * (bits.ndim - 2))
    whole: NDArray[np.int64] = np.bitwise_or.reduce(bits << shifts, axis=1)
    return whole.view(np.float64)


@dataclass(frozen=True, eq=False)
class IndependentBits(Predictive):
    """``n`` numbers, each an atom of 64 independent bits.

    Sizes ascend with their bits, so that what lies below a number is a sum over the tree of its
    prefixes (``prefix_tree``); the density is the mass of a number over its distance from the next.
    An exponent all of ones is infinity or no number. Mean and CRPS are exact, and may be huge: any
    probability of the highest bit of the exponent is multiplied by 2^1024.

    >>> bits = bits_of(np.array([17.5]))[:, :, None] == np.arange(2)
    >>> one = IndependentBits(np.log(np.where(bits, 1.0, 1e-300)))
    >>> one.mode().tolist(), one.median().tolist(), one.mean().tolist()
    ([17.5], [17.5], [17.5])
    """

    log_bits: Floats  # [n, 64, 2], of 0 and of 1; each pair sums to 1

    # --- what all questions share ----------------------------------------------------------------

    @cached_property
    def _tree(self) -> PrefixTree:
        """Of sizes."""
        return PrefixTree(self.log_bits[:, 1:])

    @cached_property
    def _reversed(self) -> PrefixTree:
        """Of sizes, the largest first."""
        return PrefixTree(self.log_bits[:, 1:, ::-1])

    @cached_property
    def _signs(self) -> tuple[Floats, Floats]:
        """float64[n] each: of a positive number, and of a negative one."""
        positive, negative = np.exp(self.log_bits[:, 0]).T
        return positive, negative

    def _of_all(self, size: float) -> Symbols:
        """[n, 63]: the same size for each."""
        return np.tile(bits_of(np.array([size]))[:, 1:], (len(self.log_bits), 1))

    @cached_property
    def _finite(self) -> Floats:
        """float64[n]: the probability of a finite number."""
        return self._tree.before(self._of_all(np.inf))

    @cached_property
    def _number(self) -> Floats:
        """float64[n]: the probability of a number, infinities counted in."""
        return self._finite + self._tree.mass(self._of_all(np.inf))

    # --- probabilities ---------------------------------------------------------------------------

    def log_density(self, values: Floats) -> Floats:
        sizes = np.abs(values)
        rows = np.arange(len(values))
        found = self._tree.log_mass(bits_of(sizes)[:, 1:])
        found += self.log_bits[rows, 0, (values < 0).astype(np.int64)]
        found = np.where(values == 0, self._tree.log_mass(self._of_all(0.0)), found)
        finite = np.isfinite(values)
        spacing = np.spacing(np.where(finite, sizes, 1.0))
        with np.errstate(divide="ignore"):
            nothing = np.log(self._tree.behind(self._of_all(np.inf)))
        found = np.where(finite, found - np.log(spacing), found)
        return np.where(np.isnan(values), nothing, found)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        nowhere, ones = np.zeros(len(low)), np.ones(len(low))
        least, most = (
            np.nan_to_num(low, posinf=np.inf, neginf=-np.inf),
            np.nan_to_num(high, posinf=np.inf, neginf=-np.inf),
        )

        def size(values: Floats) -> Symbols:
            return bits_of(np.maximum(values, 0.0))[:, 1:]

        spans = (
            # Above the one up to the other; all positive ones where the first is negative.
            (size(least), np.where(least < 0, nowhere, ones), size(most), ones, most >= 0),
            (size(-most), nowhere, size(-least), nowhere, least < 0),
        )
        logs = []
        for sign, (first, into_first, last, into_last, there) in enumerate(spans):
            span = self._tree.log_span(first, into_first, last, into_last)
            logs.append(np.where(there & (low < high), span, -np.inf) + self.log_bits[:, 0, sign])
        return np.where(np.isnan(low) | np.isnan(high), np.nan, np.logaddexp(*logs))

    def cdf(self, values: Floats) -> Floats:
        symbols = bits_of(np.abs(values))[:, 1:]
        positive, negative = self._signs
        upto = self._tree.before(symbols) + self._tree.mass(symbols)
        beyond = self._number - self._tree.before(symbols)
        found = np.where(values < 0, negative * beyond, negative * self._number + positive * upto)
        found = np.clip(found / self._number, 0.0, 1.0)
        return np.where(np.isnan(values), np.nan, found)

    def quantiles(self, levels: Sequence[float]) -> Floats:
        return np.column_stack([self._quantile(level) for level in checked(levels).tolist()])

    def _quantile(self, level: float) -> Floats:
        positive, negative = self._signs
        share = level * self._number
        below = negative * self._number
        left = share <= below
        least = np.finfo(np.float64).tiny
        with np.errstate(divide="ignore", invalid="ignore"):
            # Negative numbers begin with the largest, behind all that is none.
            downwards = np.where(left, 1 - self._number + share / negative, 1.0)
            upwards = np.where(left, 1.0, (share - below) / positive)
        large, _ = self._reversed.reached(np.clip(downwards, least, 1.0))
        small, _ = self._tree.reached(np.clip(upwards, least, 1.0))
        plus = np.zeros((len(small), 1), np.int64)
        sizes = values_of(np.concatenate([plus, np.where(left[:, None], 1 - large, small)], axis=1))
        sizes = np.where(np.isnan(sizes), np.inf, sizes)  # by rounding
        return np.where(left & (sizes > 0), -sizes, sizes)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        every = PrefixTree(self.log_bits)
        return values_of(every.drawn(rng.random((len(self.log_bits), _PLACES + 1, count))))

    # --- point estimates and scores --------------------------------------------------------------

    @cached_property
    def _exponents(self) -> Floats:
        """float64[n, 2047]: of each exponent, given a finite number."""
        masses = np.ones((len(self.log_bits), 1))
        for place in range(1, 1 + EXPONENT):
            of_bit = np.exp(self.log_bits[:, None, place])
            masses = (masses[:, :, None] * of_bit).reshape(len(masses), -1)
        return masses[:, :-1] / self._finite[:, None]

    @cached_property
    def _significand(self) -> PrefixTree:
        return PrefixTree(self.log_bits[:, 1 + EXPONENT :])

    def mean(self) -> Floats:
        positive, negative = self._signs
        sizes = (_EXPONENTS > 0) + self._significand.mean()[:, None]
        with np.errstate(over="ignore"):
            total: Floats = (self._exponents * sizes * _SCALES).sum(axis=1)
        return (positive - negative) * total

    def mode(self) -> Floats:
        """The most probable bits; see the base. Infinite or NaN where they are so."""
        return values_of(self.log_bits.argmax(axis=2))

    def crps(self, values: Floats) -> Floats:
        """See the base. The squares of the distribution function are summed over all exponents and
        the tree of significands."""
        finite = np.isfinite(values)
        known = np.where(finite, values, 0.0)
        bits = bits_of(np.abs(known))
        rows, into = np.arange(len(known)), np.zeros(len(known))
        exponent = bits[:, 1 : 1 + EXPONENT] @ (1 << np.arange(EXPONENT - 1, -1, -1))
        here = self._significand.areas(bits[:, 1 + EXPONENT :], into)
        at = np.ldexp(bits[:, 1 + EXPONENT :], -np.arange(1, SIGNIFICAND + 1)).sum(axis=1)
        every = self._significand.whole()
        masses = self._exponents
        below, above = sums_before(masses), sums_before(masses[:, ::-1])[:, ::-1]
        positive, negative = self._signs
        own = np.where(known < 0, negative, positive)[:, None]
        wide = np.ones_like(own)
        # Of a size: the squares of how probable a smaller one or one of the other sign is, and of
        # how probable a larger one is.
        left = _squares(
            1 - own + own * below, own * masses, wide, *_columns(every.left, every.left_squared)
        )
        right = _squares(above, masses, wide, *_columns(every.right, every.right_squared))
        found = np.where(exponent[:, None] > _EXPONENTS, left, own**2 * right)
        own, share = own[:, 0], masses[rows, exponent]
        smaller = 1 - own + own * below[rows, exponent]
        found[rows, exponent] = _squares(
            smaller, own * share, at, here.left, here.left_squared
        ) + own**2 * _squares(above[rows, exponent], share, 1 - at, here.right, here.right_squared)
        found += ((1 - own) ** 2)[:, None] * right  # of the other sign
        with np.errstate(over="ignore"):
            scores = (found * _SCALES).sum(axis=1)
        return np.where(finite, scores, np.abs(values))


def _squares(offset: Floats, times: Floats, width: Floats, area: Floats, squared: Floats) -> Floats:
    """The integral of the square of ``offset + times * G`` over a width, by those of G and G^2."""
    return offset**2 * width + 2 * offset * times * area + times**2 * squared


def _columns(*rows: Floats) -> tuple[Floats, ...]:
    """float64[n, 1] of float64[n] each."""
    return tuple(one[:, None] for one in rows)
