"""Prints the progress of training, then the model: its REF on stdout, a table on stderr."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from numtok.cli.output.figures import amount, duration, number, share
from numtok.cli.output.printing import Format, Rows, Size, print_made, print_note, print_table
from numtok.cli.output.progress import Live
from numtok.encoding.schema import TRUNCATED
from numtok.models.heads.base import HEADS
from numtok.registry import spec_of
from numtok.stages.train import Result
from numtok.store.artifact import Artifact
from numtok.stored_json import Natural, Positive, Scalar
from numtok.training.log import EXACT, read_log
from numtok.training.loop import Cost, TrainingProgress
from numtok.training.model_json import TableModelFile, read_model_file
from numtok.training.table_folds import FitProgress

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


_SPLITS = {"train": "training"}  # in words


class _TrainCounts(msgspec.Struct, kw_only=True):
    parameters: Natural
    steps: Natural
    samples: Natural
    tokens: Natural
    trained: Natural | None = None
    unseen: Natural = msgspec.field(name=TRUNCATED, default=0)


class _TrainTiming(msgspec.Struct, kw_only=True):
    seconds: float
    tokens_per_second: float
    mfu: float | None = None
    peak_memory: Natural | None = None
    second_pass: float | None = None


class _FitCounts(msgspec.Struct, kw_only=True):
    rows: Natural
    steps: Natural
    parameters: Natural
    head_parameters: Natural
    folds: Positive
    epochs: Positive
    unsayable: Natural = 0


class _FitTiming(msgspec.Struct):
    seconds: float
    samples_per_second: float
    mfu: float
    peak_memory: Natural


_FEW_STEPS, _FEW_BATCHES = 200, 4  # steps per fold, steps per epoch


class TrainingBar(Live):
    """Training progress on a line of at most 80 columns.

    For text models, the line shows steps, time left, loss, tokens/s, MFU and peak memory; for table
    models, it shows epochs and losses.
    """

    def columns(self) -> "list[ProgressColumn]":
        from rich.progress import TextColumn

        return [TextColumn("{task.fields[text]}")]

    def __call__(self, update: TrainingProgress | FitProgress) -> None:
        if isinstance(update, FitProgress):
            self._fold(update)
            return
        speed = update.speed
        minutes, seconds = divmod(round(update.seconds_left), 60)
        line = (
            f"step {update.step:,}/{update.steps:,} {minutes}:{seconds:02d} left  "
            f"loss {update.loss:.3g}  "
            f"{amount(speed.tokens_per_second)} tok/s  {speed.mfu:.0%} MFU  "
            f"peak {Size(update.peak_memory)}"
        )
        self.show("training", update.step, update.steps, line)

    def _fold(self, update: FitProgress) -> None:
        epoch, several = update.epoch, f"fold {update.fold}  " if update.folds > 1 else ""
        line = (
            f"{several}epoch {epoch.epoch} of at most {update.epochs}  loss {epoch.train:.4g}  "
            f"validation {epoch.validation:.4g}"
        )
        self.show("fitting", epoch.epoch, update.epochs, line)


def print_result(result: Result, format: Format, quiet: bool) -> None:
    """Print the result of ``numtok train``. In formats other than ``table``, everything is printed
    on stdout."""
    artifact = result.artifact
    file = read_model_file(artifact)
    more: dict[str, object] = {"timing": artifact.timing(dict[str, Scalar])}
    if isinstance(file, TableModelFile):
        what, rows = "fitted", _of_fits(artifact, file)
    else:
        if result.costs and not quiet:
            _print_costs(result.costs)
        # The last values logged for each split.
        last = {one.split: one.figures for one in read_log(artifact.path)}
        losses = {split: figures["loss"] for split, figures in last.items()}
        exact = {split: one for split in last if (one := last[split].get(EXACT)) is not None}
        more = {"losses": losses} | ({"exact": exact} if exact else {}) | more
        what, rows = "trained", _of_training(artifact, file.settings.context, losses, exact)
    print_made(
        artifact,
        what if result.made else f"already {what}",
        rows,
        made=result.made,
        format=format,
        quiet=quiet,
        more=more,
    )
    if isinstance(file, TableModelFile) and not quiet:
        for line in _warnings(result, file):
            print_note(line)


def _of_training(
    artifact: Artifact, context: int, losses: Mapping[str, float | None], exact: Mapping[str, float]
) -> Rows:
    counts, timing = artifact.counts(_TrainCounts), artifact.timing(_TrainTiming)
    rows: Rows = [
        ("parameters", counts.parameters),
        *([("  trained", counts.trained)] if counts.trained is not None else []),
        ("steps", counts.steps),
        ("examples", counts.samples),
        ("tokens", counts.tokens),
        *([("context", f"{context:,} tokens")] if context < sys.maxsize else []),
        *((f"{_SPLITS.get(split, split)} loss", loss) for split, loss in losses.items()),
        *((f"{_SPLITS.get(split, split)} exact match", share(one)) for split, one in exact.items()),
        ("time", duration(timing.seconds)),
        ("tokens/s", round(timing.tokens_per_second)),
        ("MFU", share(timing.mfu)),
        ("peak memory", None if timing.peak_memory is None else Size(timing.peak_memory)),
    ]
    if timing.second_pass is not None:
        rows.append(("second pass", f"{share(timing.second_pass)} of FLOPs"))
    if counts.unseen:
        rows.append(("truncated numbers", counts.unseen))
    return rows


def _of_fits(artifact: Artifact, file: TableModelFile) -> Rows:
    counts, timing = artifact.counts(_FitCounts), artifact.timing(_FitTiming)
    fits = [fold.fit for fold in file.trained.folds]
    kept = [fit.best_epoch for fit in fits]
    return [
        ("folds", counts.folds),
        ("parameters", counts.parameters),
        ("  in the head", share(counts.head_parameters / max(1, counts.parameters))),
        ("rows", counts.rows),
        ("epochs", counts.epochs),
        ("  best epoch", " to ".join(map(str, sorted({min(kept), max(kept)})))),
        ("best validation loss", number(sum(fit.best_loss for fit in fits) / len(fits))),
        ("steps", counts.steps),
        ("time", duration(timing.seconds)),
        ("rows/s", number(timing.samples_per_second)),
        ("MFU", share(timing.mfu)),
        ("peak memory", Size(timing.peak_memory)),
    ]


def _warnings(result: Result, file: TableModelFile) -> Iterator[str]:
    counts = result.artifact.counts(_FitCounts)
    if counts.unsayable:
        head = spec_of(HEADS.from_settings(file.settings.head))
        yield (
            f"{counts.unsayable:,} of {counts.rows:,} targets are outside the range of {head} and "
            "are trained as its nearest number. Choose a head with a wider range"
        )
    steps, of_epoch = counts.steps / counts.folds, counts.steps / counts.epochs
    if result.made and steps < _FEW_STEPS and of_epoch < _FEW_BATCHES:
        yield (f"only {steps:.0f} training steps ({of_epoch:.0f} per epoch). Use a smaller --batch")


def _print_costs(costs: Sequence[Cost]) -> None:
    rows = [
        (cost.operation, f"{1000 * cost.seconds:.3g}", share(cost.share), number(cost.calls))
        for cost in costs
    ]
    print_table("cost of a step", ("operation", "ms", "of step", "calls"), rows, to=sys.stderr)
    print(file=sys.stderr)
