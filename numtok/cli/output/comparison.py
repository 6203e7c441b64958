"""What ``compare`` prints: figures, differences, costs and gates of several experiments."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from numtok.cli.output.figures import (
    amount,
    figure,
    interval,
    number,
    print_figures,
    print_lines,
    share,
    shown_costs,
)
from numtok.cli.output.printing import Format, counted, print_data
from numtok.cli.output.report import PERFECT, SKILL, of_some, print_published, skill
from numtok.records import LIMITS

if TYPE_CHECKING:
    from numtok.evaluation.comparison.experiments import Experiment
    from numtok.evaluation.comparison.seeds import FoldStatistics, SeedStatistics
    from numtok.evaluation.comparison.tokens_to_target import TokensToTarget
    from numtok.stages.compare import Baseline, Comparison, Difference, SampleGroup, Standing

_LEAST_P = 1e-4  # that is printed as it is


class ComparisonRow(NamedTuple):
    """A row of CSV, one figure: of an experiment, a baseline, a cost or a published table."""

    kind: str
    label: str
    metric: str
    figure: float | None
    group: str | None = None
    value: str | None = None
    n: int | None = None
    low: float | None = None
    high: float | None = None
    interval: str | None = None
    deviation: float | None = None
    seeds: int | None = None
    reference: str | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    better: float | None = None
    significant: bool | None = None
    p: float | None = None


def print_comparison(comparison: "Comparison", format: Format) -> None:
    """Print a comparison on stdout; CSV has one row a figure, JSON everything."""
    if print_data(format, comparison, ComparisonRow._fields, flat(comparison)):
        return
    for part in comparison.parts:
        _print_part(comparison, part, format)
    print_lines(list(_legend(comparison)))
    _print_settings(comparison, format)
    _print_costs(comparison, format)
    _print_tokens_to_target(comparison, format)
    if comparison.requirements:
        results = [
            [one.requirement, one.report, number(one.value), "met" if one.met else "NOT MET"]
            for one in comparison.requirements
        ]
        head = ("requirement", "report", "figure", "verdict")
        print_figures("requirements", head, results, format)
    if comparison.published is not None:
        print_published(comparison.published, format)


def _print_part(comparison: "Comparison", part: "SampleGroup", format: Format) -> None:
    """The figures and baselines of all test samples or of one group, and how they differ."""
    metrics = list(comparison.metrics)

    def show(
        title: str,
        cell: "Callable[[Standing], str]",
        experiments: "list[Experiment]",
        baselines: "Sequence[Baseline]" = (),
    ) -> None:
        rows = [
            [_name(one), *(cell(part.standings[one.label][metric]) for metric in metrics)]
            for one in experiments
        ]
        shown = [
            baseline for baseline in baselines if any(name in baseline.figures for name in metrics)
        ]
        for heading, is_limit in (("baselines:", False), ("limits, made of the truth:", True)):
            mine = [baseline for baseline in shown if (baseline.name in LIMITS) is is_limit]
            rows += [[heading, *("" for _ in metrics)]] if mine else []
            for baseline in mine:
                values = [
                    baseline.figures[name].value if name in baseline.figures else None
                    for name in metrics
                ]
                name = baseline_name(baseline) + of_some(baseline.figures, part.numbers)
                rows.append([f"  {name}", *map(number, values)])
        print_figures(title, ["experiment", *metrics], rows, format)

    where = f"{comparison.group} {part.value}, " if comparison.group is not None else ""
    where += (
        f"split {comparison.split}, {counted(part.numbers, comparison.measures.removesuffix('s'))}"
    )
    if part.clusters is not None:
        where += f" in {counted(part.clusters, 'cluster')}"
    everything = comparison.experiments
    show(where, lambda one: figure(one.figure), everything, part.baselines)
    _print_skill(comparison, part, format)
    if several := [one for one in everything if len(one.seeds) > 1]:
        show("standard deviation over seeds", lambda one: _deviation(one.figure), several)
    if part.value is None and (over := comparison.over_folds):
        rows = [
            [_name(one), *(deviating(over[one.label][metric]) for metric in metrics)]
            for one in everything
        ]
        count = over[everything[0].label][metrics[0]].count
        title = f"over {count} folds: mean +- standard deviation"
        print_figures(title, ["experiment", *metrics], rows, format)
    others = [one for one in everything if one.label != part.reference]
    if others and part.reference is not None:
        show(f"difference from {part.reference}", lambda one: _apart(one.difference), others)
    if tested := [one for one in others if _tested(part.standings[one.label])]:
        title = f"p of Student's t-test over seeds, against {part.reference}"
        show(title, lambda one: _p(one.difference), tested)


def _print_skill(comparison: "Comparison", part: "SampleGroup", format: Format) -> None:
    """How much less the error is than that of what needs no model, by the first such metric; what
    knows the truth is nothing to be better than."""
    metric = next((name for name in comparison.metrics if name in PERFECT), "")
    baselines = [
        one
        for one in part.baselines
        if metric in one.figures
        and one.name not in LIMITS
        and not of_some(one.figures, part.numbers)  # those may be easier, or harder
    ]
    if not baselines:
        return
    rows = []
    for experiment in comparison.experiments:
        own = part.standings[experiment.label][metric].figure.value
        skills = (skill(metric, own, baseline.figures[metric]) for baseline in baselines)
        rows.append([_name(experiment), *skills])
    title = f"skill by {metric}: {SKILL.removeprefix('skill is ')}"
    print_figures(title, ["experiment", *map(baseline_name, baselines)], rows, format)


def _name(experiment: "Experiment") -> str:
    seeds = len(experiment.seeds)
    return experiment.label if seeds == 1 else f"{experiment.label} ({seeds} seeds)"


def _deviation(found: "SeedStatistics") -> str:
    return "-" if found.deviation is None else number(float(f"{found.deviation:.2g}"))


def deviating(found: "FoldStatistics") -> str:
    """``0.8812 +- 0.023``"""
    if found.mean is None or found.deviation is None:
        return "-"
    return f"{number(found.mean)} +- {number(float(f'{found.deviation:.2g}'))}"


def _tested(standings: "Mapping[str, Standing]") -> bool:
    return any(one.difference and one.difference.p is not None for one in standings.values())


def _p(difference: "Difference | None") -> str:
    if difference is None or difference.p is None:
        return "-"
    return "< 0.0001" if difference.p < _LEAST_P else number(float(f"{difference.p:.2g}"))


def _apart(difference: "Difference | None") -> str:
    if difference is None or difference.value is None:
        return "-"
    text = interval(difference.value, difference.low, difference.high, apart=difference.significant)
    return f"{text} *" if difference.significant else text


def _legend(comparison: "Comparison") -> Iterator[str]:
    directions = (f"{metric} {better}" for metric, better in comparison.metrics.items())
    yield f"Better is: {', '.join(directions)}."
    yield from comparison.notes
    spreads = [
        standing.figure
        for part in comparison.parts
        for standings in part.standings.values()
        for standing in standings.values()
    ]
    kinds = {spread.interval for spread in spreads}
    if "bootstrap" in kinds:
        yield "Intervals: 95%, bootstrap over the samples and the seeds."
    if "share" in kinds:
        yield "Intervals of a fraction of 0 or 1: 95%, Wilson's, over the samples; not over seeds."
    if len(comparison.experiments) > 1:
        best = f"the best by {next(iter(comparison.metrics))}"
        yield (
            f"Differences are from {comparison.reference or best}: 95%, paired "
            "bootstrap over the samples, the metric averaged over these seeds; * marks an interval "
            "without 0: other samples would hardly turn it, other seeds might."
        )
    if any(_tested(one) for part in comparison.parts for one in part.standings.values()):
        yield (
            "Student's t-test takes seeds as samples, unpaired and of equal variances: how sure a "
            "difference is for other seeds on these samples."
        )


def _print_settings(comparison: "Comparison", format: Format) -> None:
    """The settings in which experiments differ and that their labels do not say."""
    keys = list(comparison.experiments[0].settings)
    if keys:
        rows = [[_name(one), *one.settings.values()] for one in comparison.experiments]
        print_figures("settings that differ", ["experiment", *keys], rows, format)


def _print_costs(comparison: "Comparison", format: Format) -> None:
    costs = [shown_costs(one.costs) for one in comparison.experiments]
    if any(one.invalid for one in comparison.experiments):
        for shown, one in zip(costs, comparison.experiments, strict=True):
            shown["invalid"] = share(one.invalid)
    rows = [
        [_name(one), *shown.values()]
        for one, shown in zip(comparison.experiments, costs, strict=True)
    ]
    print_figures("costs, the mean over seeds", ["experiment", *costs[0]], rows, format)


def _print_tokens_to_target(comparison: "Comparison", format: Format) -> None:
    """One table of all levels, each under a heading."""
    rows = []
    for level in dict.fromkeys(one.level for one in comparison.tokens_to_target):
        rows.append([f"{level}:", "", "", "", ""])
        rows += [
            [f"  {one.label}", *_reached(one)]
            for one in comparison.tokens_to_target
            if one.level == level
        ]
    if rows:
        head = ("experiment", "seeds", "tokens", "least", "most")
        print_figures("tokens until the validation split had", head, rows, format)


def _reached(one: "TokensToTarget") -> tuple[str, str, str, str]:
    if one.tokens is None:
        return "not logged", "-", "-", "-"
    known = [tokens for tokens in one.tokens if tokens is not None]
    mean = "-" if one.statistics.value is None else amount(one.statistics.value)
    least, most = (amount(min(known)), amount(max(known))) if known else ("-", "-")
    return f"{len(known)} of {len(one.tokens)}", mean, least, most


def flat(comparison: "Comparison") -> Iterator[ComparisonRow]:
    """The rows of CSV."""
    from msgspec.structs import asdict

    for part in comparison.parts:
        for label, standings in part.standings.items():
            for metric, standing in standings.items():
                yield _standing(comparison, part, label, metric, standing)
    for label, metrics in comparison.over_folds.items():
        for metric, over in metrics.items():
            yield ComparisonRow(
                "over folds", label, metric, over.mean, n=over.count, deviation=over.deviation
            )
    for part in comparison.parts:
        for baseline in part.baselines:
            for metric, one in baseline.figures.items():
                if metric in comparison.metrics:
                    where = comparison.group, part.value
                    figures = one.value, *where, one.n, one.low, one.high
                    yield ComparisonRow("baseline", baseline_name(baseline), metric, *figures)
    for experiment in comparison.experiments:
        seeds = len(experiment.seeds)
        yield ComparisonRow("cost", experiment.label, "invalid", experiment.invalid, seeds=seeds)
        for what, value in asdict(experiment.costs).items():
            yield ComparisonRow(
                "cost", experiment.label, what.replace("_", "-"), value, seeds=seeds
            )
    for end in comparison.tokens_to_target:
        found = end.statistics
        yield ComparisonRow(
            *("tokens until", end.label, end.level, found.value),
            low=found.low,
            high=found.high,
            interval=found.interval,
            deviation=found.deviation,
            seeds=found.seeds,
        )
    if comparison.published is not None:
        kind = f"printed in {comparison.published.table}"
        for beside in comparison.published.cells:
            if beside.cell is not None:
                printed = float(beside.cell.value)
                yield ComparisonRow(kind, beside.label, beside.metric, printed, value=beside.column)


def _standing(
    comparison: "Comparison", part: "SampleGroup", label: str, metric: str, standing: "Standing"
) -> ComparisonRow:
    found, apart = standing.figure, standing.difference
    row = ComparisonRow(
        kind="experiment",
        label=label,
        metric=metric,
        figure=found.value,
        group=comparison.group,
        value=part.value,
        n=found.n,
        low=found.low,
        high=found.high,
        interval=found.interval,
        deviation=found.deviation,
        seeds=found.seeds,
    )
    if apart is None:
        return row
    return row._replace(
        reference=part.reference,
        difference=apart.value,
        difference_low=apart.low,
        difference_high=apart.high,
        better=apart.better,
        significant=apart.significant,
        p=apart.p,
    )


def baseline_name(baseline: "Baseline") -> str:
    """What needs no model, and of which schemes."""
    return f"{baseline.name} ({', '.join(baseline.schemes)})" if baseline.schemes else baseline.name
