"""The page of a comparison, and its sections, which pages of many runs have as well: the
leaderboard, each metric, cost against figure, learning curves, and errors by magnitude and slot."""

from collections.abc import Iterator

from numtok.analysis.panels.calibration import coverage_panel
from numtok.analysis.panels.costs import COSTS, CostPoint, cost_panel, pareto_front
from numtok.analysis.panels.learning import Over, learning_curves, learning_panel
from numtok.analysis.panels.numbers import beside_panel, lined_up
from numtok.cli.output.pages.compared import Compared
from numtok.cli.output.pages.differences import differences_section
from numtok.cli.output.pages.leaderboard import leaderboard
from numtok.cli.output.pages.page import Page, PageChart, Section
from numtok.cli.output.pages.parts import largest_slots
from numtok.stages.compare import Comparison, SampleGroup
from numtok.store.artifact import Resolve

_METRICS = 4  # that have a chart of their own
_PARTS = 6  # groups of samples, likewise
_COSTS = ("train_seconds", "samples", "tokens_per_number")  # likewise
_ASIDE = 11  # pixels that an experiment takes in a slot


def compare_page(comparison: Comparison, resolve: Resolve) -> Page:
    """What the page of a comparison holds."""
    count = len(comparison.experiments)
    told = f"{comparison.numbers:,} {comparison.measures} of the {comparison.split} split"
    compared = Compared.read(comparison, resolve)
    return Page(
        kicker="numtok compare",
        title=f"{count} ways to read and write numbers, on {told}",
        lead=(
            "All of them predict the same rows. An interval of several seeds is Student's, of "
            "their mean; of one seed it is the bootstrap's, and says nothing of other seeds."
        ),
        headlines=[],
        sections=[
            *comparison_sections(compared, resolve),
            *differences_section([compared], resolve),
        ],
        facts=[(one.label, ", ".join(one.reports)) for one in comparison.experiments],
        notes=comparison.notes,
        made_by="numtok compare REPORT... --html FILE",
        legend=list(compared.colours.items()),
    )


def comparison_sections(compared: Compared, resolve: Resolve) -> Iterator[Section]:
    """The sections of one comparison, but for its rows."""
    comparison = compared.comparison
    boards = board_sections(comparison, compared.name)
    for place, (part, board) in enumerate(zip(comparison.parts, boards, strict=True)):
        yield board
        if place >= _PARTS:
            continue
        where = "" if part.value is None else f" ({comparison.group} {part.value})"
        own = f"{compared.name}-{place}"
        charts = list(_metric_charts(compared, part, own))
        text = "One dot an experiment, with its interval."
        if place + 1 == _PARTS < (count := len(comparison.parts)):
            text += f" Of {count} values of {comparison.group} the first {_PARTS} have charts."
        yield Section(f"{own}-metrics", f"Each metric{where}", text, charts)
    a_line = "One line a seed, and of tables one a fold."
    groups = (
        ("cost", "Cost against figure", "", _cost_charts(compared, comparison.parts[0])),
        ("learning", "How they learnt", a_line, _learning(compared, resolve)),
        ("errors", "Errors", "Of the first seed of each experiment.", _errors(compared)),
    )
    for name, heading, text, found in groups:
        if charts := list(found):
            yield Section(f"{compared.name}-{name}", heading, text, charts)


def board_sections(comparison: Comparison, name: str) -> Iterator[Section]:
    """The tables of a comparison, of each group of samples."""
    for place, part in enumerate(comparison.parts):
        where = "" if part.value is None else f" ({comparison.group} {part.value})"
        tables = list(leaderboard(comparison, part))
        yield Section(f"{name}-{place}-board", f"Leaderboard{where}", "", tables)


def _metric_charts(compared: Compared, part: SampleGroup, name: str) -> Iterator[PageChart]:
    metrics = list(compared.comparison.metrics.items())[:_METRICS]
    for place, (metric, better) in enumerate(metrics):
        found = {label: one[metric].figure for label, one in part.standings.items()}
        ends = {label: (one.value, one.low, one.high) for label, one in found.items()}
        if (panel := lined_up(ends, metric, "label", compared.colours)) is not None:
            told = "" if better == "neither" else f"{better.capitalize()} is better."
            yield PageChart(f"{name}-metric-{place}", metric, told, panel)


def _cost_charts(compared: Compared, part: SampleGroup) -> Iterator[PageChart]:
    """Of all samples; none where they are in groups."""
    metric, better = next(iter(compared.comparison.metrics.items()))
    if part.value is not None:
        return
    for key in _COSTS:
        points = []
        for one in compared.comparison.experiments:
            cost, found = getattr(one.costs, key), part.standings[one.label][metric].figure
            if cost is not None and found.value is not None:
                points.append(CostPoint(one.label, cost, found.value, found.low, found.high))
        costs = {point.cost for point in points}
        if len(costs) < 2 or min(costs) <= 0:
            continue  # it sets nothing apart, or is nothing that all have
        words = COSTS[key], metric
        panel = cost_panel(points, words, compared.colours, higher=better != "lower")
        if panel is not None:
            text = "On the grey line nobody is both cheaper and better (the Pareto front)."
            if len(pareto_front(points, higher=better != "lower")) == 1:
                text = "One of them is the cheapest and the best."
            name, heading = f"{compared.name}-cost-{key}", f"{metric} over {COSTS[key]}"
            yield PageChart(name, heading, text, panel)


def _learning(compared: Compared, resolve: Resolve) -> Iterator[PageChart]:
    curves = learning_curves(list(compared.evaluations.items()), resolve)
    ways: tuple[tuple[Over, str], ...] = (("seconds", "time"), ("samples", "rows read"))
    for over, words in ways:
        if (panel := learning_panel(curves, compared.colours, over)) is not None:
            text = "Losses of schemes are of other tokens: compare shapes, not heights."
            yield PageChart(f"{compared.name}-loss-{over}", f"Loss over {words}", text, panel)


def _errors(compared: Compared) -> Iterator[PageChart]:
    if not compared.predictions:
        return
    name, colours = compared.name, compared.colours
    answers = {label: one.answers for label, one in compared.predictions.items()}
    if compared.sizes is not None:
        text = "Median relative error with quartiles, for each magnitude."
        yield PageChart(
            f"{name}-size", "Error by magnitude", text, compared.sizes.panel, height=360
        )
    if (panel := coverage_panel(answers, colours)) is not None:
        text = "Below the grey line a model is too sure, above it too cautious."
        yield PageChart(
            f"{name}-coverage", "How many truths intervals hold", text, panel, height=360
        )
    yield from _by_slot(compared)


def _by_slot(compared: Compared) -> Iterator[PageChart]:
    """The first metric of each slot, where there are several."""
    metric = next(iter(compared.comparison.metrics))
    told, figures = "", {}
    for label, one in compared.firsts.items():
        slots = one.report.by_target
        found = {slot: every[metric] for slot, every in slots.items() if metric in every}
        if len(found) > 1:
            figures[label], told = largest_slots(found)
    if (panel := beside_panel(figures, metric, compared.colours)) is not None:
        text = f"{metric} of each slot with its 95% bootstrap interval.{told}"
        height = 64 + len(panel.y.names) * max(26, _ASIDE * len(figures))
        yield PageChart(f"{compared.name}-slots", "By slot", text, panel, wide=True, height=height)
