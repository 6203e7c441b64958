"""Panels of skill plotted against cost, and the Pareto front of experiments."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from numtok.analysis.picture import LineMark, Mark, Panel, axis_of

#: Costs of an experiment: fields of ``ExperimentCosts``, and their labels.
COSTS = {
    "train_seconds": "seconds of training",
    "eval_seconds": "seconds of prediction",
    "samples": "rows read",
    "tokens": "tokens read",
    "flops": "FLOPs of training",
    "parameters": "parameters",
    "tokens_per_number": "tokens per number",
}
#: ``higher`` of a metric, by its declared ``better``; None for other metrics.
HIGHER = {"higher": True, "lower": False}
_ROOM = 0.12
_WIDE = 8  # ratio of largest to smallest cost above which the axis is logarithmic


class CostPoint(NamedTuple):
    """The cost of an experiment, and the value of a metric with its confidence interval."""

    label: str
    cost: float
    value: float
    low: float | None
    high: float | None


def pareto_front(points: Sequence[CostPoint], *, higher: bool | None = True) -> list[CostPoint]:
    """Return the points that no other point beats in both cost and value, in order of cost.

    Higher values are better if ``higher`` is True, lower values if it is False. If it is None, the
    result is empty.

    >>> points = [CostPoint(*values, None, None) for values in (("a", 1, 0.5), ("b", 2, 0.4))]
    >>> [point.label for point in pareto_front(points)], len(pareto_front(points, higher=False))
    (['a'], 2)
    """
    front: list[CostPoint] = []
    if higher is None:
        return front
    sign = 1 if higher else -1
    for candidate in sorted(points, key=lambda point: (point.cost, -sign * point.value)):
        if not front or sign * candidate.value > sign * front[-1].value:
            front.append(candidate)
    return front


def cost_panel(
    points: Sequence[CostPoint],
    words: tuple[str, str],
    colours: Mapping[str, int],
    title: str = "",
    *,
    higher: bool | None = True,
) -> Panel | None:
    """Return a panel with a metric plotted against a cost, with one dot and interval per
    experiment.

    The Pareto front is a gray line. The result is None if ``points`` is empty.

    words
        Labels of the cost axis and of the metric axis.
    colours
        Color index of each experiment, keyed by label.
    higher
        True if higher values of the metric are better, None if neither are.
    """
    if not points:
        return None
    front = pareto_front(points, higher=higher)
    marks: list[Mark] = []
    if len(front) > 1:
        x, y = np.array([(point.cost, point.value) for point in front], np.float64).T
        marks.append(LineMark(label="Pareto front", x=x, y=y))
    for point in points:
        picks = (f"label:{point.label}",)
        marks.append(LineMark.of(point.label, [point[1:]], colours[point.label], picks))
    costs = np.array([point.cost for point in points], np.float64)
    wide = costs.min() > 0 and costs.max() > _WIDE * costs.min()
    values = [
        end for point in points for end in (point.value, point.low, point.high) if end is not None
    ]
    return Panel(
        title=title,
        x=axis_of(words[0], "log" if wide else "linear", costs, _ROOM),
        y=axis_of(words[1], "linear", np.array(values, np.float64), _ROOM),
        marks=marks,
    )
