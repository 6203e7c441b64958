"""Charts of several experiments: cost against quality, learning curves, and errors."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from numtok.analysis.panels.calibration import coverage_panel
from numtok.analysis.panels.costs import COSTS, CostPoint, cost_panel, pareto_front
from numtok.analysis.panels.learning import Over, learning_curves, learning_panel
from numtok.analysis.panels.numbers import SizePanel, side_by_side_panel
from numtok.analysis.picture import Panel
from numtok.cli.output.pages.compared import Compared
from numtok.cli.output.pages.page import PageChart, Section
from numtok.cli.output.pages.parts import largest_fields
from numtok.evaluation.report_files import Evaluation
from numtok.metrics.base import Predictions
from numtok.store.artifact import Resolve

_ASIDE = 11  # pixels per experiment in the row of a field


def chart(
    name: str, heading: str, text: str, panel: Panel | None, *, height: int | None = None
) -> Iterator[PageChart]:
    """Yield a chart of a panel, or nothing if ``panel`` is None."""
    if panel is not None:
        yield PageChart(name=name, heading=heading, text=text, panel=panel, height=height)


def cost_chart(
    name: str,
    cost: str,
    metric: str,
    values: Iterable[tuple[str, float | None, float | None, float | None, float | None]],
    colours: Mapping[str, int],
    *,
    higher: bool | None = True,
) -> Iterator[PageChart]:
    """Yield a chart of a metric plotted against ``cost``, one of ``COSTS``.

    Yields nothing if all costs are equal, or if any of them is 0.

    values
        Label, cost, metric value and ends of the metric's interval, for each experiment.
    colours
        Palette index of each experiment, keyed by label.
    higher
        True if higher values of the metric are better, None if neither are.
    """
    points = [
        CostPoint(label, price, value, low, high)
        for label, price, value, low, high in values
        if price is not None and value is not None
    ]
    costs = {point.cost for point in points}
    if len(costs) < 2 or min(costs) <= 0:
        return
    panel = cost_panel(points, (COSTS[cost], metric), colours, higher=higher)
    front = pareto_front(points, higher=higher)
    text = ""
    if len(front) > 1:
        text = "On the gray line, nothing is both cheaper and better (the Pareto front)."
    elif front:
        text = f"{front[0].label} is the cheapest here and has the best {metric}."
    yield from chart(name, f"{metric} over {COSTS[cost]}", text, panel)


def learning_charts(
    name: str,
    evaluations: Mapping[str, Sequence[Evaluation]],
    colours: Mapping[str, int],
    resolve: Resolve,
    heading: str = "Loss",
) -> Iterator[PageChart]:
    """Yield a chart of the loss against time, and one of the loss against the number of rows read.

    Models that are not in the store are left out.
    """
    curves = learning_curves(list(evaluations.items()), resolve)
    ways: tuple[tuple[Over, str], ...] = (("seconds", "time"), ("samples", "rows read"))
    text = "Schemes have different tokens: compare shapes of curves, not heights."
    for over, words in ways:
        panel = learning_panel(curves, colours, over)
        yield from chart(f"{name}-loss-{over}", f"{heading} over {words}", text, panel)


def size_chart(name: str, sizes: SizePanel | None) -> Iterator[PageChart]:
    """Yield a chart of errors by magnitude of the true value, or nothing if ``sizes`` is None."""
    text = (
        "Median relative error with its quartiles, by magnitude of the true value (equal counts). "
        "A click shows the rows of one magnitude."
    )
    panel = None if sizes is None else sizes.panel
    yield from chart(name, "Error by magnitude", text, panel, height=360)


def coverage_chart(
    name: str, answers: Mapping[str, Predictions], colours: Mapping[str, int]
) -> Iterator[PageChart]:
    """Yield a chart of the coverage of predicted intervals, or nothing if no intervals were
    predicted."""
    text = (
        "Fraction of true values within the central interval of each level. Below the gray line "
        "the model is overconfident, above it underconfident."
    )
    panel = coverage_panel(answers, colours)
    yield from chart(name, "Coverage of predicted intervals", text, panel, height=360)


def section(name: str, heading: str, text: str, charts: Iterable[PageChart]) -> Iterator[Section]:
    """Yield a section with the given charts, or nothing if ``charts`` is empty."""
    if found := list(charts):
        yield Section(name, heading, text, found)


def error_charts(compared: Compared, metric: str) -> Iterator[PageChart]:
    """Yield charts of errors by magnitude, of coverage, and of a metric by field. Yields nothing if
    no numbers were predicted."""
    if compared.predictions:
        answers = {label: one.answers for label, one in compared.predictions.items()}
        yield from size_chart(f"{compared.name}-size", compared.sizes)
        yield from coverage_chart(f"{compared.name}-coverage", answers, compared.colours)
        yield from _by_field(compared, metric)


def _by_field(compared: Compared, metric: str) -> Iterator[PageChart]:
    """Draw a metric of each field, if there are several."""
    note, figures = "", {}
    for label, one in compared.firsts.items():
        fields = one.report.fields or one.report.by_target
        found = {field: every[metric] for field, every in fields.items() if metric in every}
        if len(found) > 1:
            figures[label], note = largest_fields(found)
    if (panel := side_by_side_panel(figures, metric, compared.colours)) is not None:
        text = f"{metric} of each field with its 95% bootstrap interval.{note}"
        height = 64 + len(panel.y.names) * max(26, _ASIDE * len(figures))
        yield PageChart(
            name=f"{compared.name}-fields",
            heading="By field",
            text=text,
            panel=panel,
            wide=True,
            height=height,
        )
