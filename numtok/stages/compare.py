"""compare: compares reports on one test set by metrics over seeds, paired differences and costs.

All metrics are computed from the stored predictions, so every metric and every group is available.
Differences come from a paired bootstrap: each resample draws the same samples for both experiments,
draws seeds of each experiment, and averages the metric over them. So the intervals hold for other
test samples and other seeds. The variation between seeds is also shown by the standard deviation,
and by Student's t-test over the seeds, as is usual in papers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from numtok.errors import UsageError, unknown
from numtok.evaluation.comparison.beside_published import PublishedComparison, beside_published
from numtok.evaluation.comparison.experiments import (
    Experiment,
    experiments_of,
    group_by_experiment,
    shared_size,
)
from numtok.evaluation.comparison.requirements import Requirement, RequirementResult
from numtok.evaluation.comparison.seeds import (
    FoldStatistics,
    SeedStatistics,
    bootstrapped,
    seed_statistics,
    t_test,
)
from numtok.evaluation.comparison.tokens_to_target import Level, TokensToTarget, tokens_to_target
from numtok.evaluation.fidelity.recording import record
from numtok.evaluation.prediction_table import FOLD, TARGET, check_measures, clusters_note
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.metrics.base import METRICS, Metric, Predictions, figures, paired
from numtok.registry import spec_of
from numtok.reports import REPORT, Figure, Figures
from numtok.settings.compare import Config as Config
from numtok.store.store import Store

DEFAULT = (
    "field-skill", "r2", "signed-log-r2", "median-relative-error", "relative-error-over,limit=0.1",
)  # fmt: skip


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Metric of an experiment minus the same metric of the reference experiment. ``value`` is None
    if either metric is undefined.

    better
        Fraction of resamples in which the experiment is better than the reference.
    significant
        True if the interval excludes 0.
    p
        p-value of Student's unpaired t-test over the seeds (``seeds.t_test``); None if either
        experiment has a single seed.
    """

    value: float | None
    low: float | None
    high: float | None
    better: float | None
    significant: bool
    p: float | None


class Standing(msgspec.Struct, frozen=True):
    """Value of a metric for one experiment, and its difference from the value for the reference
    experiment (None for the reference itself)."""

    figure: SeedStatistics
    difference: Difference | None


class Baseline(msgspec.Struct, frozen=True):
    """Metrics of a baseline, which needs no trained model. ``schemes`` lists the schemes, or the
    labels of the experiments, that the metrics apply to; an empty list means all."""

    name: str
    schemes: list[str]
    figures: Figures


class SampleGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Results on one group of test samples: all samples, or the samples with one value of a
    grouping column.

    value
        Value of the grouping column; None if the group contains all samples.
    clusters
        Number of clusters that are resampled for intervals; None if rows are resampled.
    reference
        Label of the experiment that differences refer to: the chosen one, or the best by the first
        metric (the first experiment if neither higher nor lower values of that metric are better).
        None if the metric is undefined for all experiments.
    standings
        Results, keyed by experiment label and metric.
    baselines
        Baseline metrics on the group; empty if samples are grouped by a column other than the
        target.
    """

    value: str | None
    numbers: int
    clusters: int | None
    reference: str | None
    standings: dict[str, dict[str, Standing]]
    baselines: list[Baseline]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Result of ``numtok compare``.

    metrics
        For each metric, whether "higher" or "lower" is better, or "neither".
    parts
        Results on each group of test samples; a single one if samples are not grouped.
    over_folds
        Statistics over folds, keyed by experiment label and metric; empty unless the reports have
        several folds.
    measures
        Kind of predictions that ``numbers`` counts: "numbers", "labels" or "answers".
    tokens_to_target
        Training tokens that each experiment needed to reach each validation threshold.
    notes
        Notes for the user, one sentence each.
    reference
        Label of the chosen reference experiment. If None, differences are relative to the best
        experiment.
    """

    split: str
    numbers: int
    metrics: dict[str, str]
    group: str | None
    experiments: list[Experiment]
    parts: list[SampleGroup]
    over_folds: dict[str, dict[str, FoldStatistics]]
    requirements: list[RequirementResult]
    published: PublishedComparison | None
    measures: str
    tokens_to_target: list[TokensToTarget]
    notes: list[str]
    reference: str | None = None


#: Predictions of each seed, by the label of the experiment.
_Measured = Mapping[str, Sequence[ReportPredictions]]


def run(config: Config, store: Store) -> Comparison:
    """Compare reports in a store.

    Raises UsageError for an unknown reference, metric, group or table, and for a malformed
    requirement. Raises DataError if the reports have different test sets.
    """
    evaluations = [read(store.resolve(ref, {REPORT})) for ref in config.reports]
    requirements = [Requirement.parse(text) for text in config.require]
    levels = [Level.parse(text) for text in config.until]
    _check_alike(evaluations)
    metrics = _metrics(config.metrics, evaluations)
    wanted = [*metrics, *(METRICS.build(requirement.key) for requirement in requirements)]
    for evaluation in evaluations:
        check_measures(wanted, evaluation.report.measures, evaluation.ref)
    groups = group_by_experiment(evaluations)
    experiments = experiments_of(groups)
    labelled = [
        (experiment.label, group) for experiment, group in zip(experiments, groups, strict=True)
    ]
    measured = {label: [*map(ReportPredictions.read, group)] for label, group in labelled}
    first, *rest = chain.from_iterable(measured.values())
    for other in rest:
        first.check_pairs(other)
    everywhere = np.arange(len(first.answers.truth))
    rows: dict[str | None, NDArray[np.int64]] = {None: everywhere}
    if config.by is not None:
        rows = {value: where for value, where in first.groups(config.by).items()}
    reference = None if config.reference is None else _index_of(config.reference, labelled)
    notes = []
    if config.record is not None and config.against is not None:
        values = record(config.against, evaluations, Path(config.record))
        notes.append(f"Recorded {values} values of {config.against} in {config.record}.")
    return Comparison(
        split=evaluations[0].report.split,
        numbers=len(first.answers.truth),
        metrics={spec_of(metric): metric.better for metric in metrics},
        group=config.by,
        experiments=experiments,
        parts=[
            _part(
                value,
                where,
                measured,
                metrics=metrics,
                chosen=reference,
                baselines=_baselines(labelled, config.by, value),
            )
            for value, where in rows.items()
        ],
        over_folds={} if config.by is not None else _over_folds(measured, metrics),
        requirements=_requirement_results(requirements, measured),
        published=beside_published(config.against, labelled, column=config.column)
        if config.against
        else None,
        measures=first.answers.measures,
        tokens_to_target=tokens_to_target(levels, labelled, store.resolve),
        notes=[
            *notes,
            *shared_size(evaluations),
            *([] if (count := first.clusters(everywhere)) is None else [clusters_note(count)]),
            *_without_baselines(metrics, evaluations),
            *_unbeaten(evaluations),
        ],
        reference=None if reference is None else labelled[reference][0],
    )


def _index_of(query: str, labelled: Sequence[tuple[str, Sequence[Evaluation]]]) -> int:
    """Return the index of the experiment with this label, a report of this REF or name, or (if only
    one has it) this scheme. Raises UsageError if it is not found."""
    for index, (label, group) in enumerate(labelled):
        refs = [evaluation.ref for evaluation in group]
        if query == label or any(query in (ref, ref.partition("@")[0]) for ref in refs):
            return index
    schemes = [group[0].report.scheme for _, group in labelled]
    if schemes.count(query) == 1:
        return schemes.index(query)
    raise unknown("experiment of --reference", query, [label for label, _ in labelled])


def _metrics(specs: Sequence[str], evaluations: Sequence[Evaluation]) -> list[Metric]:
    """Return the chosen metrics, else the defaults that a report has, else those of the first
    report."""
    if specs:
        return list({spec_of(metric): metric for metric in map(METRICS.build, specs)}.values())
    defined = {
        name
        for evaluation in evaluations
        for name, figure in evaluation.report.metrics.items()
        if figure.value is not None
    }
    defaults = [metric for metric in map(METRICS.build, DEFAULT) if spec_of(metric) in defined]
    return defaults or [METRICS.build(name) for name in evaluations[0].report.metrics or DEFAULT]


def _without_baselines(
    metrics: Sequence[Metric], evaluations: Sequence[Evaluation]
) -> Iterator[str]:
    """Yield a note for each metric that the baselines could have but no report contains."""
    baselines = [
        metrics_of
        for evaluation in evaluations
        for metrics_of in evaluation.report.baselines.values()
    ]
    reported = set(chain.from_iterable(baselines))
    for name in (spec_of(metric) for metric in metrics if not metric.needs):
        if baselines and name not in reported:
            yield f"Baselines have no {name}. Add it to the reports: `numtok eval --metric {name}`."


def _unbeaten(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield a note for each target (or all numbers) whose best baseline no model beats."""
    reports = [evaluation.report for evaluation in evaluations]
    for target in dict.fromkeys(name for report in reports for name in report.best_baselines):
        best = [report.best_baselines.get(target) for report in reports]
        known = [each for each in best if each is not None]
        if len(known) == len(best) and all(each.better != "model" for each in known):
            names = ", ".join(dict.fromkeys(f"{each.name} ({each.metric})" for each in known))
            of_target = f" of target {target}" if target else ""
            yield f"No model beats the best baseline{of_target}: {names}."


def _check_alike(evaluations: Sequence[Evaluation]) -> None:
    """Raise UsageError if reports measure different things (numbers, labels, answers)."""
    first = evaluations[0]
    for other in evaluations[1:]:
        kinds = first.report.measures, other.report.measures
        if kinds[0] != kinds[1]:
            remedy = "Choose reports of one kind"
            if "answers" in kinds:
                remedy += " (of answers: `numtok eval --fill answers`)"
            raise UsageError(
                f"{first.ref} is a report of {kinds[0]} and {other.ref} one of {kinds[1]}; they "
                f"cannot be compared. {remedy}"
            )


def _part(
    value: str | None,
    rows: NDArray[np.int64],
    measured: _Measured,
    metrics: Sequence[Metric],
    chosen: int | None,
    baselines: list[Baseline],
) -> SampleGroup:
    by_spec, labels = {spec_of(metric): metric for metric in metrics}, list(measured)
    answers = [[seed.answers.take(rows) for seed in seeds] for seeds in measured.values()]
    spreads = [bootstrapped(metrics, seeds) for seeds in answers]
    base = _best(metrics[0], spreads) if chosen is None else chosen

    def difference(index: int, name: str) -> Difference | None:
        if base is None or base == index:
            return None
        p = t_test(spreads[index][name], spreads[base][name])
        return _difference(by_spec[name], answers[index], answers[base], p)

    standings = {
        label: {name: Standing(spreads[index][name], difference(index, name)) for name in by_spec}
        for index, label in enumerate(labels)
    }
    reference = None if base is None else labels[base]
    clusters = measured[labels[0]][0].clusters(rows)
    return SampleGroup(
        value=value,
        numbers=len(rows),
        clusters=clusters,
        reference=reference,
        standings=standings,
        baselines=baselines,
    )


def _over_folds(
    measured: _Measured, metrics: Sequence[Metric]
) -> dict[str, dict[str, FoldStatistics]]:
    first = next(iter(measured.values()))[0]
    folds = list(first.groups(FOLD).values()) if FOLD in first.group_names else []
    if len(folds) < 2:
        return {}
    statistics: dict[str, dict[str, FoldStatistics]] = {}
    for label, seeds in measured.items():
        by_fold = [
            [figures(metrics, seed.answers.take(rows), resamples=1) for seed in seeds]
            for rows in folds
        ]
        statistics[label] = {
            name: FoldStatistics.of(
                [seed_statistics([seed[name] for seed in fold]).value for fold in by_fold]
            )
            for name in map(spec_of, metrics)
        }
    return statistics


def _best(metric: Metric, spreads: Sequence[Mapping[str, SeedStatistics]]) -> int | None:
    """Return the index of the best experiment by a metric; the first one in a tie."""
    sign = {"higher": 1, "lower": -1, "neither": 0}[metric.better]
    values = {
        index: sign * value
        for index, each in enumerate(spreads)
        if (value := each[spec_of(metric)].value) is not None
    }
    return max(values, key=lambda index: values[index]) if values else None


def _difference(
    metric: Metric, first: Sequence[Predictions], second: Sequence[Predictions], p: float | None
) -> Difference:
    figure, better = paired(metric, first, second)
    return Difference(
        value=figure.value,
        low=figure.low,
        high=figure.high,
        better=better,
        significant=figure.excludes_zero,
        p=p,
    )


def _baselines(
    labelled: Sequence[tuple[str, Sequence[Evaluation]]], by: str | None, value: str | None
) -> list[Baseline]:
    """Return each baseline once if all reports agree, else once per group of schemes that agree.

    If experiments of one scheme disagree, their labels are given instead of the scheme.
    """
    reports = [group[0].report for _, group in labelled]
    baselines: list[dict[str, Figures]] = [{} for _ in reports]
    if by is None:
        baselines = [report.baselines for report in reports]
    elif by == TARGET and value is not None:
        baselines = [report.target_baselines.get(value, {}) for report in reports]
    merged = []
    for name in dict.fromkeys(name for of_report in baselines for name in of_report):
        agree: dict[bytes, list[int]] = {}
        figures: dict[bytes, Figures] = {}
        # Reports may differ in their metrics, so compare only those that all have.
        shared = set.intersection(*(set(each[name]) for each in baselines if name in each))
        for index, of_report in enumerate(baselines):
            if name in of_report:
                common = {metric: of_report[name][metric] for metric in shared}
                key = msgspec.json.encode(common, order="deterministic")
                agree.setdefault(key, []).append(index)
                figures[key] = figures.get(key, {}) | of_report[name]
        schemes = [{reports[index].scheme for index in indices} for indices in agree.values()]
        times = Counter(chain.from_iterable(schemes))
        for key, indices in agree.items():
            names = [
                labelled[index][0] if times[reports[index].scheme] > 1 else reports[index].scheme
                for index in indices
            ]
            all_agree = len(indices) == len(reports)
            merged.append(
                Baseline(name, [] if all_agree else list(dict.fromkeys(names)), figures[key])
            )
    return merged


def _requirement_results(
    requirements: Sequence[Requirement], measured: _Measured
) -> list[RequirementResult]:
    keys = dict.fromkeys(requirement.key for requirement in requirements)
    metrics = [METRICS.build(key) for key in keys]
    if not metrics:
        return []
    by_ref: dict[str, dict[str, Figure]] = {
        predictions.ref: figures(metrics, predictions.answers, resamples=1)
        for predictions in chain.from_iterable(measured.values())
    }
    return [requirement.judge(ref, by_ref[ref]) for requirement in requirements for ref in by_ref]
