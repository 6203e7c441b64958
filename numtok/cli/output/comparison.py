"""Prints comparisons of experiments: metrics, differences, costs and requirements."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from numtok.cli.output.figures import (
    Formatted,
    amount,
    difference,
    duration,
    ends,
    metric_cells,
    number,
    p_value,
    share,
    two_digits,
)
from numtok.cli.output.printing import (
    Format,
    Part,
    Sheet,
    print_result,
    requirements_sheet,
    table_width,
)
from numtok.cli.output.report import PERFECT, SKILL, of_some, published_parts, skill
from numtok.evaluation.comparison.experiments import Experiment, ExperimentCosts, option_of
from numtok.evaluation.comparison.seeds import FoldStatistics, SeedStatistics
from numtok.evaluation.comparison.tokens_to_target import TokensToTarget
from numtok.names import counted
from numtok.reports import LIMITS
from numtok.stages.compare import Baseline, Comparison, Difference, SampleGroup, Standing

#: Columns of CSV.
COLUMNS = ("kind", "label", "metric", "figure", "group", "value", "n", "low", "high", "interval",
           "deviation", "seeds", "reference", "difference", "difference_low", "difference_high",
           "better", "significant", "p")  # fmt: skip
_MOST_SCHEMES = 3  # that the name of a baseline lists


def print_comparison(comparison: Comparison, format: Format) -> None:
    """Print a comparison on stdout. CSV has one row per value; JSON contains everything."""
    records = comparison_records(comparison)
    print_result(format, comparison, COLUMNS, records, comparison_parts(comparison, format))


def comparison_parts(comparison: Comparison, format: Format) -> Iterator[Part]:
    """Yield the tables of a comparison, and sentences that explain the tables.

    If the metrics do not fit side by side in the terminal, each metric has its own tables.
    """
    room = table_width(sys.stdout) if format is Format.TABLE else None
    for part in comparison.parts:
        yield from group_sheets(comparison, part, room)
    yield list(legend(comparison))
    yield from overall_parts(comparison)


def overall_parts(comparison: Comparison) -> Iterator[Part]:
    """Yield the tables that do not depend on groups: settings that differ, costs, requirements, and
    published values."""
    experiments = _best_first(comparison, comparison.parts[0])
    # Labels already name the scheme and the settings that tell experiments apart.
    keys = [
        key
        for key in experiments[0].settings
        if not all(f"{option_of(key)}={one.settings[key]}" in one.label for one in experiments)
    ]
    if keys:

        def settings(experiment: Experiment) -> list[str]:
            return [experiment.settings[key] for key in keys]

        headings = [option_of(key) for key in keys]
        yield _sheet("settings that differ", headings, experiments, settings)
    costs = {one.label: shown_costs(one.costs) for one in experiments}
    if any(one.invalid for one in experiments):
        for one in experiments:
            costs[one.label]["invalid"] = share(one.invalid)
    heads = costs[experiments[0].label]
    several_seeds = any(len(experiment.seeds) > 1 for experiment in experiments)
    title = "costs, mean over seeds" if several_seeds else "costs"
    yield _sheet(title, [*heads], experiments, lambda one: costs[one.label].values())
    yield from _tokens_to_target(comparison)
    yield from requirements_sheet(comparison.requirements, "report")
    if comparison.published is not None:
        yield from published_parts(comparison.published)


def shown_costs(costs: ExperimentCosts) -> dict[str, Formatted]:
    """Return the costs of an experiment (mean over seeds), keyed by column heading."""
    return {
        "examples": amount(costs.samples),
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
    experiments: Sequence[Experiment],
    cells: Callable[[Experiment], Iterable[object]],
) -> Sheet:
    """Return a table with one row per experiment."""
    rows = [[_name(one), *cells(one)] for one in experiments]
    picks = [f"label:{one.label}" for one in experiments]
    return Sheet(title, ["experiment", *columns], rows, picks=picks)


def group_sheets(
    comparison: Comparison, part: SampleGroup, room: int | None = None
) -> Iterator[Sheet]:
    """Yield the tables for one group of samples, or for all samples: metrics and baselines,
    differences from the reference, and skill.

    If the metrics do not fit side by side in ``room`` characters, each metric has its own
    tables.
    """
    metrics = list(comparison.metrics)
    experiments = _best_first(comparison, part)
    where = f"{comparison.group} {part.value}, " if comparison.group is not None else ""
    what = comparison.measures.removesuffix("s")
    where += f"split {comparison.split}, {counted(part.numbers, what)}"
    if part.clusters is not None:
        where += f" in {counted(part.clusters, 'cluster')}"
    several = [experiment for experiment in experiments if len(experiment.seeds) > 1]
    others = [one for one in experiments if one.label != part.reference]
    tested = [one for one in others if _tested(part.standings[one.label])]

    def sheets(chosen: Sequence[str]) -> Iterator[Sheet]:
        def of_each(cell: Callable[[Standing, str], object]) -> Callable[[Experiment], Any]:
            return lambda one: [cell(part.standings[one.label][key], key) for key in chosen]

        title = where if len(chosen) > 1 or len(metrics) == 1 else f"{chosen[0]}: {where}"
        yield _standings(title, comparison, part, chosen)
        if several:
            deviations = of_each(
                lambda one, _: one.figure.deviation and two_digits(one.figure.deviation)
            )
            yield _sheet("standard deviation over seeds", chosen, several, deviations)
        if others and part.reference is not None:
            apart = of_each(lambda one, metric: _apart(one.difference, metric))
            yield _sheet(f"difference from {part.reference}", chosen, others, apart)
        if tested:
            title = f"p-value of Student's t-test over seeds, against {part.reference}"
            values = of_each(lambda one, _: one.difference and p_value(one.difference.p))
            yield _sheet(title, chosen, tested, values)

    together = list(sheets(metrics))
    if room is None or len(metrics) == 1 or all(sheet.narrowest <= room for sheet in together):
        yield from together
    else:
        for metric in metrics:
            yield from sheets([metric])
    yield from _skills(comparison, part)
    if part.value is None and (over := comparison.over_folds):
        count = over[experiments[0].label][metrics[0]].count
        title = f"over {count} folds: mean ± standard deviation"
        yield _sheet(
            title, metrics, experiments, lambda one: map(deviating, over[one.label].values())
        )


def _best_first(comparison: Comparison, part: SampleGroup) -> list[Experiment]:
    """Return the experiments sorted by the first metric; experiments without it come last."""
    metric, better = next(iter(comparison.metrics.items()))
    if better == "neither":
        return list(comparison.experiments)
    sign = -1 if better == "higher" else 1

    def rank(experiment: Experiment) -> tuple[bool, float]:
        value = part.standings[experiment.label][metric].figure.value
        return value is None, 0.0 if value is None else sign * value

    return sorted(comparison.experiments, key=rank)


def _standings(
    title: str, comparison: Comparison, part: SampleGroup, metrics: Sequence[str]
) -> Sheet:
    """Return the metrics of experiments and baselines."""
    experiments = _best_first(comparison, part)
    baselines = [one for one in part.baselines if any(name in one.figures for name in metrics)]
    headings, better = [], {}
    columns = []  # of the experiments, then the baselines
    for metric in metrics:
        figures = [part.standings[one.label][metric].figure for one in experiments]
        values = [one.figures[metric].value if metric in one.figures else None for one in baselines]
        heading, cells, rest = metric_cells(metric, figures, values)
        headings.append(heading)
        better[heading] = comparison.metrics[metric]
        columns.append([*cells, *rest])
    cells_of = list(zip(*columns, strict=True))
    rows: list[list[object]] = [
        [_name(one), *cells] for one, cells in zip(experiments, cells_of, strict=False)
    ]
    for heading, is_limit in (("baselines:", False), (f"{LIMITS_TITLE}:", True)):
        below: list[list[object]] = [
            [f"  {baseline_name(one)}{of_some(one.figures, part.numbers)}", *cells]
            for one, cells in zip(baselines, cells_of[len(experiments) :], strict=True)
            if (one.name in LIMITS) is is_limit
        ]
        if below:
            rows += [[heading, *("" for _ in metrics)], *below]
    picks = [f"label:{one.label}" for one in experiments]
    return Sheet(title, ["experiment", *headings], rows, picks=picks, better=better)


LIMITS_TITLE = "limits, computed from the true values"


def _skills(comparison: Comparison, part: SampleGroup) -> Iterator[Sheet]:
    """Yield a table of the skill over each baseline, by the first metric that has a skill.

    Limits do not count as baselines: they are computed from the true values.
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

    def skills(experiment: Experiment) -> list[Formatted]:
        own = part.standings[experiment.label][metric].figure.value
        return [skill(metric, own, baseline.figures[metric]) for baseline in baselines]

    title = f"skill by {metric}: {SKILL.removeprefix('skill is ')}"
    experiments = _best_first(comparison, part)
    yield _sheet(title, [*map(baseline_name, baselines)], experiments, skills)


def _name(experiment: Experiment) -> str:
    seeds = len(experiment.seeds)
    return experiment.label if seeds == 1 else f"{experiment.label} ({seeds} seeds)"


def deviating(statistics: FoldStatistics) -> Formatted:
    """Format a mean over folds or data sets with its standard deviation: ``0.8812 ± 0.023``."""
    if statistics.mean is None or statistics.deviation is None:
        return Formatted("-", statistics.mean)
    return Formatted(
        f"{number(statistics.mean)} ± {number(two_digits(statistics.deviation))}", statistics.mean
    )


def _tested(standings: Mapping[str, Standing]) -> bool:
    return any(
        standing.difference and standing.difference.p is not None for standing in standings.values()
    )


def _apart(measured: Difference | None, metric: str) -> Formatted:
    """Format a difference, with a mark if it is significant."""
    significant = measured is not None and measured.significant
    shown = difference(measured, metric, apart=significant)
    return shown.marked(" *") if significant else shown


def legend(comparison: Comparison) -> Iterator[str]:
    """Yield sentences that explain a comparison: whether higher or lower values are better, how
    intervals and tests are computed, and other notes."""
    for direction in ("higher", "lower"):
        named = [metric for metric, better in comparison.metrics.items() if better == direction]
        if named:
            yield f"{direction.capitalize()} is better: {', '.join(named)}."
    yield from comparison.notes
    found = {one.name for part in comparison.parts for one in part.baselines}
    yield from (f"{name}: {text}." for name, text in LIMITS.items() if name in found)
    kinds = {
        standing.figure.interval
        for part in comparison.parts
        for standings in part.standings.values()
        for standing in standings.values()
    }
    if "bootstrap" in kinds:
        yield "Intervals: 95%, bootstrap over test rows and seeds."
    if "share" in kinds:
        yield "Intervals of 0% and 100%: 95%, Wilson, over test rows only."
    if len(comparison.experiments) > 1:
        reference = comparison.reference or f"the best by {next(iter(comparison.metrics))}"
        yield (
            f"Differences are relative to {reference} (95%, paired bootstrap over test rows and "
            "seeds)."
        )
        yield "* the interval excludes 0."
    if any(_tested(one) for part in comparison.parts for one in part.standings.values()):
        yield (
            "Student's t-test over seeds is unpaired, with equal variances. It tests whether a "
            "difference holds for other seeds on these test rows."
        )


def _tokens_to_target(comparison: Comparison) -> Iterator[Sheet]:
    """Yield one table of all levels, each with a heading."""
    rows = []
    for level in dict.fromkeys(target.level for target in comparison.tokens_to_target):
        rows.append([f"{level}:", "", "", "", ""])
        rows += [
            [f"  {target.label}", *_reached(target)]
            for target in comparison.tokens_to_target
            if target.level == level
        ]
    if rows:
        columns = ("experiment", "seeds", "tokens", "least", "most")
        yield Sheet("training tokens until the validation split reached", columns, rows)


def _reached(target: TokensToTarget) -> tuple[str, str, str, str]:
    if target.tokens is None:
        return "not logged", "-", "-", "-"
    known = [tokens for tokens in target.tokens if tokens is not None]
    mean = "-" if target.statistics.value is None else amount(target.statistics.value)
    least, most = (amount(min(known)), amount(max(known))) if known else ("-", "-")
    return f"{len(known)} of {len(target.tokens)}", mean, least, most


def comparison_records(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield the CSV rows of a comparison, one per value."""
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
                    row = {"kind": "baseline", "label": baseline_name(baseline), "metric": metric}
                    where = {"group": comparison.group, "value": part.value}
                    yield row | where | {"n": found.n} | ends(found)
    for experiment in comparison.experiments:
        row = {"kind": "cost", "label": experiment.label, "seeds": len(experiment.seeds)}
        for what, value in {"invalid": experiment.invalid, **asdict(experiment.costs)}.items():
            yield row | {"metric": what.replace("_", "-"), "figure": value}
    for end in comparison.tokens_to_target:
        row = {"kind": "tokens until", "label": end.label, "metric": end.level}
        yield row | _measured(end.statistics) | {"n": None}
    if (published := comparison.published) is not None:
        for pair in published.cells:
            if pair.cell is not None:
                row = {"kind": f"printed in {published.table}", "label": pair.label}
                printed = {"figure": float(pair.cell.value), "value": pair.column}
                yield row | {"metric": pair.metric} | printed


def _measured(statistics: SeedStatistics) -> dict[str, Any]:
    own = {"n": statistics.n, "interval": statistics.interval, "deviation": statistics.deviation}
    return ends(statistics) | own | {"seeds": statistics.seeds}


def averaged(over: FoldStatistics) -> dict[str, Any]:
    """Return the CSV cells for a mean over folds or data sets, with its standard deviation and
    count."""
    return {"figure": over.mean, "n": over.count, "deviation": over.deviation}


def _differing(reference: str | None, apart: Difference | None) -> dict[str, Any]:
    if apart is None:
        return {}
    interval = {"difference_low": apart.low, "difference_high": apart.high}
    verdict = {"better": apart.better, "significant": apart.significant, "p": apart.p}
    return {"reference": reference, "difference": apart.value} | interval | verdict


def baseline_name(baseline: Baseline) -> str:
    """Return the name of a baseline, with the schemes that it was computed for in parentheses. Of
    more than three, only the first two are named, because names are one column of a table."""
    if not baseline.schemes:
        return baseline.name
    named, others = baseline.schemes, ""
    if len(named) > _MOST_SCHEMES:
        named, others = named[:2], f" and {len(named) - 2} others"
    return f"{baseline.name} ({', '.join(named)}{others})"
