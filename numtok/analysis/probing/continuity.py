"""Measures of how continuous predictions are as a number changes: jumps, plateaus, repeated values.

The number is x float64[n], ascending, and the predictions are y float64[n]; all are finite. If
several rows have the same x, comparisons of neighbors use their median prediction (:func:`path`).
"""

from typing import NamedTuple

import numpy as np

from numtok.analysis.probing.probe_records import Jump, Repeated, Saturation
from numtok.arrays import Floats, Ints
from numtok.evaluation.seen_values import SeenValues, rounded
from numtok.metrics.base import METRICS, Predictions, figures, share
from numtok.reports import Figure, Figures

Drawn = Ints | None
_STILL = 0.01  # smallest change that counts, as a fraction of the range of the predictions


class Path(NamedTuple):
    """Curve of predictions: distinct x float64[k] in ascending order, and one y float64[k] for each
    of them."""

    x: Floats
    y: Floats


def path(x: Floats, y: Floats) -> Path:
    """Return the distinct values of x[n] in ascending order, with the median of y[n] at each.

    >>> path(np.array([1.0, 1.0, 2.0]), np.array([0.0, 4.0, 5.0])).y.tolist()
    [2.0, 5.0]
    """
    distinct, first = np.unique(x, return_index=True)
    return Path(distinct, np.array([np.median(part) for part in np.split(y, first[1:])]))


def jump(along: Path, *, is_truth: bool) -> Jump | None:
    """Return the largest step between neighbors on a curve, or None if it has fewer than two
    points.

    If ``is_truth`` is true, x is the true value of y, and the step is also compared with the steps
    of x.

    >>> line = Path(np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 1.0, 5.0, 6.0]))
    >>> largest = jump(line, is_truth=True)
    >>> largest.size, (largest.from_x, largest.to_x), largest.of_median_step, largest.of_truth
    (4.0, (1.0, 2.0), 4.0, 2.0)
    """
    x, y = along
    if len(x) < 2:
        return None
    steps = np.abs(np.diff(y))
    at = int(np.argmax(steps))
    size, median, all_of_it = float(steps[at]), float(np.median(steps)), float(np.ptp(y))
    return Jump(
        size=size,
        from_x=float(x[at]),
        to_x=float(x[at + 1]),
        from_y=float(y[at]),
        to_y=float(y[at + 1]),
        of_range=size / all_of_it if all_of_it else 0.0,
        of_median_step=size / median if median else None,
        of_truth=size / float(np.diff(x).max()) if is_truth else None,
    )


def saturation(along: Path, y: Floats, training: SeenValues | None) -> Saturation:
    """Measure the plateaus at both ends of a curve, and how often predictions reach the training
    limits.

    The limits are the smallest and the largest value seen in training. ``y`` are all predictions.

    >>> line = Path(np.arange(5.0), np.array([1.0, 1.0, 1.0, 2.0, 3.0]))
    >>> result = saturation(line, line.y, SeenValues(np.array([1.0, 3.0])))
    >>> result.low.value, result.high.value, result.still_low, result.still_high
    (0.6, 0.2, 0.5, 0.0)
    """
    width = float(np.ptp(along.x))
    limit = _STILL * float(np.ptp(along.y))

    def still(values: Floats, x: Floats) -> float:
        moved = np.flatnonzero(np.abs(values - values[0]) > limit)
        if not len(moved):
            return 1.0
        return float(abs(x[moved[0] - 1] - x[0]) / width)

    low = high = None
    if training is not None:
        low = share(int((y <= training.values[0]).sum()), len(y))
        high = share(int((y >= training.values[-1]).sum()), len(y))
    return Saturation(low, high, still(along.y, along.x), still(along.y[::-1], along.x[::-1]))


def repeated(y: Floats, floor: Floats, training: SeenValues, digits: int) -> Repeated:
    """Return the fraction of predictions that equal a value seen in training, exactly and after
    rounding.

    Values are rounded to ``digits`` significant digits. ``floor`` contains numbers for which the
    same fractions are computed, for comparison.

    >>> training = SeenValues(np.array([1.0, 2.0]))
    >>> result = repeated(np.array([1.0, 1.0004, 1.5, 2.0]), np.array([1.2, 1.4]), training, 3)
    >>> result.rounded.value, result.exact.value, result.floor_rounded.value
    (0.75, 0.5, 0.0)
    """

    def of(numbers: Floats, precision: int) -> Figure:
        return share(int(training.has(numbers, precision).sum()), len(numbers))

    return Repeated(of(y, digits), of(y, 0), of(floor, digits), of(floor, 0))


def evenly(y: Floats) -> Floats:
    """Return n numbers that are evenly spaced over the range of the n predictions.

    A smooth function with a constant slope would predict these numbers.
    """
    return np.linspace(float(y.min()), float(y.max()), len(y))


def distinct(y: Floats, digits: int) -> int:
    """Return the number of distinct predictions after rounding to ``digits`` significant digits. If
    ``digits`` is 0, predictions are not rounded."""
    return len(np.unique(rounded(y, digits) if digits else y))


def slope(x: Floats, y: Floats, sample: Drawn = None) -> Figure:
    """Return the slope of the least-squares line of y on x, with a bootstrap interval.

    ``sample`` contains the sample that each prediction belongs to (see :class:`Predictions`).
    """
    [fitted] = figures([METRICS.build("slope")], _answers(x, y, sample)).values()
    return fitted


def variation(y: Floats) -> float | None:
    """Return the sum of the absolute steps of y, divided by the range of y; None if y is constant.

    >>> variation(np.array([0.0, 1.0, 4.0])), variation(np.array([0.0, 1.0, 0.0, 1.0, 0.0]))
    (1.0, 4.0)
    """
    all_of_it = float(np.ptp(y))
    return float(np.abs(np.diff(y)).sum()) / all_of_it if all_of_it else None


def errors(
    truth: Floats, y: Floats, training: SeenValues | None, sample: Drawn = None
) -> dict[str, Figures]:
    """Return ``mae`` and ``mse`` of the model and of simple baselines, with bootstrap intervals.

    The baselines are the best constant and, with ``training``, the training value nearest to the
    true value.

    >>> results = errors(np.array([0.0, 1.0, 5.0]), np.array([0.0, 2.0, 5.0]), None)
    >>> [(name, round(metrics["mae"].value, 3), round(metrics["mse"].value, 3))
    ...     for name, metrics in results.items()]
    [('model', 0.333, 0.333), ('best constant', 1.667, 4.667)]
    """
    of_mean, of_size = METRICS.build("mse"), METRICS.build("mae")
    results = {"model": figures([of_size, of_mean], _answers(truth, y, sample))}
    if training is not None:
        nearest = _answers(truth, training.nearest(truth), sample)
        results["nearest seen value"] = figures([of_size, of_mean], nearest)
    middle = _answers(truth, np.full(len(truth), np.median(truth)), sample)
    mean = _answers(truth, np.full(len(truth), truth.mean()), sample)
    results["best constant"] = figures([of_size], middle) | figures([of_mean], mean)
    return results


def _answers(truth: Floats, y: Floats, sample: Drawn) -> Predictions:
    return Predictions.of(truth, y)._replace(sample=sample)
