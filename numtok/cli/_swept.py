"""What ``numtok sweep`` prints: what was chosen, a comparison a data set, what failed."""

import sys
from typing import TYPE_CHECKING

from numtok.cli._comparison import print_comparison
from numtok.cli._figures import amount, duration, number, print_figures
from numtok.cli._progress import Count
from numtok.cli._shared import Format, counted, one_line, print_json

if TYPE_CHECKING:
    from numtok.stages._experiments import Spent
    from numtok.stages.sweep import Result


class Runs(Count):
    """Called with (what was done, how many are done, of how many): the last two 0 before runs."""

    def __call__(self, what: str, done: int, total: int) -> None:
        if total:
            self.show("runs", done, total)
            self.say(f"{done}/{total} {what}")
        else:
            self.say(what)


def print_sweep(result: "Result", format: Format) -> None:
    """Print a sweep on stdout, and its failures on stderr."""
    if format is Format.JSON:
        _print_json(result)
    else:
        _print_picks(result, format)
        for dataset in result.datasets:
            if dataset.label:
                print(f"== {dataset.label}\n")
            print_comparison(dataset.comparison, format)
    for one in result.failed:
        print(f"numtok: {one.label or 'the data'}: {one_line(str(one.problem))}", file=sys.stderr)
    if result.failed:
        told = counted(len(result.failed), "run")
        print(f"numtok: {told} of {result.runs} failed; the others stand", file=sys.stderr)


def _print_picks(result: "Result", format: Format) -> None:
    if not result.picks:
        return
    rows = [
        [
            one.label,
            one.chosen,
            number(one.figure),
            *([] if one.reached is None else ["yes" if one.reached else "NO"]),
            *(["-"] * 4 if one.spent is None else _costs(one.spent)),
        ]
        for one in result.picks
    ]
    reach = ["reached"] if result.picks[0].reached is not None else []
    head = ("of", "chosen", "validation", *reach, "samples", "tokens", "FLOPs", "seconds")
    print_figures("chosen on the validation split", head, rows, format)


def _costs(spent: "Spent") -> list[str]:
    return [
        amount(spent.samples),
        amount(spent.tokens),
        amount(spent.flops),
        duration(spent.train_seconds),
    ]


def _print_json(result: "Result") -> None:
    import msgspec

    print_json(
        {
            "runs": result.runs,
            "chosen": [msgspec.to_builtins(one._asdict()) for one in result.picks],
            "data": [
                {"label": one.label, "comparison": msgspec.to_builtins(one.comparison)}
                for one in result.datasets
            ],
            "failed": [
                {"label": one.label, "problem": str(one.problem), "code": one.problem.exit_code}
                for one in result.failed
            ],
        }
    )
