"""Prints comparisons: metrics, differences, costs and gates of several experiments."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numtok.cli.output.figures import Told, amount, duration, ends, interval, number, share
from numtok.cli.output.printing import Format, Part, Sheet, counted, print_result
from numtok.cli.output.report import PERFECT, SKILL, of_some, published_parts, skill
from numtok.reports import LIMITS

if TYPE_CHECKING:
    from numtok.evaluation.comparison.experiments import Experiment, ExperimentCosts
    from numtok.evaluation.comparison.seeds import FoldStatistics, SeedStatistics
    from numtok.evaluation.comparison.tokens_to_target import TokensToTarget
    from numtok.stages.compare import Baseline, Comparison, Difference, SampleGroup, Standing

_LEAST_P = 1e-4  # that is printed as it is
#: Columns of CSV.
COLUMNS = ("kind", "label", "metric", "figure", "group", "value", "n", "low", "high", "interval",
           "deviation", "seeds", "reference", "difference", "difference_low", "difference_high",
           "better", "significant", "p")  # fmt: skip


def print_comparison(comparison: "Comparison", format: Format) -> None:
    """Print a comparison on stdout; CSV has one row per value, JSON everything."""
    records = comparison_records(comparison)
    print_result(format, comparison, COLUMNS, records, comparison_parts(comparison))


def comparison_parts(comparison: "Comparison") -> Iterator[Part]:
    """Return the tables of a comparison, and what to know of them."""
    for part in comparison.parts:
        yield from group_sheets(comparison, part)
    yield list(legend(comparison))
    yield from overall_parts(comparison)


def overall_parts(comparison: "Comparison") -> Iterator[Part]:
    """Return what does not depend on groups: settings, costs, gates, published numbers."""
    experiments = comparison.experiments
    if keys := list(experiments[0].settings):  # in which they differ and that labels do not say
        yield _sheet("settings that differ", keys, experiments, lambda one: one.settings.values())
    costs = {one.label: shown_costs(one.costs) for one in experiments}
    if any(one.invalid for one in experiments):
        for one in experiments:
            costs[one.label]["invalid"] = share(one.invalid)
    heads = costs[experiments[0].label]
    title = "costs, the mean over seeds"
    yield _sheet(title, [*heads], experiments, lambda one: costs[one.label].values())
    yield from _tokens_to_target(comparison)
    if comparison.requirements:
        rows = [
            [one.requirement, one.report, one.value, "met" if one.met else "NOT MET"]
            for one in comparison.requirements
        ]
        yield Sheet("requirements", ("requirement", "report", "figure", "verdict"), rows)
    if comparison.published is not None:
        yield from published_parts(comparison.published)


def shown_costs(costs: "ExperimentCosts") -> dict[str, Told]:
    """Return what models cost, the mean over seeds, by headings of columns."""
    return {
        "samples": amount(costs.samples),
        "tokens": amount(costs.tokens),
        "train": duration(costs.train_seconds),
        "eval": duration(costs.eval_seconds),
        "FLOPs": number(costs.flops),
        "params": amount(costs.parameters),
        "tok/num": number(costs.tokens_per_number),
    }


def _sheet(
    title: str,
    columns: Sequence[str],
    experiments: "Sequence[Experiment]",
    cells: "Callable[[Experiment], Iterable[object]]",
) -> Sheet:
    """Return a table with one row per experiment."""
    rows = [[_name(one), *cells(one)] for one in experiments]
    picks = [f"label:{one.label}" for one in experiments]
    return Sheet(title, ["experiment", *columns], rows, picks=picks)


def group_sheets(comparison: "Comparison", part: "SampleGroup") -> Iterator[Sheet]:
    """Return the metrics and baselines of all samples or of one group, and the differences."""
    metrics = list(comparison.metrics)

    def sheet(
        title: str, cell: "Callable[[Standing], object]", experiments: "Sequence[Experiment]"
    ) -> Sheet:
        def cells(one: "Experiment") -> list[object]:
            return [cell(part.standings[one.label][metric]) for metric in metrics]

        return _sheet(title, metrics, experiments, cells)

    where = f"{comparison.group} {part.value}, " if comparison.group is not None else ""
    where += (
        f"split {comparison.split}, {counted(part.numbers, comparison.measures.removesuffix('s'))}"
    )
    if part.clusters is not None:
        where += f" in {counted(part.clusters, 'cluster')}"
    everything = comparison.experiments
    own = sheet(where, lambda one: one.figure, everything)
    rows = [*own.rows, *_baselines(part, metrics)]
    yield replace(own, rows=rows, better=comparison.metrics)
    yield from _skills(comparison, part)
    if several := [one for one in everything if len(one.seeds) > 1]:
        yield sheet("standard deviation over seeds", lambda one: _deviation(one.figure), several)
    if part.value is None and (over := comparison.over_folds):
        count = over[everything[0].label][metrics[0]].count
        title = f"over {count} folds: mean +- standard deviation"
        yield _sheet(
            title, metrics, everything, lambda one: map(deviating, over[one.label].values())
        )
    others = [one for one in everything if one.label != part.reference]
    if others and part.reference is not None:
        title = f"difference from {part.reference}"
        yield sheet(title, lambda one: _apart(one.difference), others)
    if tested := [one for one in others if _tested(part.standings[one.label])]:
        title = f"p of Student's t-test over seeds, against {part.reference}"
        yield sheet(title, lambda one: _p(one.difference), tested)


def _baselines(part: "SampleGroup", metrics: Sequence[str]) -> Iterator[list[object]]:
    """Rows of what needs no model, those made of the truth apart."""
    shown = [one for one in part.baselines if any(name in one.figures for name in metrics)]
    for heading, is_limit in (("baselines:", False), ("limits, made of the truth:", True)):
        mine = [baseline for baseline in shown if (baseline.name in LIMITS) is is_limit]
        if mine:
            yield [heading, *("" for _ in metrics)]
        for one in mine:
            name = baseline_name(one) + of_some(one.figures, part.numbers)
            values = [one.figures[key].value if key in one.figures else None for key in metrics]
            yield [f"  {name}", *values]


def _skills(comparison: "Comparison", part: "SampleGroup") -> Iterator[Sheet]:
    """How much smaller the error is than that of each baseline, by the first such metric.

    Limits do not count as baselines: they are made of the truth.
    """
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

    def skills(one: "Experiment") -> list[Told]:
        own = part.standings[one.label][metric].figure.value
        return [skill(metric, own, baseline.figures[metric]) for baseline in baselines]

    title = f"skill by {metric}: {SKILL.removeprefix('skill is ')}"
    yield _sheet(title, [*map(baseline_name, baselines)], comparison.experiments, skills)


def _name(experiment: "Experiment") -> str:
    seeds = len(experiment.seeds)
    return experiment.label if seeds == 1 else f"{experiment.label} ({seeds} seeds)"


def _deviation(found: "SeedStatistics") -> float | None:
    return None if found.deviation is None else _two_digits(found.deviation)


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def deviating(found: "FoldStatistics") -> Told:
    """``0.8812 +- 0.023``"""
    if found.mean is None or found.deviation is None:
        return Told("-", found.mean)
    return Told(f"{number(found.mean)} +- {number(_two_digits(found.deviation))}", found.mean)


def _tested(standings: "Mapping[str, Standing]") -> bool:
    return any(one.difference and one.difference.p is not None for one in standings.values())


def _p(difference: "Difference | None") -> object:
    if difference is None or difference.p is None:
        return None
    return "< 0.0001" if difference.p < _LEAST_P else _two_digits(difference.p)


def _apart(difference: "Difference | None") -> Told:
    if difference is None or difference.value is None:
        return Told("-", None)
    told = interval(difference.value, difference.low, difference.high, apart=difference.significant)
    return Told(f"{told} *", told.key) if difference.significant else told


def legend(comparison: "Comparison") -> Iterator[str]:
    """Return sentences on directions, intervals and tests, and the notes of the comparison."""
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


def _tokens_to_target(comparison: "Comparison") -> Iterator[Sheet]:
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
        columns = ("experiment", "seeds", "tokens", "least", "most")
        yield Sheet("tokens until the validation split had", columns, rows)


def _reached(one: "TokensToTarget") -> tuple[str, str, str, str]:
    if one.tokens is None:
        return "not logged", "-", "-", "-"
    known = [tokens for tokens in one.tokens if tokens is not None]
    mean = "-" if one.statistics.value is None else amount(one.statistics.value)
    least, most = (amount(min(known)), amount(max(known))) if known else ("-", "-")
    return f"{len(known)} of {len(one.tokens)}", mean, least, most


def comparison_records(comparison: "Comparison") -> Iterator[dict[str, Any]]:
    """Return the rows of CSV."""
    from msgspec.structs import asdict

    row: dict[str, Any]
    for part in comparison.parts:
        where = {"group": comparison.group, "value": part.value}
        for label, standings in part.standings.items():
            for metric, one in standings.items():
                row = {"kind": "experiment", "label": label, "metric": metric} | where
                yield row | _measured(one.figure) | _differing(part.reference, one.difference)
    for label, metrics in comparison.over_folds.items():
        for metric, over in metrics.items():
            yield {"kind": "over folds", "label": label, "metric": metric} | averaged(over)
    for part in comparison.parts:
        for baseline in part.baselines:
            for metric, found in baseline.figures.items():
                if metric in comparison.metrics:
                    row = {
                        "kind": "baseline",
                        "label": baseline_name(baseline),
                        "metric": metric,
                    }
                    row |= {"group": comparison.group, "value": part.value, "n": found.n}
                    yield row | ends(found)
    for experiment in comparison.experiments:
        row = {"kind": "cost", "label": experiment.label, "seeds": len(experiment.seeds)}
        for what, value in {"invalid": experiment.invalid, **asdict(experiment.costs)}.items():
            yield row | {"metric": what.replace("_", "-"), "figure": value}
    for end in comparison.tokens_to_target:
        row = {"kind": "tokens until", "label": end.label, "metric": end.level}
        yield row | _measured(end.statistics) | {"n": None}
    for beside in comparison.published.cells if comparison.published is not None else ():
        if beside.cell is not None and comparison.published is not None:
            row = {"kind": f"printed in {comparison.published.table}", "label": beside.label}
            printed = {"figure": float(beside.cell.value), "value": beside.column}
            yield row | {"metric": beside.metric} | printed


def _measured(found: "SeedStatistics") -> dict[str, Any]:
    own = {"n": found.n, "interval": found.interval, "deviation": found.deviation}
    return ends(found) | own | {"seeds": found.seeds}


def averaged(over: "FoldStatistics") -> dict[str, Any]:
    """Return a mean over folds or data sets, for CSV."""
    return {"figure": over.mean, "n": over.count, "deviation": over.deviation}


def _differing(reference: str | None, apart: "Difference | None") -> dict[str, Any]:
    if apart is None:
        return {}
    interval = {"difference_low": apart.low, "difference_high": apart.high}
    verdict = {"better": apart.better, "significant": apart.significant, "p": apart.p}
    return {"reference": reference, "difference": apart.value} | interval | verdict


def baseline_name(baseline: "Baseline") -> str:
    """Return the name of a baseline, with the schemes that it is of."""
    return f"{baseline.name} ({', '.join(baseline.schemes)})" if baseline.schemes else baseline.name
