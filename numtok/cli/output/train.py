"""What ``numtok train`` shows: a progress line, then the REF on stdout and a table on stderr."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from numtok.cli.output.figures import amount, number, share
from numtok.cli.output.printing import Format, Size, print_json, print_made, print_table
from numtok.cli.output.progress import Live
from numtok.records import EXACT, TRUNCATED, Natural, Scalar
from numtok.stages.train import Result
from numtok.training.log import read_log
from numtok.training.loop import TrainingProgress
from numtok.training.profiler import Cost

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


class _TrainCounts(msgspec.Struct):
    parameters: Natural
    steps: Natural
    samples: Natural
    tokens: Natural
    unseen: Natural = msgspec.field(name=TRUNCATED, default=0)


class _TrainTiming(msgspec.Struct):
    """None is what an earlier numtok did not say."""

    seconds: float
    tokens_per_second: float
    mfu: float | None = None
    peak_memory: Natural | None = None
    second_pass: float | None = None


class TrainingBar(Live):
    """Steps, time left, loss, numbers and tokens a second, MFU, peak memory: in 80 columns."""

    def columns(self) -> "list[ProgressColumn]":
        from rich.progress import TextColumn

        return [
            TextColumn("step {task.completed:,.0f}/{task.total:,.0f}"),
            TextColumn("{task.fields[told]}"),
        ]

    def __call__(self, update: TrainingProgress) -> None:
        speed = update.speed
        minutes, seconds = divmod(round(update.seconds_left), 60)
        told = (
            f"{minutes}:{seconds:02d} left  loss {update.loss:.3g}  "
            f"{amount(speed.numbers_per_second)} num/s  {amount(speed.tokens_per_second)} tok/s  "
            f"{speed.mfu:.0%} MFU  {Size(update.peak_memory)}"
        )
        self.show("training", update.step, update.steps, told)


def print_result(result: Result, format: Format, quiet: bool) -> None:
    """Print one run; with a format other than the table, that on stdout instead of the REF."""
    if result.costs and not quiet:
        _print_costs(result.costs)
    artifact = result.artifact
    # The last that was written down for each split.
    last = {one.split: one.figures for one in read_log(artifact.path)}
    losses = {split: figures["loss"] for split, figures in last.items()}
    exact = {split: one for split in last if (one := last[split].get(EXACT)) is not None}
    if format is Format.JSON:
        print_json(
            {"ref": artifact.ref, "made": result.made, "counts": artifact.manifest.counts}
            | {"losses": losses}
            | ({"exact": exact} if exact else {})
            | {"timing": artifact.timing(dict[str, Scalar])}
        )
        return
    counts, timing = artifact.counts(_TrainCounts), artifact.timing(_TrainTiming)
    rows: list[tuple[str, object]] = [
        ("parameters", counts.parameters),
        ("steps", counts.steps),
        ("samples", counts.samples),
        ("tokens", counts.tokens),
        *((f"{split} loss", loss) for split, loss in losses.items()),
        *((f"{split} answers, exact", share(one)) for split, one in exact.items()),
        ("seconds", round(timing.seconds, 1)),
        ("tokens a second", round(timing.tokens_per_second)),
        ("MFU", share(timing.mfu)),
        ("peak memory", None if timing.peak_memory is None else Size(timing.peak_memory)),
    ]
    if timing.second_pass is not None:
        rows.append(("second pass, of FLOPs", share(timing.second_pass)))
    if counts.unseen:
        rows.append(("numbers not seen whole", counts.unseen))
    title = "trained" if result.made else "found, not trained again"
    print_made(title, artifact.ref, rows, format, quiet)


def _print_costs(costs: Sequence[Cost]) -> None:
    rows = [
        (cost.operation, f"{1000 * cost.seconds:.3g}", share(cost.share), number(cost.calls))
        for cost in costs
    ]
    columns = ("operation", "ms", "share", "calls")
    print_table("what a step costs", columns, rows, to=sys.stderr)
    print(file=sys.stderr)
