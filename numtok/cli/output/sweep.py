"""Prints sweeps: progress, selected runs, a table per data set, averages and failures."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from numtok.cli.output.comparison import (
    COLUMNS,
    averaged,
    comparison_parts,
    comparison_records,
    deviating,
    shown_costs,
)
from numtok.cli.output.figures import duration, number
from numtok.cli.output.printing import Format, Part, Sheet, one_line, print_result
from numtok.cli.output.progress import Live
from numtok.names import counted
from numtok.sweeps.runs import SweepProgress
from numtok.sweeps.sweep import Result

_COSTS = ("examples", "tokens", "FLOPs", "train")


class Runs(Live):
    """Progress display for a sweep: one line per finished run and, on a terminal, a bar for all
    runs."""

    def __call__(self, update: SweepProgress) -> None:
        what, done, total, left = update
        if total:
            remaining = f"about {duration(float(f'{left:.2g}'))} left" if left else ""
            self.show("runs", done, total, remaining)
        self.say(what if left is None else f"{done}/{total} {what}")


def print_sweep(result: Result, format: Format) -> None:
    """Print the result of a sweep on stdout, and failures on stderr; CSV has one row per value."""
    columns, records = ("table", *COLUMNS), _records(result)
    print_result(format, _whole(result), columns, records, _parts(result, format))
    if result.left:
        again = "" if result.select is None else " and this part again (it selects settings)"
        print(
            f"numtok: this part is done; other parts lack {counted(result.left, 'run')}. Run those "
            f"parts{again}, then compare without --part",
            file=sys.stderr,
        )
    labels: dict[str, list[str]] = {}
    for label, problem in result.failed:
        labels.setdefault(str(problem), []).append(label or "the data")
    for message, runs in labels.items():
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        print(f"numtok: {runs[0]}{more} failed: {one_line(message)}", file=sys.stderr)


def _parts(result: Result, format: Format) -> Iterator[Part]:
    yield from choices(result)
    for label, comparison in result.tables:
        if label:
            yield [f"{'##' if format is Format.MD else '=='} {label}"]
        yield from comparison_parts(comparison, format)
    yield from averages(result)


def choices(result: Result) -> Iterator[Sheet]:
    """Yield a table of the selected runs with their costs, if the sweep selects any."""
    if (select := result.select) is None:
        return
    metric, reach = select.metric, select.reach
    rows = []
    for choice in result.choices:
        costs: Mapping[str, str] = {} if choice.costs is None else shown_costs(choice.costs)
        reached = [] if reach is None else ["yes" if choice.reached else "NO"]
        shown = [costs[name] if costs else "-" for name in _COSTS]
        rows.append(
            [choice.group or "all", choice.chosen or "-", number(choice.figure), *reached, *shown]
        )
    columns = ["", "best", metric, *([] if reach is None else ["reached"]), *_COSTS]
    title = "the best" if reach is None else f"cost to reach {metric} {number(reach)}"
    seeds = "seeds" if select.seeds is None else counted(select.seeds, "seed")
    yield Sheet(f"{title} (validation split, mean over {seeds})", columns, rows)


def averages(result: Result) -> Iterator[Sheet]:
    """Yield tables of means and ranks over several data sets, if there are any."""
    if not result.averages:
        return
    metrics = list(result.averages[0].metrics)
    rows: list[list[object]] = [
        [average.label or "all", average.metrics[metrics[0]].count]
        + [deviating(average.metrics[metric]) for metric in metrics]
        for average in result.averages
    ]
    title = "over the data sets: mean ± standard deviation"
    yield Sheet(title, ["", "data sets", *metrics], rows)
    if (ranks := result.ranks) is not None:
        rows = [[label or "all", deviating(over)] for label, over in ranks.ways.items()]
        test = f"differences below {ranks.apart:.2g} may be chance (Nemenyi, 95%)"
        title = f"ranks by {ranks.metric} over {ranks.data_sets} data sets: 1 is best, {test}"
        yield Sheet(title, ["", "rank"], rows)


def _records(result: Result) -> Iterator[dict[str, Any]]:
    for choice in result.choices:
        assert result.select is not None
        row = {"table": "", "label": choice.group, "value": choice.chosen}
        yield row | {"kind": "chosen", "metric": result.select.metric, "figure": choice.figure}
        if choice.costs is not None:
            kind = "cost" if result.select.reach is None else "cost to reach"
            kind = "cost, not reached" if choice.reached is False else kind
            for what in ("samples", "tokens", "flops", "train_seconds"):
                cost = {"metric": what.replace("_", "-"), "figure": getattr(choice.costs, what)}
                yield row | {"kind": kind} | cost
    for label, comparison in result.tables:
        for record in comparison_records(comparison):
            yield {"table": label} | record
    for average in result.averages:
        for metric, over in average.metrics.items():
            row = {"table": "", "kind": "over data sets", "label": average.label, "metric": metric}
            yield row | averaged(over)
    if (ranks := result.ranks) is not None:
        for label, over in ranks.ways.items():
            row = {"table": "", "kind": "rank", "label": label, "metric": ranks.metric}
            yield row | averaged(over)


def _whole(result: Result) -> dict[str, Any]:
    return {
        "select": result.select,
        "chosen": [one._asdict() for one in result.choices],
        "tables": [one._asdict() for one in result.tables],
        "averages": [one._asdict() for one in result.averages],
        "ranks": None if result.ranks is None else result.ranks._asdict(),
        "failed": [
            {"label": label, "problem": str(problem), "code": problem.exit_code}
            for label, problem in result.failed
        ],
        "left": result.left,
    }
