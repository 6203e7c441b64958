"""The page of a comparison, and its sections, which pages of many runs have as well: the
leaderboard, each metric, cost against figure, learning curves, and errors by magnitude."""

from collections.abc import Iterator, Mapping, Sequence

from numtok.analysis.pages.calibration import coverage_panel
from numtok.analysis.pages.costs import CostPoint, cost_panel
from numtok.analysis.pages.learning import Over, learning_curves, learning_panel
from numtok.analysis.pages.numbers import lined_up, size_panel
from numtok.cli.output.figures import amount, duration, figure, number, share
from numtok.cli.output.pages.page import Page, PageCell, PageChart, PageTable, Part, Section
from numtok.evaluation.comparison.experiments import Experiment
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.reports import REPORT
from numtok.stages.compare import Comparison, SampleGroup
from numtok.store.artifact import Resolve

_METRICS = 4  # that have a chart of their own


def compare_page(comparison: Comparison, resolve: Resolve) -> Page:
    """What the page of a comparison holds."""
    count = len(comparison.experiments)
    told = f"{comparison.numbers:,} {comparison.measures} of the {comparison.split} split"
    return Page(
        kicker="numtok compare",
        title=f"{count} ways to read and write numbers, on {told}",
        lead=(
            "All of them predict the same rows. An interval of several seeds is Student's, of "
            "their mean; of one seed it is the bootstrap's, and says nothing of other seeds."
        ),
        headlines=[],
        sections=list(comparison_sections(comparison, resolve)),
        notes=comparison.notes,
        made_by="numtok compare REPORT... --html FILE",
        legend=list(colours_of(comparison).items()),
    )


def colours_of(comparison: Comparison) -> dict[str, int]:
    """A place in the palette for each experiment, by its label."""
    return {one.label: place for place, one in enumerate(comparison.experiments)}


def comparison_sections(
    comparison: Comparison, resolve: Resolve, name: str = "all"
) -> Iterator[Section]:
    """The sections of one comparison; ``name`` sets those of several on one page apart."""
    colours = colours_of(comparison)
    evaluations = {
        one.label: [read(resolve(ref, {REPORT})) for ref in one.reports]
        for one in comparison.experiments
    }
    for place, part in enumerate(comparison.parts):
        where = "" if part.value is None else f" ({comparison.group} {part.value})"
        own = f"{name}-{place}"
        yield Section(f"{own}-board", f"Leaderboard{where}", "", [leaderboard(comparison, part)])
        charts = list(_metric_charts(comparison, part, colours, own))
        yield Section(
            f"{own}-metrics", f"Each metric{where}", "One dot an experiment, with its interval.",
            charts,
        )  # fmt: skip
    if comparison.parts[0].value is None:
        costs = list(_cost_charts(comparison, comparison.parts[0], colours, name))
        yield Section(f"{name}-cost", "Cost against figure", "", costs)
    learning = list(_learning(evaluations, colours, resolve, name))
    if learning:
        yield Section(f"{name}-learning", "How they learnt", "One line a seed.", learning)
    if comparison.measures == "numbers":
        yield Section(f"{name}-errors", "Errors", "", list(_errors(evaluations, colours, name)))


def leaderboard(comparison: Comparison, part: SampleGroup) -> PageTable:
    """Every experiment with its figures, costs and differences, the best first."""
    first, better = next(iter(comparison.metrics.items()))

    def rank(one: Experiment) -> float:
        value = part.standings[one.label][first].figure.value
        return float("inf") if value is None else -value if better == "higher" else value

    metrics = list(comparison.metrics)
    rows: list[Sequence[PageCell | str]] = []
    ordered = sorted(comparison.experiments, key=rank)
    for one in ordered:
        standings = part.standings[one.label]
        apart = standings[first].difference
        told = "the reference" if apart is None else figure_of(apart.value, apart.low, apart.high)
        if apart is not None and not apart.significant:
            told += " (a tie)"
        costs = one.costs
        cells = [
            PageCell(figure(standings[key].figure), standings[key].figure.value) for key in metrics
        ]
        rows.append(
            [
                one.label,
                *cells,
                PageCell(told, None if apart is None else apart.value),
                PageCell(share(one.invalid), one.invalid),
                PageCell(str(len(one.seeds)), len(one.seeds)),
                PageCell(number(costs.tokens_per_number), costs.tokens_per_number),
                PageCell(amount(costs.parameters), costs.parameters),
                PageCell(duration(costs.train_seconds), costs.train_seconds),
                PageCell(duration(costs.eval_seconds), costs.eval_seconds),
            ]
        )
    columns = ["experiment", *metrics, f"{first}: difference", "invalid", "seeds"]
    columns += ["tokens a number", "parameters", "training", "prediction"]
    note = f"Differences are paired, from {part.reference}; a tie is one whose interval holds 0."
    picks = [f"label:{one.label}" for one in ordered]
    return PageTable("Experiments, the best first", columns, rows, picks, note)


def figure_of(value: float | None, low: float | None, high: float | None) -> str:
    """A value with its interval."""
    from numtok.cli.output.figures import interval

    return "-" if value is None else interval(value, low, high, apart=True)


def _metric_charts(
    comparison: Comparison, part: SampleGroup, colours: Mapping[str, int], name: str
) -> Iterator[PageChart]:
    for place, (metric, better) in enumerate(list(comparison.metrics.items())[:_METRICS]):
        found = {label: one[metric].figure for label, one in part.standings.items()}
        ends = {label: (one.value, one.low, one.high) for label, one in found.items()}
        if (panel := lined_up(ends, metric, "label", colours)) is not None:
            told = "" if better == "neither" else f"{better.capitalize()} is better."
            yield PageChart(f"{name}-metric-{place}", metric, told, panel)


def _cost_charts(
    comparison: Comparison, part: SampleGroup, colours: Mapping[str, int], name: str
) -> Iterator[PageChart]:
    metric, better = next(iter(comparison.metrics.items()))
    ways = (("train_seconds", "seconds of training"), ("tokens_per_number", "tokens a number"))
    for key, words in ways:
        points = []
        for one in comparison.experiments:
            cost, found = getattr(one.costs, key), part.standings[one.label][metric].figure
            if cost is not None and found.value is not None:
                points.append(CostPoint(one.label, cost, found.value, found.low, found.high))
        panel = cost_panel(points, (words, metric), colours, higher=better != "lower")
        if panel is not None:
            text = "On the grey line nobody is both cheaper and better (the Pareto front)."
            yield PageChart(f"{name}-{key}", f"{metric} over {words}", text, panel)


def _learning(
    evaluations: Mapping[str, Sequence[Evaluation]],
    colours: Mapping[str, int],
    resolve: Resolve,
    name: str,
) -> Iterator[Part]:
    curves = learning_curves(list(evaluations.items()), resolve)
    ways: tuple[tuple[Over, str], ...] = (("seconds", "time"), ("samples", "rows read"))
    for over, words in ways:
        if (panel := learning_panel(curves, colours, over)) is not None:
            text = "Losses of schemes are of other tokens: compare shapes, not heights."
            yield PageChart(f"{name}-{over}", f"Loss over {words}", text, panel)


def _errors(
    evaluations: Mapping[str, Sequence[Evaluation]], colours: Mapping[str, int], name: str
) -> Iterator[Part]:
    """Of the first seed of each."""
    answers = {label: ReportPredictions.read(one[0]).answers for label, one in evaluations.items()}
    if (sizes := size_panel(answers, colours)) is not None:
        text = "Median relative error with quartiles, for each magnitude; the first seed of each."
        yield PageChart(f"{name}-size", "Error by magnitude", text, sizes.panel, height=360)
    if (panel := coverage_panel(answers, colours)) is not None:
        text = "Below the grey line a model is too sure, above it too cautious; the first seeds."
        yield PageChart(
            f"{name}-coverage", "How many truths intervals hold", text, panel, height=360
        )
