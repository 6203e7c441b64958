"""Gaussian mixture distributions of normalized values.

In raw units, a mixture is the distribution of ``inverse(Z)`` for a normalized value Z. This is
also a Gaussian mixture if the normalization is linear; under ``signed-log``, it is skewed. Sums
over components process a few rows at a time, so they never need more memory than a few arrays of
the size of the parameters.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import NormalDist

import numpy as np

from numtok.encoding.normalizers.base import Scaling, width_between
from numtok.models.distributions import normal, piecewise
from numtok.models.distributions.predictive import (
    Floats,
    Predictive,
    checked,
    drawn_places,
    unscaled,
)

_AT_ONCE = 1 << 15  # components in memory at once: more do not fit into a core's cache
_CANDIDATES = 64  # components whose centers a mode is searched from
_RAW_CANDIDATES = 16  # the same if the normalization is not linear
_CLIMBS = 100  # maximum steps from the best of them
# Corners for results without a closed form: standard deviations on each side, and numbers of
# corners.
_SPAN, _LEAST, _CORNERS = 12.0, 9, 4800
_GRID = np.linspace(-_SPAN, _SPAN, _CORNERS + 1)  # corners of a single component
_OFFSETS = np.linspace(-12, 12, 97)  # search grid of a peak, in standard deviations
_REFINEMENTS = 45  # steps, each to two thirds of the bracket
_NEGLIGIBLE = 1e-12  # probability that sums of many terms may ignore


@dataclass(frozen=True, eq=False)
class Mixture(Predictive):
    """Distributions of ``n`` numbers, each a mixture of ``k`` Gaussians over the normalized value
    (Bishop 1994).

    All results are in raw units. The distributions have a density and no atoms.

    >>> from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
    >>> scale = FittedNormalizer(NORMALIZERS.build("scale:5"), {"factor": 0.01})
    >>> weights, centers = np.log([[0.25, 0.75]]), np.array([[-1.0, 1.0]])
    >>> one = Mixture(weights, centers, np.array([[0.1, 0.1]]), scale)
    >>> one.mean().round(9).tolist(), one.mode().round(9).tolist()
    ([50.0], [100.0])

    A weight may be 0 (``-inf``). The weights of each row are divided by their sum. Raises
    ValueError unless all arrays have the same shape and every standard deviation is positive.
    """

    log_weights: Floats  # [n, k]
    centers: Floats  # [n, k], normalized
    deviations: Floats  # [n, k], normalized standard deviations
    normalizer: Scaling

    def __post_init__(self) -> None:
        shapes = {array.shape for array in (self.log_weights, self.centers, self.deviations)}
        if len(shapes) > 1 or self.centers.ndim != 2:
            raise ValueError(f"a mixture needs arrays of equal shape [n, k] (got {sorted(shapes)})")
        if not (self.deviations > 0).all():
            raise ValueError("standard deviations must be positive")

    @classmethod
    def single(cls, center: Floats, deviation: Floats | float, normalizer: Scaling) -> "Mixture":
        """Return the distributions of ``n`` numbers, each a single Gaussian with a given mean
        (float64[n]) and standard deviation.

        Pass one standard deviation per Gaussian, or a single one for all of them. Means and
        standard deviations are normalized.

        >>> from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
        >>> scale = FittedNormalizer(NORMALIZERS.build("scale:5"), {"factor": 0.01})
        >>> one = Mixture.single(np.array([1.0]), 0.5, scale)
        >>> one.mean(), one.quantiles([0.975])  # 1 and 1.97998 normalized
        (array([100.]), array([[197.99819923]]))
        """
        centers = center[:, None]
        deviations = np.broadcast_to(np.reshape(deviation, (-1, 1)), centers.shape)
        return cls(np.zeros(centers.shape), centers, deviations, normalizer)

    @cached_property
    def _log_weights(self) -> Floats:
        return self.log_weights - _log_sum(self.log_weights)[:, None]

    @cached_property
    def _weights(self) -> Floats:
        return np.exp(self._log_weights)

    # --- probabilities ---------------------------------------------------------------------------

    def log_density(self, values: Floats) -> Floats:
        finite = np.isfinite(values)
        inside = np.where(finite, values, 0.0)
        points = self.normalizer.forward(inside)

        def height(part: slice) -> Floats:
            heights = normal.log_density(self._standardised(points, part))
            return _log_sum(heights - np.log(self.deviations[part]) + self._log_weights[part])

        logs = self._summed(height)
        return np.where(finite, logs + self.normalizer.log_slope(inside), -np.inf)

    def log_interval(self, low: Floats, high: Floats) -> Floats:
        first, last = self.normalizer.forward(low), self.normalizer.forward(high)
        apart = width_between(self.normalizer, low, high)

        def mass(part: slice) -> Floats:
            ends = self._standardised(first, part), self._standardised(last, part)
            logs = normal.log_interval(*ends, apart[part, None] / self.deviations[part])
            return _log_sum(logs + self._log_weights[part])

        return self._summed(mass)

    def cdf(self, values: Floats) -> Floats:
        points = self.normalizer.forward(values)

        def below(part: slice) -> Floats:
            return _dot(self._weights[part], normal.cumulative(self._standardised(points, part)))

        return self._summed(below)

    def quantiles(self, levels: Sequence[float]) -> Floats:
        """Return float64[n, q]: quantiles, computed by Newton steps within a bracket.

        Their error, except for rounding, is about 1e-13 of the standard deviation of the narrowest
        component.
        """
        array = checked(levels)
        points = np.empty((len(self.centers), len(array)))
        for part in self._parts(len(array)):
            points[part] = self._inverted(part, array)
        return unscaled(self.normalizer, points)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        if self.centers.shape[1] == 1:
            component = np.zeros((len(self.centers), count), np.int64)
        else:
            component = drawn_places(self._weights, count, rng)
        center, deviation = (
            np.take_along_axis(array, component, axis=1)
            for array in (self.centers, self.deviations)
        )
        return unscaled(self.normalizer, center + deviation * rng.standard_normal(component.shape))

    @np.errstate(invalid="ignore")  # NaN means have no bracket
    def _inverted(self, part: slice, levels: Floats) -> Floats:
        """Return float64[r, q], normalized: where the distribution function reaches the levels.

        A quantile of a mixture lies between the quantiles of its components. It is found by Newton
        steps within this bracket; a step that would leave the bracket, or would be more than half
        as long as the last one, is replaced with bisection. Levels above 0.5 are computed from the
        upper tail.
        """
        weights, centers, deviations = (
            array[part] for array in (self._weights, self.centers, self.deviations)
        )
        scores = np.array([NormalDist().inv_cdf(level) for level in levels.tolist()])
        rows = np.repeat(np.arange(len(weights)), len(levels))
        levels, scores = (np.tile(array, len(weights)) for array in (levels, scores))
        possible = (weights > 0)[rows]
        ends = centers[rows] + deviations[rows] * scores[:, None]
        low = np.where(possible, ends, np.inf).min(axis=1, initial=np.inf)
        high = np.where(possible, ends, -np.inf).max(axis=1, initial=-np.inf)
        narrowest = np.where(possible, deviations[rows], np.inf).min(axis=1, initial=np.inf)
        side = np.where(levels > 0.5, -1.0, 1.0)
        wanted = np.minimum(levels, 1 - levels)
        points, last = low / 2 + high / 2, high - low
        going = np.flatnonzero(high != low)
        while len(going):
            row, x = rows[going], points[going]
            t = (x[:, None] - centers[row]) / deviations[row]
            tail = _dot(weights[row], normal.cumulative(side[going, None] * t))
            excess = side[going] * (tail - wanted[going])
            low[going] = np.where(excess < 0, x, low[going])
            high[going] = np.where(excess > 0, x, high[going])
            slope = _dot(weights[row] / deviations[row], np.exp(normal.log_density(t)))
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = x - excess / slope
            better = (low[going] <= newton) & (newton <= high[going])
            better &= np.abs(newton - x) <= last[going] / 2
            following = np.where(better, newton, low[going] / 2 + high[going] / 2)
            following = np.where(excess == 0, x, following)
            points[going], last[going] = following, np.abs(following - x)
            close = 1e-13 * narrowest[going] + 4e-16 * np.abs(x)
            going = going[(excess != 0) & (last[going] > close)]
        return np.asarray(points.reshape(len(weights), -1))

    # --- point estimates and scores --------------------------------------------------------------

    def mean(self) -> Floats:
        """Return float64[n]: the mean, which is exact for a linear normalization.

        Otherwise it is computed numerically from points spread over all components, to within about
        1e-4 of the spread of the distribution.
        """
        if self.normalizer.linear:
            return self.normalizer.inverse(_dot(self._weights, self.centers))
        return piecewise.means(self._corners())

    def mode(self) -> Floats:
        """Return float64[n]: the value with the highest density in raw units.

        For a linear normalization, the search considers the means of the highest components, starts
        at the one with the highest density, and climbs by fixed-point steps that never descend
        (mean shift, Carreira-Perpinan 2000). Otherwise the raw density is searched around the
        highest components.

        With more than 64 components (16 if the normalization is not linear), the result may be a
        lower peak if many overlapping components form a higher one.
        """
        linear = self.normalizer.linear
        count = min(_CANDIDATES if linear else _RAW_CANDIDATES, self.centers.shape[1])
        peaks = self._log_weights - np.log(self.deviations)
        best = np.argpartition(-peaks, count - 1, axis=1)[:, :count]
        starts = np.take_along_axis(self.centers, best, axis=1)
        if not linear:
            spreads = np.take_along_axis(self.deviations, best, axis=1)
            return _raw_peaks(self, self.normalizer, starts, spreads)
        if count == 1:
            return self.normalizer.inverse(starts[:, 0])
        climbed, narrowest = (
            np.empty(len(self.centers)),
            self.deviations.min(axis=1, initial=np.inf),
        )
        for part in self._parts():
            heights = [self._pulls(column, part)[0] for column in starts[part].T]
            chosen = np.argmax(heights, axis=0)
            climbed[part] = starts[part][np.arange(len(chosen)), chosen]
            moving = np.ones(len(chosen), np.bool_)  # per row: results do not depend on the parts
            for _ in range(_CLIMBS):
                _, pulls = self._pulls(climbed[part], part)
                following = _dot(pulls, self.centers[part]) / pulls.sum(axis=1)
                step = np.where(moving, following - climbed[part], 0.0)
                climbed[part] += step
                moving &= np.abs(step) > 1e-10 * narrowest[part]
                if not moving.any():
                    break
        return self.normalizer.inverse(climbed)

    def _pulls(self, points: Floats, part: slice) -> tuple[Floats, Floats]:
        """Return the log-density at normalized points [r], and [r, k]: how strongly each component
        pulls them uphill.

        The pull of a component is its part of the density over its variance, up to a factor per
        row.
        """
        deviations = self.deviations[part]
        t = (points[:, None] - self.centers[part]) / deviations
        logs = normal.log_density(t) - np.log(deviations) + self._log_weights[part]
        return _log_sum(logs), np.exp(logs - logs.max(axis=1, keepdims=True)) / deviations**2

    def crps(self, values: Floats) -> Floats:
        """Return float64[n]: the CRPS, in closed form (Grimit et al. 2006) for a linear
        normalization.

        It is mean |X - y| - mean |X - X'| / 2, where the second mean is over all pairs of
        components and takes n k^2 / 2 terms. For other normalizations it is computed numerically,
        as in :meth:`mean`.
        """
        if not self.normalizer.linear:
            return piecewise.scores(self._corners(), values)
        finite = np.isfinite(values)
        points = self.normalizer.forward(np.where(finite, values, 0.0))

        def score(part: slice) -> Floats:
            distances = normal.mean_distance(self._standardised(points, part))
            away = _dot(self._weights[part], self.deviations[part] * distances)
            return away - self._half_apart(part)

        unit = np.exp(-self.normalizer.log_slope(np.zeros(len(values))))  # raw, of 1 normalized
        return np.where(finite, unit * self._summed(score), np.abs(values))

    def _half_apart(self, part: slice) -> Floats:
        """Return float64[r], normalized: half the mean distance of two independent samples.

        Sums over the heaviest components of each row, with all but 1e-12 of its probability.
        """
        least = _NEGLIGIBLE / self.centers.shape[1]
        count = np.count_nonzero(self._weights[part] > least, axis=1).max(initial=1)
        heaviest = np.argsort(-self._weights[part], axis=1)[:, :count]
        weights, centers, deviations = (
            np.take_along_axis(array[part], heaviest, axis=1)
            for array in (self._weights, self.centers, self.deviations)
        )
        total = _dot(weights * weights, deviations) / math.sqrt(math.pi)
        squares = np.square(deviations)
        for shift in range(1, weights.shape[1]):  # each pair once, and no array of all pairs
            spread = np.sqrt(squares[:, shift:] + squares[:, :-shift])
            between = (centers[:, shift:] - centers[:, :-shift]) / spread
            pair = weights[:, shift:] * weights[:, :-shift]
            total += _dot(pair, spread * normal.mean_distance(between))
        return total

    # --- parts -----------------------------------------------------------------------------------

    def _parts(self, each: int = 1) -> Iterator[slice]:
        """Yield slices of rows whose terms, ``each`` times the components, fit into memory at
        once."""
        size = max(1, _AT_ONCE // (each * max(1, self.centers.shape[1])))
        yield from (slice(at, at + size) for at in range(0, len(self.centers), size))

    def _summed(self, function: Callable[[slice], Floats]) -> Floats:
        """Return float64[n], from float64[r] of each part."""
        return np.concatenate([np.empty(0), *map(function, self._parts())])

    def _standardised(self, points: Floats, part: slice) -> Floats:
        """Return float64[r, k]: normalized values in standard deviations from each mean."""
        with np.errstate(over="ignore"):
            t: Floats = (points[part, None] - self.centers[part]) / self.deviations[part]
        return t

    def _corners(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield raw values with the distribution function there, for each of the ``n`` numbers.

        Corners are on every component, more on those with a greater weight.
        """
        for row in range(len(self.centers)):
            possible = self._weights[row] > _NEGLIGIBLE / self.centers.shape[1]
            weights = self._weights[row, possible]
            center, deviation = self.centers[row, possible], self.deviations[row, possible]
            if self.centers.shape[1] == 1:
                yield self.normalizer.inverse(center + deviation * _GRID), _heights()
                continue
            counts = _LEAST + np.rint(_CORNERS * weights).astype(np.int64)
            rank = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            t = _SPAN * (2 * rank / np.repeat(counts - 1, counts) - 1)
            points = np.unique(np.repeat(center, counts) + np.repeat(deviation, counts) * t)
            size = max(1, _AT_ONCE // len(weights))
            heights = np.concatenate(
                [
                    normal.cumulative((points[at : at + size, None] - center) / deviation) @ weights
                    for at in range(0, len(points), size)
                ]
            )
            heights[[0, -1]] = 0.0, 1.0
            yield self.normalizer.inverse(points), np.clip(heights, 0.0, 1.0)


def _dot(weights: Floats, terms: Floats) -> Floats:
    """Return float64[r]: sums of products. BLAS is avoided, because results must not depend on the
    number of threads."""
    return np.asarray(np.einsum("rk,rk->r", weights, terms))


def _log_sum(logs: Floats) -> Floats:
    """Return float64[r]: log of the sum of exp(logs) over the columns; -inf if all are."""
    top = logs.max(axis=1, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        sums: Floats = np.log(np.exp(logs - shift[:, None]).sum(axis=1)) + shift
    return sums


def _raw_peaks(
    distribution: Predictive, scaling: Scaling, starts: Floats, deviations: Floats
) -> Floats:
    """Return the raw value with the highest density for each distribution, float64[n].

    A nonlinear normalization moves the peak: where it stretches raw values, the raw density is
    lower. Under ``signed-log`` the raw density of a wide Gaussian peaks near 0.

    A grid of 12 standard deviations to each side of the starts is searched, and the best grid point
    is refined. The normalized value of 0 is always a start, because slopes peak there.

    starts, deviations
        float64[n, s], normalized: centers of components, and their standard deviations.
    """
    zero = np.broadcast_to(scaling.forward(np.zeros(1)), (len(starts), 1))
    starts = np.concatenate([starts, zero], axis=1)
    deviations = np.concatenate([deviations, deviations.min(axis=1, keepdims=True)], axis=1)

    def height(points: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return distribution.log_density(scaling.inverse(points))

    best, step = starts[:, 0].copy(), deviations[:, 0].copy()
    highest = height(best)
    for center, deviation in zip(starts.T, deviations.T, strict=True):
        for offset in _OFFSETS.tolist():
            points = center + deviation * offset
            heights = height(points)
            better = heights > highest
            best[better], step[better] = points[better], deviation[better]
            highest[better] = heights[better]
    step = step * (_OFFSETS[1] - _OFFSETS[0])
    low, high = best - step, best + step
    for _ in range(_REFINEMENTS):
        third = (high - low) / 3
        rises = height(low + third) < height(high - third)
        low, high = np.where(rises, low + third, low), np.where(rises, high, high - third)
    refined = low / 2 + high / 2
    return scaling.inverse(np.where(height(refined) > highest, refined, best))


@cache
def _heights() -> Floats:
    """Return the probability below each corner of :data:`_GRID`."""
    heights = normal.cumulative(_GRID)
    heights[[0, -1]] = 0.0, 1.0
    return heights
