"""Tables of experiments, the best first: their figures, and what they cost."""

from collections.abc import Iterator, Sequence

from numtok.cli.output.comparison import baseline_name
from numtok.cli.output.figures import Told, amount, duration, interval, number, share
from numtok.cli.output.pages.parts import bold, folded
from numtok.cli.output.printing import Sheet
from numtok.evaluation.comparison.experiments import Experiment
from numtok.reports import LIMITS
from numtok.stages.compare import Comparison, Difference, SampleGroup


def leaderboard(comparison: Comparison, part: SampleGroup) -> Iterator[Sheet]:
    """Return every experiment with its metrics and differences, and with its costs."""
    first, better = next(iter(comparison.metrics.items()))

    def rank(one: Experiment) -> float:
        value = part.standings[one.label][first].figure.value
        return float("inf") if value is None else -value if better == "higher" else value

    ordered = sorted(comparison.experiments, key=rank)
    picks = [f"label:{one.label}" for one in ordered]
    best = {metric: _best(part, metric, better) for metric, better in comparison.metrics.items()}
    rows: list[list[object]] = []
    for one in ordered:
        standings = part.standings[one.label]
        cells = (
            bold(found.figure) if found.figure.value == best[metric] is not None else found.figure
            for metric, found in standings.items()
        )
        seeds = f"{len(one.seeds)}" if len(one.seeds) > 1 else f"1 (seed {one.seeds[0]})"
        last = _difference(standings[first].difference), share(one.invalid)
        rows.append([one.label, Told(seeds, len(one.seeds)), *cells, *last])
    columns = ["experiment", "seeds", *comparison.metrics, f"{first}: difference", "invalid"]
    note = (
        f"Differences are paired, from {part.reference}; a tie is one whose interval holds 0. The "
        "best of each column is bold. Intervals hold 95%."
    )
    yield Sheet("Experiments, the best first", columns, rows, picks=picks, note=note)
    if part.value is None:
        yield _costs(ordered, picks)
    if part.baselines:
        rows = [
            [f"{'limit: ' * (one.name in LIMITS)}{baseline_name(one)}"]
            + [one.figures.get(metric) for metric in comparison.metrics]
            for one in part.baselines
        ]
        note = "What needs no model; limits are made of the truth, and no rivals."
        yield Sheet("Baselines", ["baseline", *comparison.metrics], rows, note=note)


def _best(part: SampleGroup, metric: str, better: str) -> float | None:
    """The best figure of all experiments; None where neither direction is better."""
    values = [
        value for one in part.standings.values() if (value := one[metric].figure.value) is not None
    ]
    if better == "neither" or not values:
        return None
    return max(values) if better == "higher" else min(values)


def _difference(found: Difference | None) -> object:
    if found is None or found.value is None:
        return "the reference" if found is None else None
    cell = folded(interval(found.value, found.low, found.high, apart=True))
    return cell if found.significant else cell._replace(text=f"{cell.text} (a tie)")


def _costs(ordered: Sequence[Experiment], picks: Sequence[str]) -> Sheet:
    columns = ["experiment", "training", "prediction", "FLOPs", "rows read", "tokens read"]
    columns += ["tokens a number", "parameters"]
    rows = [
        [
            one.label,
            duration(one.costs.train_seconds),
            duration(one.costs.eval_seconds),
            number(one.costs.flops),
            amount(one.costs.samples),
            amount(one.costs.tokens),
            number(one.costs.tokens_per_number),
            amount(one.costs.parameters),
        ]
        for one in ordered
    ]
    title = "What they cost, in the same order"
    return Sheet(title, columns, rows, picks=picks, note="Means over the seeds.")
