"""Metrics of experiments, with intervals from the bootstrap or over folds."""

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
from numtok.evaluation.prediction_table import FOLD, check_measures
from numtok.evaluation.report_files import Evaluation, ReportPredictions
from numtok.metrics.base import Metric, figures
from numtok.registry import spec_of
from numtok.reports import Figure

OVER = ("seeds", "folds")
_NOTES = {
    "bootstrap": "Error bars: 95% interval (bootstrap over test rows and seeds).",
    "share": "Error bars of a fraction of 0 or 1: 95% Wilson interval over the test rows.",
    "folds": "Error bars: mean over the folds, plus and minus one standard deviation.",
}


class Point(NamedTuple):
    """A point in a figure: its panel, its line, its x coordinate, and the metric on the y axis."""

    panel: str
    line: str
    x: float
    found: SeedStatistics


class Pair(NamedTuple):
    """A metric of two experiments on one data set."""

    data: str
    first: SeedStatistics
    second: SeedStatistics


def measured(group: Sequence[Evaluation], metric: Metric, over: str) -> SeedStatistics:
    """Return a metric of one experiment, whose seeds are the reports in ``group``.

    If ``over`` is ``seeds``, the result is the mean with a bootstrap interval over test rows and
    seeds, as in ``numtok compare``. If it is ``folds``, the result is the mean over the folds, plus
    and minus one standard deviation; the value of a fold is its mean over the seeds.

    Raises UsageError if a report has fewer than two folds or the folds of the seeds differ, and
    DataError if the seeds have different test rows.
    """
    if over == "seeds":
        for evaluation in group:
            check_measures([metric], evaluation.report.measures, evaluation.ref)
        if len(group) == 1 and (stored := group[0].report.metrics.get(spec_of(metric))):
            return seed_statistics([stored], share=metric.share)
        return bootstrapped([metric], answers_of_seeds(group))[spec_of(metric)]
    folds = [_of_folds(evaluation, metric) for evaluation in group]
    if len({len(seeds) for seeds in folds}) > 1:
        refs = ", ".join(evaluation.ref for evaluation in group)
        raise UsageError(f"--over folds needs seeds with the same folds; those of {refs} differ")
    return over_folds([seed_statistics(seeds).value for seeds in zip(*folds, strict=True)])


def over_folds(values: Sequence[float | None]) -> SeedStatistics:
    """Return the mean and standard deviation over folds; undefined if a fold has no value.

    >>> statistics = over_folds([1.0, 3.0])
    >>> statistics.value, round(statistics.low, 3), round(statistics.high, 3)
    (2.0, 0.586, 3.414)
    """
    statistics = FoldStatistics.of(values)
    if statistics.mean is None or statistics.deviation is None:
        return SeedStatistics(
            value=None,
            low=None,
            high=None,
            deviation=None,
            interval=None,
            seeds=1,
            n=statistics.count,
        )
    return SeedStatistics(
        value=statistics.mean,
        low=statistics.mean - statistics.deviation,
        high=statistics.mean + statistics.deviation,
        deviation=statistics.deviation,
        interval="folds",
        seeds=1,
        n=statistics.count,
    )


def notes_of(measures: Iterable[SeedStatistics]) -> list[str]:
    """Return notes on how intervals were computed, and on the number of undefined values."""
    every = list(measures)
    kinds = {statistics.interval for statistics in every}
    notes = [note for kind, note in _NOTES.items() if kind in kinds]
    if undefined := sum(statistics.value is None for statistics in every):
        notes.append(f"{undefined} of {len(every)} values are undefined and left out.")
    return notes


def _of_folds(evaluation: Evaluation, metric: Metric) -> list[Figure]:
    predictions = ReportPredictions.read(evaluation)
    folds = predictions.groups(FOLD) if FOLD in evaluation.report.groups else {}
    if len(folds) < 2:
        raise UsageError(
            f"--over folds needs reports of several folds, but {evaluation.ref} has "
            f"{max(len(folds), 1)}. Leave out --over"
        )
    return [
        figures([metric], predictions.answers.take(rows), resamples=1)[spec_of(metric)]
        for rows in folds.values()
    ]
