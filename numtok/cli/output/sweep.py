"""What ``numtok sweep`` shows: how far it is, what was chosen, a table a data set, what failed."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from numtok.cli.output.comparison import ComparisonRow, deviating, flat, print_comparison
from numtok.cli.output.figures import duration, number, print_figures, shown_costs
from numtok.cli.output.printing import Format, counted, one_line, print_data
from numtok.cli.output.progress import Live

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from numtok.evaluation.comparison.experiments import ExperimentCosts
    from numtok.sweeps.averages import Ranking
    from numtok.sweeps.runs import SweepProgress
    from numtok.sweeps.sweep import Result

_COSTS = ("samples", "tokens", "FLOPs", "train")


class Runs(Live):
    """A line for whatever is done, and on a terminal a bar of the runs below them."""

    def columns(self) -> "list[ProgressColumn]":
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

        return [
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[told]}"),
        ]

    def __call__(self, update: "SweepProgress") -> None:
        what, done, total, left = update
        if total:
            told = f"about {duration(float(f'{left:.2g}'))} left" if left else ""
            self.show("runs", done, total, told)
        self.say(what if left is None else f"{done}/{total} {what}")


def print_sweep(result: "Result", format: Format) -> None:
    """Print a sweep on stdout, and what failed on stderr; CSV has one row a figure."""
    columns = ("table", *ComparisonRow._fields)
    if not print_data(format, _whole(result), columns, _flat(result)):
        _print_choices(result, format)
        for label, comparison in result.tables:
            if label:
                print(f"## {label}\n" if format is Format.MD else f"== {label}\n")
            print_comparison(comparison, format)
        _print_averages(result, format)
    if result.left:
        again = "" if result.select is None else ", and this part again, as something is chosen"
        print(
            f"numtok: this part is done; {result.left} runs of other parts are not there yet: give "
            f"these{again}; without --part the command compares all",
            file=sys.stderr,
        )
    labels: dict[str, list[str]] = {}
    for label, problem in result.failed:
        labels.setdefault(str(problem), []).append(label or "the data")
    for told, those in labels.items():
        more = f" and {len(those) - 1} more" if len(those) > 1 else ""
        print(f"numtok: {those[0]}{more} failed: {one_line(told)}", file=sys.stderr)


def _print_choices(result: "Result", format: Format) -> None:
    if (select := result.select) is None:
        return
    metric, reach = select.metric, select.reach
    rows = [
        [
            one.group or "all",
            one.chosen or "-",
            number(one.figure),
            *([] if reach is None else ["yes" if one.reached else "NO"]),
            *_costs(one.costs),
        ]
        for one in result.choices
    ]
    columns = ["", "best", metric, *([] if reach is None else ["reached"])]
    columns += _COSTS
    title = "the best" if reach is None else f"cost to reach {metric} {number(reach)}"
    seeds = "seeds" if select.seeds is None else counted(select.seeds, "seed")
    title += f" (validation split, mean over {seeds})"
    print_figures(title, columns, rows, format)


def _print_averages(result: "Result", format: Format) -> None:
    if not result.averages:
        return
    metrics = list(result.averages[0].metrics)
    rows = [
        [
            one.label or "all",
            str(one.metrics[metrics[0]].count),
            *(deviating(one.metrics[metric]) for metric in metrics),
        ]
        for one in result.averages
    ]
    title = "over the data sets: mean +- standard deviation"
    print_figures(title, ["", "data sets", *metrics], rows, format)
    if (ranks := result.ranks) is not None:
        rows = [[label or "all", deviating(over)] for label, over in ranks.ways.items()]
        title = f"ranks by {ranks.metric} over {ranks.data_sets} data sets: {ranks_told(ranks)}"
        print_figures(title, ["", "rank"], rows, format)


def ranks_told(ranks: "Ranking") -> str:
    """What the difference of two ranks says."""
    return f"1 is the best, less than {ranks.apart:.2g} apart may be chance (Nemenyi, 95%)"


def _costs(costs: "ExperimentCosts | None") -> list[str]:
    shown = {} if costs is None else shown_costs(costs)
    return [shown.get(name, "-") for name in _COSTS]


def _flat(result: "Result") -> Iterator[tuple[object, ...]]:
    """The rows of CSV: those of the comparisons, and of what was chosen."""
    for one in result.choices:
        assert result.select is not None
        metric = result.select.metric
        yield "", *ComparisonRow("chosen", one.group, metric, one.figure, value=one.chosen)
        if one.costs is not None:
            kind = "cost" if result.select.reach is None else "cost to reach"
            if one.reached is False:
                kind = "cost, not reached"
            for what in ("samples", "tokens", "flops", "train_seconds"):
                figure, name = getattr(one.costs, what), what.replace("_", "-")
                yield "", *ComparisonRow(kind, one.group, name, figure, value=one.chosen)
    for label, comparison in result.tables:
        for row in flat(comparison):
            yield label, *row
    for average in result.averages:
        for metric, over in average.metrics.items():
            row = ComparisonRow("over data sets", average.label, metric, over.mean, n=over.count)
            yield "", *row._replace(deviation=over.deviation)
    if (ranks := result.ranks) is not None:
        for label, over in ranks.ways.items():
            row = ComparisonRow("rank", label, ranks.metric, over.mean, n=over.count)
            yield "", *row._replace(deviation=over.deviation)


def _whole(result: "Result") -> dict[str, Any]:
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
