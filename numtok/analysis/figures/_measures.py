"""One metric of one experiment, with an interval: of the bootstrap, or over folds."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from numtok.errors import UsageError
from numtok.evaluation.comparison.seeds import (
    FoldStatistics,
    SeedStatistics,
    answers_of_seeds,
    bootstrapped,
    seed_statistics,
)
from numtok.evaluation.report_files import FOLD, Evaluation, ReportPredictions, check_measures
from numtok.metrics.base import Metric, figures
from numtok.registry import spec_of
from numtok.reports import Figure

OVER = ("seeds", "folds")
_TOLD = {
    "bootstrap": "Strokes: 95% interval (bootstrap over the test rows and the seeds).",
    "share": "Strokes of a fraction of 0 or 1: 95% interval over the test rows (Wilson's).",
    "folds": "Strokes: one standard deviation over the folds to each side of their mean.",
}


class Point(NamedTuple):
    """One experiment: the panel and the line it belongs to, its place on the x axis, its metric."""

    panel: str
    line: str
    x: float
    found: SeedStatistics


class Pair(NamedTuple):
    """The metric of both ways on one data set."""

    data: str
    first: SeedStatistics
    second: SeedStatistics


def measured(group: Sequence[Evaluation], metric: Metric, over: str) -> SeedStatistics:
    """A metric of the seeds of one experiment.

    Over seeds it is as in ``compare``: the mean with the interval of a bootstrap over the test rows
    and the seeds. Over folds it is their mean (each the mean over the seeds) and one standard
    deviation to both sides.

    Raises UsageError without folds, DataError where seeds have other test rows.
    """
    if over == "seeds":
        for evaluation in group:
            check_measures([metric], evaluation.report.measures, evaluation.ref)
        if len(group) == 1 and (found := group[0].report.metrics.get(spec_of(metric))):
            return seed_statistics([found], metric.bounds, share=metric.share)
        return bootstrapped([metric], answers_of_seeds(group))[spec_of(metric)]
    folds = [_of_folds(evaluation, metric) for evaluation in group]
    if len({len(seeds) for seeds in folds}) > 1:
        told = ", ".join(evaluation.ref for evaluation in group)
        raise UsageError(f"--over folds needs seeds of the same folds, and {told} have others")
    return over_folds([seed_statistics(seeds).value for seeds in zip(*folds, strict=True)])


def over_folds(values: Sequence[float | None]) -> SeedStatistics:
    """Mean and standard deviation over folds; undefined where one of them is.

    >>> found = over_folds([1.0, 3.0])
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (2.0, 0.586, 3.414)
    """
    found = FoldStatistics.of(values)
    if found.mean is None or found.deviation is None:
        return SeedStatistics(
            value=None, low=None, high=None, deviation=None, interval=None, seeds=1, n=found.count
        )
    return SeedStatistics(
        value=found.mean,
        low=found.mean - found.deviation,
        high=found.mean + found.deviation,
        deviation=found.deviation,
        interval="folds",
        seeds=1,
        n=found.count,
    )


def notes_of(found: Iterable[SeedStatistics]) -> list[str]:
    """What the intervals are, and how many figures are not defined."""
    every = list(found)
    kinds = {one.interval for one in every}
    notes = [told for kind, told in _TOLD.items() if kind in kinds]
    if undefined := sum(one.value is None for one in every):
        notes.append(f"{undefined} of {len(every)} figures are not defined and are left out.")
    return notes


def _of_folds(evaluation: Evaluation, metric: Metric) -> list[Figure]:
    predictions = ReportPredictions.read(evaluation)
    folds = predictions.groups(FOLD) if FOLD in evaluation.report.groups else {}
    if len(folds) < 2:
        raise UsageError(
            f"--over folds needs reports of several folds, and {evaluation.ref} has "
            f"{max(len(folds), 1)}; leave --over out"
        )
    return [
        figures([metric], predictions.answers.take(rows), resamples=1)[spec_of(metric)]
        for rows in folds.values()
    ]
