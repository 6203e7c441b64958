"""Split-conformal prediction intervals, calibrated on rows that did not train the model.

The score of a calibration row states how far its true value lies outside the interval that the
model predicts. New intervals are widened, or narrowed, by a quantile of these scores, so that they
contain a true value with the requested probability if new rows and calibration rows are
exchangeable, however wrong the model is.

Models with quantiles are calibrated by conformalized quantile regression (Romano, Patterson &
Candès 2019). Without quantiles, the predicted interval is the point prediction, and scores are
absolute residuals. An interval that misses the point prediction is extended to it, which can only
raise the coverage.

Rows of one cluster depend on each other, so each cluster has a total weight of one row (Lee, Barber
& Willett 2023, "Distribution-free inference with hierarchical data"). The result then holds for a
random row of a new cluster.

If no training or calibration value of a target is negative, its intervals end at 0, unless the
point prediction is negative. Of ``n`` such values and a new one, all exchangeable, the new one is
the only negative value with a probability of at most 1 / (n + 1), so coverage falls by no more.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.arrays import Bools, Floats, Ints
from numtok.reports import QUANTILES

_TOLERANCE = 1e-9  # of sums of weights


class Ends(NamedTuple):
    """Ends of n intervals, float64[n] each. They are infinite if there are too few calibration
    rows."""

    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True)
class Forecasts:
    """Predictions for n rows.

    point
        float64[n], finite. Invalid predictions are already replaced.
    quantiles
        float64[n, levels], quantiles at the levels ``QUANTILES``. NaN or infinite quantiles are
        replaced by the point prediction. None if the model has no quantiles.
    strata
        [n], name of the stratum of each row. Strata are calibrated separately.
    """

    point: Floats
    quantiles: Floats | None
    strata: NDArray[np.object_]

    def interval(self, level: float) -> Ends:
        """Return the stored central interval whose level is closest to ``level``; the point
        prediction for rows without quantiles."""
        if self.quantiles is None:
            return Ends(self.point, self.point)
        widths = np.subtract(QUANTILES[::-1], QUANTILES)[: len(QUANTILES) // 2]
        index = int(np.abs(widths - level).argmin())
        low, high = self.quantiles[:, index], self.quantiles[:, -1 - index]
        with np.errstate(over="ignore", invalid="ignore"):
            usable = np.isfinite(high - low)
        return Ends(np.where(usable, low, self.point), np.where(usable, high, self.point))

    @property
    def only_points(self) -> Bools:
        """bool[n], True for rows without any quantile."""
        if self.quantiles is None:
            return np.ones(len(self.point), np.bool_)
        return np.asarray(np.isnan(self.quantiles).all(axis=1))


class Calibrated(NamedTuple):
    """Result of calibration at one level.

    margins
        Margin of each stratum, in units of :meth:`scale`; negative if the predicted intervals are
        too wide, infinite if there are too few calibration rows.
    margin
        Margin for rows of an unknown stratum, computed from all rows.
    residual
        The same for rows of an unknown stratum without quantiles: a quantile of the absolute
        residuals of all rows, in raw units.
    typical
        Median width of the predicted intervals of the calibration rows; 1 if it is zero.
    nonnegative
        Strata whose values are never negative in training and calibration. An unknown stratum
        counts as one if all are.
    """

    level: float
    margins: Mapping[Any, float]
    margin: float
    residual: float
    typical: float
    nonnegative: Collection[Any]

    def intervals(self, predicted: Forecasts) -> Ends:
        """Return the calibrated intervals of n rows, extended to contain the point predictions.

        The mode of a distribution, for instance, can lie outside its quantiles.
        """
        low, high = predicted.interval(self.level)
        margins = np.array([self.margins.get(name, self.margin) for name in predicted.strata])
        unknown = np.array([name not in self.margins for name in predicted.strata], np.bool_)
        change = np.where(
            unknown & predicted.only_points,
            self.residual,
            margins * scale(low, high, self.typical),
        )
        # An interval narrowed to nothing is its middle.
        middle = low / 2 + high / 2
        low = np.minimum(low - change, np.where(change < 0, middle, np.inf))
        high = np.maximum(high + change, np.where(change < 0, middle, -np.inf))
        every = len(self.nonnegative) == len(self.margins)
        known = np.array([name in self.nonnegative for name in predicted.strata], np.bool_)
        clipped = np.where(unknown, every, known)
        least = np.where(clipped & np.isfinite(change), 0.0, -np.inf)
        low, high = np.maximum(low, least), np.maximum(high, least)
        return Ends(np.minimum(low, predicted.point), np.maximum(high, predicted.point))


def calibrate(
    truth: Floats,
    predicted: Forecasts,
    units: Ints,
    level: float,
    *,
    nonnegative: Collection[Any] = (),
) -> Calibrated:
    """Calibrate intervals on the true values float64[n] and the predictions of n rows.

    ``units``, int64[n], contains the cluster of each row. Rows outside clusters have a unit of
    their own. ``level`` is the probability that an interval contains the true value, and
    ``nonnegative`` are the strata without negative values in training.
    """
    low, high = predicted.interval(level)
    typical = float(np.median(high - low)) if len(truth) else 0.0
    typical = typical if typical > 0 else 1.0
    scores = np.maximum(low - truth, truth - high) / scale(low, high, typical)
    strata = {name: predicted.strata == name for name in set(predicted.strata.tolist())}
    margins = {name: quantile(scores[rows], units[rows], level) for name, rows in strata.items()}
    clipped = {name for name in nonnegative if name in strata and (truth[strata[name]] >= 0).all()}
    residual = quantile(np.abs(truth - predicted.point), units, level)
    return Calibrated(
        level, margins, quantile(scores, units, level), residual, typical, nonnegative=clipped
    )


def scale(low: Floats, high: Floats, typical: float) -> Floats:
    """Return the unit of each score, float64[n]: the width of the interval plus the ``typical``
    width."""
    return high - low + typical


def quantile(scores: Floats, units: Ints, level: float) -> float:
    """Return the conformal quantile of scores float64[n] at a level.

    With one row per unit, this is the ceil((n + 1) level)-th smallest score. It is infinite if
    there are too few units (see :func:`least`).

    >>> quantile(np.arange(1.0, 20.0), np.arange(19), 0.9)
    18.0
    >>> quantile(np.array([1.0, 2.0, 3.0, 9.0]), np.array([0, 0, 1, 1]), 0.5)
    3.0
    """
    _, unit_of, sizes = np.unique(units, return_inverse=True, return_counts=True)
    order = np.argsort(scores, kind="stable")
    weight = np.cumsum((1 / sizes)[unit_of][order])
    index = int(np.searchsorted(weight, level * (len(sizes) + 1) - _TOLERANCE))
    return float(scores[order][index]) if index < len(scores) else math.inf


def least(level: float) -> int:
    """Return the smallest number of units for which intervals are finite.

    >>> least(0.9), least(0.99)
    (9, 99)
    """
    return math.ceil(1 / (1 - level) - _TOLERANCE) - 1
