"""Tables of experiments, the best first: their figures, and what they cost."""

from collections.abc import Iterator, Sequence

from numtok.cli.output.comparison import baseline_name
from numtok.cli.output.figures import amount, duration, interval, number, share
from numtok.cli.output.pages.page import PageCell, PageTable
from numtok.cli.output.pages.parts import folded, with_interval
from numtok.evaluation.comparison.experiments import Experiment
from numtok.records import LIMITS
from numtok.stages.compare import Comparison, Difference, SampleGroup


def leaderboard(comparison: Comparison, part: SampleGroup) -> Iterator[PageTable]:
    """Every experiment with its figures and differences, and with its costs."""
    first, better = next(iter(comparison.metrics.items()))

    def rank(one: Experiment) -> float:
        value = part.standings[one.label][first].figure.value
        return float("inf") if value is None else -value if better == "higher" else value

    ordered = sorted(comparison.experiments, key=rank)
    picks = [f"label:{one.label}" for one in ordered]
    best = {metric: _best(part, metric, better) for metric, better in comparison.metrics.items()}
    rows: list[Sequence[PageCell | str]] = []
    for one in ordered:
        standings = part.standings[one.label]
        rows.append(
            [
                one.label,
                PageCell(_seeds(one), len(one.seeds)),
                *(
                    with_interval(found.figure, best=found.figure.value == best[metric] is not None)
                    for metric, found in standings.items()
                ),
                _difference(standings[first].difference),
                PageCell(share(one.invalid), one.invalid),
            ]
        )
    columns = ["experiment", "seeds", *comparison.metrics, f"{first}: difference", "invalid"]
    note = (
        f"Differences are paired, from {part.reference}; a tie is one whose interval holds 0. The "
        "best of each column is bold. Intervals hold 95%."
    )
    yield PageTable(
        caption="Experiments, the best first", columns=columns, rows=rows, picks=picks, note=note
    )
    if part.value is None:
        yield _costs(ordered, picks)
    if part.baselines:
        yield _baselines(comparison, part)


def _baselines(comparison: Comparison, part: SampleGroup) -> PageTable:
    rows: list[Sequence[PageCell | str]] = []
    for one in part.baselines:
        limit = "limit: " * (one.name in LIMITS)
        found = (one.figures.get(metric) for metric in comparison.metrics)
        cells = (PageCell("-") if figure is None else with_interval(figure) for figure in found)
        rows.append([f"{limit}{baseline_name(one)}", *cells])
    note = "What needs no model; limits are made of the truth, and no rivals."
    return PageTable(
        caption="Baselines", columns=["baseline", *comparison.metrics], rows=rows, note=note
    )


def _best(part: SampleGroup, metric: str, better: str) -> float | None:
    """The best figure of all experiments; None where neither direction is better."""
    values = [
        value for one in part.standings.values() if (value := one[metric].figure.value) is not None
    ]
    if better == "neither" or not values:
        return None
    return max(values) if better == "higher" else min(values)


def _seeds(one: Experiment) -> str:
    return f"{len(one.seeds)}" if len(one.seeds) > 1 else f"1 (seed {one.seeds[0]})"


def _difference(found: Difference | None) -> PageCell:
    if found is None or found.value is None:
        return PageCell("the reference" if found is None else "-")
    cell = folded(interval(found.value, found.low, found.high, apart=True), found.value)
    return cell if found.significant else cell._replace(text=f"{cell.text} (a tie)")


def _costs(ordered: Sequence[Experiment], picks: Sequence[str]) -> PageTable:
    rows: list[Sequence[PageCell | str]] = []
    for one in ordered:
        costs = one.costs
        rows.append(
            [
                one.label,
                PageCell(duration(costs.train_seconds), costs.train_seconds),
                PageCell(duration(costs.eval_seconds), costs.eval_seconds),
                PageCell(number(costs.flops), costs.flops),
                PageCell(amount(costs.samples), costs.samples),
                PageCell(amount(costs.tokens), costs.tokens),
                PageCell(number(costs.tokens_per_number), costs.tokens_per_number),
                PageCell(amount(costs.parameters), costs.parameters),
            ]
        )
    columns = ["experiment", "training", "prediction", "FLOPs", "rows read", "tokens read"]
    columns += ["tokens a number", "parameters"]
    note = "Means over the seeds."
    return PageTable(
        caption="What they cost, in the same order",
        columns=columns,
        rows=rows,
        picks=picks,
        note=note,
    )
