"""How continuous predictions are along a line of numbers: jumps, plateaus, repeated values.

All is made from arrays: x float64[n] ascending, and what was predicted at each, y float64[n], both
finite. Where several rows have one x, their median prediction stands for them wherever neighbours
are looked at (:func:`path`).
"""

from typing import NamedTuple

import numpy as np

from numtok.analysis.probing.probe_records import Jump, Repeated, Saturation
from numtok.arrays import Floats, Ints
from numtok.evaluation.seen_values import SeenValues, rounded
from numtok.metrics.base import METRICS, Predictions, figures, share
from numtok.reports import Figure, Figures

Drawn = Ints | None
_STILL = 0.01  # of the range of the predictions: less is no move


class Path(NamedTuple):
    """Different x, ascending, and one y at each; float64[k]."""

    x: Floats
    y: Floats


def path(x: Floats, y: Floats) -> Path:
    """The median y[n] at each different x[n], ascending.

    >>> path(np.array([1.0, 1.0, 2.0]), np.array([0.0, 4.0, 5.0])).y.tolist()
    [2.0, 5.0]
    """
    distinct, first = np.unique(x, return_index=True)
    return Path(distinct, np.array([np.median(part) for part in np.split(y, first[1:])]))


def jump(along: Path, *, is_truth: bool) -> Jump | None:
    """The largest step; None of fewer than two places. ``is_truth``: x is the truth of y.

    >>> line = Path(np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 1.0, 5.0, 6.0]))
    >>> found = jump(line, is_truth=True)
    >>> found.size, (found.from_x, found.to_x), found.of_median_step, found.of_truth
    (4.0, (1.0, 2.0), 4.0, 2.0)
    """
    x, y = along
    if len(x) < 2:
        return None
    steps = np.abs(np.diff(y))
    at = int(np.argmax(steps))
    size, usual, all_of_it = float(steps[at]), float(np.median(steps)), float(np.ptp(y))
    return Jump(
        size=size,
        from_x=float(x[at]),
        to_x=float(x[at + 1]),
        from_y=float(y[at]),
        to_y=float(y[at + 1]),
        of_range=size / all_of_it if all_of_it else 0.0,
        of_median_step=size / usual if usual else None,
        of_truth=size / float(np.diff(x).max()) if is_truth else None,
    )


def saturation(along: Path, y: Floats, seen: SeenValues | None) -> Saturation:
    """Plateaus at both ends of a path, and how many of all predictions are at the ends of what was
    seen.

    >>> line = Path(np.arange(5.0), np.array([1.0, 1.0, 1.0, 2.0, 3.0]))
    >>> found = saturation(line, line.y, SeenValues(np.array([1.0, 3.0])))
    >>> found.low.value, found.high.value, found.still_low, found.still_high
    (0.6, 0.2, 0.5, 0.0)
    """
    width = float(np.ptp(along.x))
    limit = _STILL * float(np.ptp(along.y))

    def still(values: Floats, places: Floats) -> float:
        moved = np.flatnonzero(np.abs(values - values[0]) > limit)
        if not len(moved):
            return 1.0
        return float(abs(places[moved[0] - 1] - places[0]) / width)

    low = high = None
    if seen is not None:
        low = share(int((y <= seen.values[0]).sum()), len(y))
        high = share(int((y >= seen.values[-1]).sum()), len(y))
    return Saturation(low, high, still(along.y, along.x), still(along.y[::-1], along.x[::-1]))


def repeated(y: Floats, floor: Floats, seen: SeenValues, digits: int) -> Repeated:
    """How many predictions are values seen in training; ``floor`` are the numbers beside them.

    >>> seen = SeenValues(np.array([1.0, 2.0]))
    >>> found = repeated(np.array([1.0, 1.0004, 1.5, 2.0]), np.array([1.2, 1.4]), seen, 3)
    >>> found.rounded.value, found.exact.value, found.floor_rounded.value
    (0.75, 0.5, 0.0)
    """

    def of(numbers: Floats, precision: int) -> Figure:
        return share(int(seen.has(numbers, precision).sum()), len(numbers))

    return Repeated(of(y, digits), of(y, 0), of(floor, digits), of(floor, 0))


def evenly(y: Floats) -> Floats:
    """As many numbers as predictions, spread evenly over their range: what a smooth function that
    moves at one speed would say."""
    return np.linspace(float(y.min()), float(y.max()), len(y))


def distinct(y: Floats, digits: int) -> int:
    """How many different predictions, rounded to significant digits where that is not 0."""
    return len(np.unique(rounded(y, digits) if digits else y))


def slope(x: Floats, y: Floats, sample: Drawn = None) -> Figure:
    """Of the least-squares line of y on x, with a bootstrap interval; ``sample`` as in
    ``Predictions``."""
    [found] = figures([METRICS.build("slope")], _answers(x, y, sample)).values()
    return found


def variation(y: Floats) -> float | None:
    """The sum of all steps, up and down, over the range; None where there is no range.

    >>> variation(np.array([0.0, 1.0, 4.0])), variation(np.array([0.0, 1.0, 0.0, 1.0, 0.0]))
    (1.0, 4.0)
    """
    all_of_it = float(np.ptp(y))
    return float(np.abs(np.diff(y)).sum()) / all_of_it if all_of_it else None


def errors(
    truth: Floats, y: Floats, seen: SeenValues | None, sample: Drawn = None
) -> dict[str, Figures]:
    """``mae`` and ``mse`` of the model, of the seen value nearest to the truth, and of the best
    constant, with bootstrap intervals.

    >>> found = errors(np.array([0.0, 1.0, 5.0]), np.array([0.0, 2.0, 5.0]), None)
    >>> [(name, round(one["mae"].value, 3), round(one["mse"].value, 3))
    ...     for name, one in found.items()]
    [('model', 0.333, 0.333), ('best constant', 1.667, 4.667)]
    """
    of_mean, of_size = METRICS.build("mse"), METRICS.build("mae")
    found = {"model": figures([of_size, of_mean], _answers(truth, y, sample))}
    if seen is not None:
        nearest = _answers(truth, seen.nearest(truth), sample)
        found["nearest seen value"] = figures([of_size, of_mean], nearest)
    middle = _answers(truth, np.full(len(truth), np.median(truth)), sample)
    mean = _answers(truth, np.full(len(truth), truth.mean()), sample)
    found["best constant"] = figures([of_size], middle) | figures([of_mean], mean)
    return found


def _answers(truth: Floats, y: Floats, sample: Drawn) -> Predictions:
    return Predictions.of(truth, y)._replace(sample=sample)
