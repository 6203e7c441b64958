"""HTML page of a comparison. Other pages also use its sections: the leaderboard, each metric, cost
against quality, learning curves, and errors by magnitude and field."""

from collections.abc import Iterator

from numtok.analysis.panels.costs import HIGHER
from numtok.analysis.panels.numbers import lined_up
from numtok.cli.output.comparison import group_sheets, legend, overall_parts
from numtok.cli.output.pages.charts import chart, cost_chart, error_charts, learning_charts, section
from numtok.cli.output.pages.compared import Compared
from numtok.cli.output.pages.differences import differences_section
from numtok.cli.output.pages.page import Page, PageChart, Section
from numtok.cli.output.printing import Sheet
from numtok.stages.compare import Comparison, SampleGroup
from numtok.store.artifact import Resolve

_METRICS = 4  # metrics with a chart each
_PARTS = 6  # groups of samples with charts
_COSTS = ("train_seconds", "samples", "tokens_per_number")  # costs with a chart each


def compare_page(comparison: Comparison, resolve: Resolve) -> Page:
    """Return the HTML page of a comparison. ``resolve`` looks up its reports by REF."""
    count = len(comparison.experiments)
    test_set = f"{comparison.numbers:,} {comparison.measures} of the {comparison.split} split"
    compared = Compared.of_comparison(comparison, resolve)
    return Page(
        kicker="numtok compare",
        title=f"{count} ways to read and write numbers, on {test_set}",
        lead=(
            "All experiments predict the same rows. Intervals are 95% bootstrap intervals over "
            "rows and seeds."
        ),
        headlines=[],
        sections=[
            *comparison_sections(comparison, compared, resolve),
            *differences_section([compared], resolve),
        ],
        facts=[(one.label, ", ".join(one.reports)) for one in comparison.experiments],
        notes=list(legend(comparison)),
        made_by="numtok compare REPORT... --html FILE",
        legend=list(compared.colours.items()),
    )


def comparison_sections(
    comparison: Comparison, compared: Compared, resolve: Resolve
) -> Iterator[Section]:
    """Yield the sections of a comparison, except the section with the rows on which experiments
    differ."""
    *boards, overall = board_sections(comparison, compared.name)
    for place, (part, board) in enumerate(zip(comparison.parts, boards, strict=True)):
        yield board
        if place >= _PARTS:
            continue
        where = "" if part.value is None else f" ({comparison.group} {part.value})"
        own = f"{compared.name}-{place}"
        charts = list(_metric_charts(comparison, compared, part, own))
        text = "One dot per experiment, with its interval."
        if place + 1 == _PARTS < (count := len(comparison.parts)):
            text += f" The first {_PARTS} of {count} values of {comparison.group} have charts."
        yield Section(f"{own}-metrics", f"Each metric{where}", text, charts)
    yield overall
    a_line = "One line per seed; table models have one per fold."
    of_costs = _cost_charts(comparison, compared, comparison.parts[0])
    curves = learning_charts(compared.name, compared.evaluations, compared.colours, resolve)
    errors = error_charts(compared, next(iter(comparison.metrics)))
    name = compared.name
    yield from section(f"{name}-cost", "Cost against quality", "", of_costs)
    yield from section(f"{name}-learning", "Learning curves", a_line, curves)
    first = "First seed of each experiment."
    yield from section(f"{name}-errors", "Errors", first, errors)


def board_sections(comparison: Comparison, name: str) -> Iterator[Section]:
    """Yield a leaderboard section for each group of samples, then a section on settings and costs.
    Leaderboards begin with the best experiment."""
    for place, part in enumerate(comparison.parts):
        where = "" if part.value is None else f" ({comparison.group} {part.value})"
        tables = list(group_sheets(comparison, part))
        yield Section(f"{name}-{place}-board", f"Leaderboard{where}", "", tables)
    tables = [sheet for sheet in overall_parts(comparison) if isinstance(sheet, Sheet)]
    yield Section(f"{name}-overall", "Settings and costs", "", tables)


def _metric_charts(
    comparison: Comparison, compared: Compared, part: SampleGroup, name: str
) -> Iterator[PageChart]:
    metrics = list(comparison.metrics.items())[:_METRICS]
    for place, (metric, better) in enumerate(metrics):
        found = {label: one[metric].figure for label, one in part.standings.items()}
        text = "" if better == "neither" else f"{better.capitalize()} is better."
        panel = lined_up(found, metric, "label", compared.colours)
        yield from chart(f"{name}-metric-{place}", metric, text, panel)


def _cost_charts(
    comparison: Comparison, compared: Compared, part: SampleGroup
) -> Iterator[PageChart]:
    """Draw costs over all samples; nothing if samples are in groups."""
    metric, better = next(iter(comparison.metrics.items()))
    if part.value is not None:
        return
    for key in _COSTS:
        points = []
        for one in comparison.experiments:
            found = part.standings[one.label][metric].figure
            cost = getattr(one.costs, key)
            points.append((one.label, cost, found.value, found.low, found.high))
        name, higher = f"{compared.name}-cost-{key}", HIGHER.get(better)
        yield from cost_chart(name, key, metric, points, compared.colours, higher=higher)
