"""Several reports on one test set: figures over seeds, paired differences, costs, gates.

All figures are computed from the predictions, so any metric and any group can
be asked for. Differences are those of a paired bootstrap: each resample draws
the same samples for both experiments and takes the mean of the metric over the
seeds of each. It says how sure a difference is for these trained models on
other test samples; how much seeds differ is said by the standard deviation, and
by Student's t-test over the seeds, which papers print.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

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
    LEVEL,
    FoldStatistics,
    SeedStatistics,
    bootstrapped,
    seed_statistics,
    t_test,
)
from numtok.evaluation.comparison.tokens_to_target import Level, TokensToTarget, tokens_to_target
from numtok.evaluation.report_files import (
    FOLD,
    TARGET,
    Evaluation,
    ReportPredictions,
    check_measures,
    clusters_note,
    read,
)
from numtok.metrics.base import METRICS, Metric, Predictions, figures, paired
from numtok.registry import spec_of
from numtok.reports import REPORT, Figure, Figures
from numtok.settings.compare import Config as Config
from numtok.store.store import Store

DEFAULT = (
    "slot-skill", "r2", "signed-log-r2", "median-relative-error", "relative-error-over,limit=0.1",
)  # fmt: skip


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of an experiment minus that of the reference, None where one is undefined.

    ``better`` is the share of resamples in which the experiment is the better one;
    ``significant`` says that the interval does not hold 0. ``p`` is that of Student's t-test over
    the seeds, which are not paired (``seeds.t_test``); None where one of the two has one seed.
    """

    value: float | None
    low: float | None
    high: float | None
    better: float | None
    significant: bool
    p: float | None


class Standing(msgspec.Struct, frozen=True):
    """One metric of one experiment; ``difference`` is None for the reference itself."""

    figure: SeedStatistics
    difference: Difference | None


class Baseline(msgspec.Struct, frozen=True):
    """Figures that need no model; ``schemes`` they hold for, none where they hold for all."""

    name: str
    schemes: list[str]
    figures: Figures


class SampleGroup(msgspec.Struct, frozen=True, kw_only=True):
    """All test samples (``value`` is None), or those with one value of the group.

    ``standings`` are by label and metric. ``reference`` is the label of the
    experiment that differences are from: the one asked for, or the best by the first metric (the
    first one, where neither direction is better); None where the metric is undefined for all. Of
    groups ``baselines`` are those of targets alone.
    ``clusters`` is how many intervals are over, None where rows stand for themselves.
    """

    value: str | None
    numbers: int
    clusters: int | None
    reference: str | None
    standings: dict[str, dict[str, Standing]]
    baselines: list[Baseline]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What ``compare`` found; ``metrics`` says of each whether "higher" or "lower" is better,
    ``measures`` what there are so many of: "numbers", "labels" or "answers".

    ``over_folds`` is by label and metric, empty where the reports have no several folds.
    ``tokens_to_target`` has each level for each experiment. ``reference`` is the label of the
    experiment that differences were asked for from; None: they are from the best. ``notes`` are
    what a reader must know: one sentence each.
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


#: By the label of an experiment, the predictions of each of its seeds.
_Measured = Mapping[str, Sequence[ReportPredictions]]


def run(config: Config, store: Store) -> Comparison:
    """Compare reports of a store.

    Raises UsageError for an unknown reference, metric, group, table or a
    malformed requirement, DataError for different test sets.
    """
    evaluations = [read(store.resolve(ref, {REPORT})) for ref in config.reports]
    requirements = [Requirement.parse(text) for text in config.require]
    levels = [Level.parse(text) for text in config.until]
    _check_alike(evaluations)
    metrics = _metrics(config.metrics, evaluations)
    wanted = [*metrics, *(METRICS.build(one.key) for one in requirements)]
    for evaluation in evaluations:
        check_measures(wanted, evaluation.report.measures, evaluation.ref)
    groups = group_by_experiment(evaluations)
    experiments = experiments_of(groups)
    labelled = [(one.label, group) for one, group in zip(experiments, groups, strict=True)]
    measured = {label: [*map(ReportPredictions.read, group)] for label, group in labelled}
    first, *others = chain.from_iterable(measured.values())
    for other in others:
        first.check_pairs(other)
    everywhere = np.arange(len(first.answers.truth))
    rows: dict[str | None, NDArray[np.int64]] = {None: everywhere}
    if config.by is not None:
        rows = {value: where for value, where in first.groups(config.by).items()}
    reference = None if config.reference is None else _place(config.reference, labelled)
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
            *shared_size(evaluations),
            *([] if (count := first.clusters(everywhere)) is None else [clusters_note(count)]),
            *_without_baselines(metrics, evaluations),
        ],
        reference=None if reference is None else labelled[reference][0],
    )


def _place(given: str, labelled: Sequence[tuple[str, Sequence[Evaluation]]]) -> int:
    """Which experiment has this label, or a report with this REF or name, or alone has this scheme;
    UsageError for none."""
    for index, (label, group) in enumerate(labelled):
        if given == label or any(given in (one.ref, one.ref.partition("@")[0]) for one in group):
            return index
    schemes = [group[0].report.scheme for _, group in labelled]
    if schemes.count(given) == 1:
        return schemes.index(given)
    raise unknown("experiment of --reference", given, [label for label, _ in labelled])


def _metrics(specs: Sequence[str], evaluations: Sequence[Evaluation]) -> list[Metric]:
    """Those asked for; else the usual ones that a report has; else those of the first report."""
    if specs:
        return list({spec_of(metric): metric for metric in map(METRICS.build, specs)}.values())
    defined = {
        name
        for evaluation in evaluations
        for name, figure in evaluation.report.metrics.items()
        if figure.value is not None
    }
    usual = [metric for metric in map(METRICS.build, DEFAULT) if spec_of(metric) in defined]
    return usual or [METRICS.build(name) for name in evaluations[0].report.metrics or DEFAULT]


def _without_baselines(
    metrics: Sequence[Metric], evaluations: Sequence[Evaluation]
) -> Iterator[str]:
    """Which metrics the baselines could have, and no report has."""
    baselines = [figures for one in evaluations for figures in one.report.baselines.values()]
    known = set(chain.from_iterable(baselines))
    for name in (spec_of(metric) for metric in metrics if not metric.needs):
        if baselines and name not in known:
            yield f"Baselines have no {name}. Add it to the reports: `numtok eval --metric {name}`."


def _check_alike(evaluations: Sequence[Evaluation]) -> None:
    """UsageError where reports are of different things, which no metric measures together."""
    first = evaluations[0]
    for other in evaluations[1:]:
        kinds = first.report.measures, other.report.measures
        if kinds[0] != kinds[1]:
            remedy = "name reports of one kind"
            if "answers" in kinds:
                remedy += " (`numtok eval --fill answers` makes those of answers)"
            raise UsageError(
                f"{first.ref} is of {kinds[0]} and {other.ref} of {kinds[1]}, which do not "
                f"compare; {remedy}"
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
    answers = [[one.answers.take(rows) for one in each] for each in measured.values()]
    spreads = [bootstrapped(metrics, seeds) for seeds in answers]
    base = _best(metrics[0], spreads) if chosen is None else chosen

    def apart(index: int, name: str) -> Difference | None:
        if base is None or base == index:
            return None
        p = t_test(spreads[index][name], spreads[base][name])
        return _apart(by_spec[name], answers[index], answers[base], p)

    standings = {
        label: {name: Standing(spreads[index][name], apart(index, name)) for name in by_spec}
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
    found: dict[str, dict[str, FoldStatistics]] = {}
    for label, each in measured.items():
        seeds = [
            [figures(metrics, one.answers.take(rows), resamples=1) for one in each]
            for rows in folds
        ]
        found[label] = {
            name: FoldStatistics.of(
                [seed_statistics([one[name] for one in fold]).value for fold in seeds]
            )
            for name in map(spec_of, metrics)
        }
    return found


def _best(metric: Metric, spreads: Sequence[Mapping[str, SeedStatistics]]) -> int | None:
    """The first of the experiments with the best figure."""
    sign = {"higher": 1, "lower": -1, "neither": 0}[metric.better]
    values = {
        index: sign * value
        for index, each in enumerate(spreads)
        if (value := each[spec_of(metric)].value) is not None
    }
    return max(values, key=lambda index: values[index]) if values else None


def _apart(
    metric: Metric, first: Sequence[Predictions], second: Sequence[Predictions], p: float | None
) -> Difference:
    figure, better = paired(metric, first, second, level=LEVEL)
    low, high = figure.low, figure.high
    significant = low is not None and high is not None and (low > 0 or high < 0)
    return Difference(
        value=figure.value, low=low, high=high, better=better, significant=significant, p=p
    )


def _baselines(
    labelled: Sequence[tuple[str, Sequence[Evaluation]]], by: str | None, value: str | None
) -> list[Baseline]:
    """Each baseline once where all reports agree, else once for the schemes that agree; where those
    of one scheme do not, they go by the labels of the experiments."""
    reports = [group[0].report for _, group in labelled]
    baselines: list[dict[str, Figures]] = [{} for _ in reports]
    if by is None:
        baselines = [report.baselines for report in reports]
    elif by == TARGET and value is not None:
        baselines = [report.target_baselines.get(value, {}) for report in reports]
    found = []
    for name in dict.fromkeys(name for one in baselines for name in one):
        agree: dict[bytes, list[int]] = {}
        figures: dict[bytes, Figures] = {}
        # Some may have more metrics than others, where more were asked for.
        shared = set.intersection(*(set(one[name]) for one in baselines if name in one))
        for index, one in enumerate(baselines):
            if name in one:
                told = {metric: one[name][metric] for metric in shared}
                key = msgspec.json.encode(told, order="deterministic")
                agree.setdefault(key, []).append(index)
                figures[key] = figures.get(key, {}) | one[name]
        schemes = [{reports[index].scheme for index in those} for those in agree.values()]
        times = Counter(scheme for some in schemes for scheme in some)
        for key, those in agree.items():
            names = [
                labelled[index][0] if times[reports[index].scheme] > 1 else reports[index].scheme
                for index in those
            ]
            everyone = len(those) == len(reports)
            found.append(
                Baseline(name, [] if everyone else list(dict.fromkeys(names)), figures[key])
            )
    return found


def _requirement_results(
    requirements: Sequence[Requirement], measured: _Measured
) -> list[RequirementResult]:
    metrics = [METRICS.build(name) for name in dict.fromkeys(one.key for one in requirements)]
    if not metrics:
        return []
    found: dict[str, dict[str, Figure]] = {
        one.ref: figures(metrics, one.answers, resamples=1)
        for one in chain.from_iterable(measured.values())
    }
    return [one.judge(ref, found[ref]) for one in requirements for ref in found]
