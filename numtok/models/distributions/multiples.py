"""Distributions of a mantissa times an uncertain power of ten.

They are used with schemes whose tokens stand for the exponents of numbers and whose channel
contains the mantissas. As in NumGPT's heads (Jin et al. 2023, Equations 10 and 11), the density is

    p(x) = sum over exponents e of p(e) p_f(x / 10^e) / 10^e

where p_f is the density of the mantissa, as predicted by any value head.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from numtok.encoding.normalizers.base import Scaling
from numtok.models.distributions import piecewise
from numtok.models.distributions.predictive import (
    Floats,
    Predictive,
    checked,
    drawn_places,
    unscaled,
)

_LARGEST = float(np.finfo(np.float64).max)
_NEGLIGIBLE = 1e-15  # exponents with a smaller probability are ignored for corners
# Quantile levels of a mantissa, for results without a closed form; finer in the tails.
_TAIL = np.geomspace(1e-7, 0.005, 28, endpoint=False)
_STEP = 0.005
_LEVELS = np.concatenate([_TAIL, np.linspace(_STEP, 1 - _STEP, 199), 1 - _TAIL[::-1]])
_HALVINGS = 34  # bisection steps for a quantile


@dataclass(frozen=True, eq=False, kw_only=True)
class Multiples(Predictive):
    """Distributions of ``n`` numbers of the form ``factor * mantissa``, with a probability for each
    factor.

    factors
        float64[k], as in ``ChannelScheme.factors``: powers of ten; 0 for an underflow and infinity
        for an overflow, both with the sign of the mantissa. As in ``intervals``, an underflow is
        uniformly distributed between zero and the smallest factor, and an overflow is at infinity.
    atoms
        float64[k]: the value of each token without a factor; NaN if it is not a number.

    >>> from numtok.models.distributions.mixture import Mixture
    >>> from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
    >>> plain = FittedNormalizer(NORMALIZERS.build("none"), {})
    >>> mantissa = Mixture.single(np.array([2.0]), 0.1, plain)
    >>> one = Multiples(
    ...     mantissa=mantissa,
    ...     factors=np.array([1.0, 100.0]),
    ...     atoms=np.full(2, np.nan),
    ...     log_weights=np.log([[0.25, 0.75]]),
    ...     normalizer=plain,
    ... )
    >>> one.mean().round(9).tolist(), one.cdf(np.array([50.0])).tolist()
    ([150.5], [0.25])
    """

    mantissa: Predictive
    factors: Floats  # [k], NaN for tokens without a factor
    atoms: Floats  # [k]
    log_weights: Floats  # [n, k], each row is normalized
    normalizer: Scaling

    # --- parts -----------------------------------------------------------------------------------

    @cached_property
    def _regular(self) -> list[int]:
        """Indices of factors that are powers of ten, smallest first."""
        order = np.argsort(self.factors)
        return [index for index in order.tolist() if 0 < self.factors[index] < np.inf]

    @cached_property
    def _smallest(self) -> float:
        """Upper end of underflows, in units of the encoding."""
        return float(self.factors[self._regular[0]])

    @cached_property
    def _negative(self) -> Floats:
        """float64[n]: the probability of a mantissa below 0."""
        return self.mantissa.cdf(np.zeros(len(self.log_weights)))

    def _mass(self, chosen: NDArray[np.bool_]) -> Floats:
        """Return float64[n]: the total probability of the chosen tokens."""
        return np.asarray(np.exp(self.log_weights[:, chosen]).sum(axis=1))

    @cached_property
    def _over(self) -> tuple[Floats, Floats]:
        """float64[n] each: the probability of a negative and of a positive overflow."""
        over = self._mass(np.isinf(self.factors))
        return over * self._negative, over * (1 - self._negative)

    @cached_property
    def _infinite(self) -> tuple[Floats, Floats]:
        """float64[n] each: the probability of minus infinity and of infinity, including
        overflows."""
        bare, over = np.isnan(self.factors), self._over
        below, above = (self._mass(bare & (self.atoms == end)) for end in (-np.inf, np.inf))
        return below + over[0], above + over[1]

    @cached_property
    def _nan(self) -> Floats:
        """float64[n]: the probability of NaN."""
        return self._mass(np.isnan(self.factors) & np.isnan(self.atoms))

    @cached_property
    def _log_finite(self) -> Floats:
        """float64[n]: the log-probability of a finite number."""
        finite = (self.factors >= 0) & (self.factors < np.inf)
        return np.asarray(np.logaddexp.reduce(self.log_weights[:, finite], axis=1))

    @cached_property
    def _given(self) -> Floats:
        """float64[n, k]: the probabilities of factors, given a finite number."""
        return np.exp(self.log_weights - self._log_finite[:, None])

    @cached_property
    def _under(self) -> Floats:
        """float64[n]: the probability of an underflow, given a finite number."""
        return np.asarray(self._given[:, self.factors == 0].sum(axis=1))

    def _sides(self) -> tuple[Floats, Floats]:
        """Return float64[n] each: the density of underflows below and above zero, in the
        encoding."""
        per_unit = self._under / self._smallest
        return per_unit * self._negative, per_unit * (1 - self._negative)

    # --- probabilities ---------------------------------------------------------------------------

    def log_density(self, values: Floats) -> Floats:
        """Return float64[n]: the log-density at each value, or the log-mass of an atom.

        The mass of an overflow is added to the density of all values that are at least ten times
        the largest factor, as in ``intervals``.
        """
        finite = np.isfinite(values)
        raw = np.where(finite, values, 0.0)
        points = self.normalizer.forward(raw)
        below, above = self._sides()
        under = np.where(points < 0, below, above) * (np.abs(points) < self._smallest)
        with np.errstate(divide="ignore", over="ignore"):
            logs = [
                self.log_weights[:, index]
                + self.mantissa.log_density(points / self.factors[index])
                - np.log(self.factors[index])
                for index in self._regular
            ]
            logs.append(np.log(under) + self._log_finite)
            over = np.log(np.where(values < 0, *self._over))
            ends = np.log(np.where(values < 0, *self._infinite))
            nothing = np.log(self._nan)
        log_p = np.logaddexp.reduce(logs) + self.normalizer.log_slope(raw)
        beyond = np.abs(points) >= 10 * self.factors[self._regular[-1]]
        log_p = np.where(beyond, np.logaddexp(log_p, over), log_p)
        return np.where(finite, log_p, np.where(np.isnan(values), nothing, ends))

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        first, last = self.normalizer.forward(low), self.normalizer.forward(high)
        below, above = self._sides()
        ends = [np.clip(end, -self._smallest, self._smallest) for end in (first, last)]
        negative = np.minimum(ends[1], 0.0) - np.minimum(ends[0], 0.0)
        positive = np.maximum(ends[1], 0.0) - np.maximum(ends[0], 0.0)
        _, plus = self._infinite
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            logs = [
                self.log_weights[:, index]
                + self.mantissa.log_interval(first / factor, last / factor)
                for index, factor in zip(self._regular, self.factors[self._regular], strict=True)
            ]
            logs.append(np.log(below * negative + above * positive) + self._log_finite)
            logs.append(np.log(plus * (high == np.inf)))
            # So far out, the mantissa has no log-probability.
            logs = [np.where(np.isnan(log), -np.inf, log) for log in logs]
            log_p = np.where(low < high, np.logaddexp.reduce(logs), -np.inf)
        # Minus infinity is not above any end.
        return np.where(np.isnan(low) | np.isnan(high), np.nan, log_p)

    def cdf(self, values: Floats) -> Floats:
        minus, plus = self._infinite
        finite = np.exp(self._log_finite)
        probability = minus + finite * self._below(self.normalizer.forward(values), self._regular)
        probability += plus * (values == np.inf)
        probability /= minus + finite + plus  # conditional on not NaN
        return np.where(np.isnan(values), np.nan, np.clip(probability, 0.0, 1.0))

    def _below(self, points: Floats, places: Sequence[int]) -> Floats:
        """Return float64[n]: P(X <= point in the encoding), given a finite number."""
        below, above = self._sides()
        into = np.clip(points, -self._smallest, self._smallest)
        total = below * (np.minimum(into, 0.0) + self._smallest) + above * np.maximum(into, 0.0)
        for index in places:
            with np.errstate(over="ignore"):
                cdf = self.mantissa.cdf(points / self.factors[index])
            total += self._given[:, index] * cdf
        return total

    def quantiles(self, levels: Sequence[float]) -> Floats:
        """Return float64[n, q]: quantiles, computed by bisection.

        Each bisection starts with an interval that contains about 1% of the probability, and ends
        when the interval has shrunk to 1e-10 of its initial width.
        """
        array = checked(levels)
        minus, plus = self._infinite
        finite = np.exp(self._log_finite)
        share = array * (minus + finite + plus)[:, None] - minus[:, None]
        with np.errstate(divide="ignore", over="ignore"):
            share /= finite[:, None]  # fraction of finite numbers up to the quantile
        # Corners are off by less than the height of one line segment.
        pairs = list(zip(share, self._corners, strict=True))
        low, high = (
            np.array([np.interp(wanted + off, f, x) for wanted, (x, f) in pairs])
            for off in (-_STEP, _STEP)
        )
        points = np.empty(share.shape)
        for at in range(len(array)):
            points[:, at] = self._halved(low[:, at], high[:, at], share[:, at])
        points = np.where(share <= 0, -np.inf, points)
        return np.where(share > 1, np.inf, points)

    def _halved(self, low: Floats, high: Floats, share: Floats) -> Floats:
        """Return float64[n], raw: quantiles of finite numbers, between points of the encoding."""
        places = [index for index in self._regular if self._given[:, index].max() > _NEGLIGIBLE]
        for _ in range(_HALVINGS):
            middle = low / 2 + high / 2
            enough = self._below(middle, places) >= share
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return self.normalizer.inverse(high)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        index = drawn_places(np.exp(self.log_weights), count, rng)
        mantissas = self.mantissa.sample(count, rng)
        factor = self.factors[index]
        with np.errstate(invalid="ignore"):
            samples = mantissas * factor
        tiny = np.copysign(self._smallest * rng.random(samples.shape), mantissas)
        samples = np.where(factor == 0, tiny, samples)
        samples = np.where(np.isinf(factor), np.copysign(np.inf, mantissas), samples)
        return np.where(np.isnan(factor), self.atoms[index], unscaled(self.normalizer, samples))

    # --- point estimates and scores --------------------------------------------------------------

    def mean(self) -> Floats:
        """Return float64[n]: the mean, which is exact for a linear normalization.

        Otherwise it is as accurate as :meth:`crps`. A large power of ten can dominate the mean even
        if it is very improbable: 1e-6 times 10^12 is a million.
        """
        if not self.normalizer.linear:
            return piecewise.means(self._raw_corners())
        weights = self._given[:, self._regular]
        factor: Floats = (weights * self.factors[self._regular]).sum(axis=1)
        total = factor * self.mantissa.mean()
        total += self._under * (1 - 2 * self._negative) * self._smallest / 2
        return self.normalizer.inverse(total)

    def mode(self) -> Floats:
        """Return float64[n]: the mode of the mantissa, multiplied by the most probable factor.

        If the most probable token has no factor, the result is the token's atom. If this token
        stands for an underflow or overflow, the result is NaN.
        """
        index = self.log_weights.argmax(axis=1)
        factor = self.factors[index]
        regular = (factor > 0) & (factor < np.inf)
        product = self.mantissa.mode() * np.where(regular, factor, np.nan)
        product = self.normalizer.inverse(product)
        return np.where(np.isnan(factor), self.atoms[index], product)

    def crps(self, values: Floats) -> Floats:
        """Return float64[n]: the CRPS, computed from 255 quantiles of the mantissa for each
        exponent.

        The error is about 3e-4 of the spread of the distribution.
        """
        return piecewise.scores(self._raw_corners(), values)

    def _raw_corners(self) -> Iterator[tuple[Floats, Floats]]:
        return ((self.normalizer.inverse(x), f) for x, f in self._corners)

    @cached_property
    @np.errstate(over="ignore")  # a mantissa from a head of bits can have any size
    def _corners(self) -> list[tuple[Floats, Floats]]:
        """Points of the encoding with the distribution function of finite numbers there, per row.

        The mantissa's function is piecewise linear, at every exponent that is not negligible. Takes
        up to 80 kB per row.
        """
        corners = []
        quantiles = self.mantissa.quantiles(_LEVELS.tolist())
        heights = _LEVELS.copy()
        heights[[0, -1]] = 0.0, 1.0
        for row, mantissas in enumerate(quantiles):
            weights = self._given[row]
            places = [index for index in self._regular if weights[index] > _NEGLIGIBLE]
            scales = self.factors[places]
            ends = [-self._smallest, 0.0, self._smallest] if self._under[row] else []
            products = np.clip(np.outer(scales, mantissas).ravel(), -_LARGEST, _LARGEST)
            points = np.unique(np.concatenate([products, ends]))
            total = np.zeros(len(points))
            for scale, weight in zip(scales.tolist(), weights[places].tolist(), strict=True):
                total += weight * np.interp(points / scale, mantissas, heights, 0.0, 1.0)
            if self._under[row]:
                shares = 0.0, self._negative[row], 1.0
                total += self._under[row] * np.interp(points, ends, shares)
            total /= total[-1]
            corners.append((points, total))
        return corners
