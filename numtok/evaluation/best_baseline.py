"""The best baseline of a report, and how the model differs from it."""

from collections.abc import Mapping
from typing import Literal

from numtok.metrics.base import METRICS, Predictions, paired
from numtok.reports import BestBaseline, Figure, Figures

_DECIDING = ("field-skill", "mae", "accuracy")  # the first that baselines have decides


def best_baseline(
    model: Predictions, baselines: Mapping[str, Predictions], metrics_of: Mapping[str, Figures]
) -> BestBaseline | None:
    """Return the best baseline and its paired difference to the model, or None if no baseline has a
    metric that decides.

    All predictions are for the same numbers or labels, in the same order. ``metrics_of`` contains
    the metrics of each baseline.
    """
    for spec in _DECIDING:
        figures = {name: metrics_of[name].get(spec) for name in baselines}
        values = {
            name: figure.value
            for name, figure in figures.items()
            if figure is not None and figure.value is not None
        }
        if values:
            metric = METRICS.build(spec)
            sign = 1 if metric.better == "higher" else -1
            name = max(values, key=lambda each: sign * values[each])
            difference = paired(metric, [model], [baselines[name]]).figure
            return BestBaseline(
                name=name,
                metric=spec,
                value=values[name],
                difference=difference,
                better=_better(difference, sign),
            )
    return None


def _better(difference: Figure, sign: int) -> Literal["model", "baseline"] | None:
    """Return which side is better. ``sign`` is 1 if higher values are better, else -1."""
    ends = [sign * end for end in (difference.low, difference.high) if end is not None]
    if ends and min(ends) > 0:
        return "model"
    return "baseline" if ends and max(ends) < 0 else None
