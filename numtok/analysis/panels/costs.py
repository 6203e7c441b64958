"""Skill over what it cost, and which experiments nobody beats in both."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from numtok.analysis.picture import LineMark, Mark, Panel, axis_of

#: What an experiment costs, as ``ExperimentCosts`` calls it, and in words.
COSTS = {
    "train_seconds": "seconds of training",
    "eval_seconds": "seconds of prediction",
    "samples": "rows read",
    "tokens": "tokens read",
    "flops": "FLOPs of training",
    "parameters": "parameters",
    "tokens_per_number": "tokens a number",
}
_ROOM = 0.12
_WIDE = 8  # times the least: from there on costs are drawn on a logarithm


class CostPoint(NamedTuple):
    """One experiment: what it cost, and a figure with its interval."""

    label: str
    cost: float
    value: float
    low: float | None
    high: float | None


def pareto_front(points: Sequence[CostPoint], *, higher: bool = True) -> list[CostPoint]:
    """Those than which no other is both cheaper, or as cheap, and better: the cheapest first.

    >>> points = [CostPoint(*one, None, None) for one in (("a", 1, 0.5), ("b", 2, 0.4))]
    >>> [one.label for one in pareto_front(points)], len(pareto_front(points, higher=False))
    (['a'], 2)
    """
    sign = 1 if higher else -1
    found: list[CostPoint] = []
    for one in sorted(points, key=lambda point: (point.cost, -sign * point.value)):
        if not found or sign * one.value > sign * found[-1].value:
            found.append(one)
    return found


def cost_panel(
    points: Sequence[CostPoint],
    words: tuple[str, str],
    colours: Mapping[str, int],
    title: str = "",
    *,
    higher: bool = True,
) -> Panel | None:
    """A dot with its interval for each experiment, and the front as a grey line; ``words`` are the
    labels of cost and figure. None without a point."""
    if not points:
        return None
    front = pareto_front(points, higher=higher)
    marks: list[Mark] = []
    if len(front) > 1:
        x, y = np.array([(one.cost, one.value) for one in front], np.float64).T
        marks.append(LineMark(label="Pareto front", x=x, y=y))
    for one in points:
        picks = (f"label:{one.label}",)
        marks.append(LineMark.of(one.label, [one[1:]], colours[one.label], picks))
    costs = np.array([one.cost for one in points], np.float64)
    wide = costs.min() > 0 and costs.max() > _WIDE * costs.min()
    values = [end for one in points for end in (one.value, one.low, one.high) if end is not None]
    return Panel(
        title=title,
        x=axis_of(words[0], "log" if wide else "linear", costs, _ROOM),
        y=axis_of(words[1], "linear", np.array(values, np.float64), _ROOM),
        marks=marks,
    )
