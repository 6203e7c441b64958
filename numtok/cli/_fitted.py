"""Tables: what ``numtok train`` and ``eval`` do and show where their data are one."""

import sys
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from numtok.cli._shared import open_store
from numtok.cli.output.figures import number, share
from numtok.cli.output.printing import Format, Size, print_json, print_made
from numtok.cli.output.progress import Count, Live
from numtok.errors import UsageError
from numtok.records import Natural, Positive, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import ProgressColumn

    from numtok.evaluation.tables import TableOptions
    from numtok.stages.fit import FitProgress, Result
    from numtok.store.artifact import Artifact
    from numtok.store.store import Store


class _FitCounts(msgspec.Struct):
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


_FEW_STEPS, _FEW_BATCHES = 200, 4  # of a fold, of an epoch


def table_of(context: typer.Context, path: str, target: str) -> str:
    """The REF of the table that a user's file is, which is made if it is not there."""
    from numtok.data.tables.file import FORMATS
    from numtok.stages.table import Config, run

    if not path.endswith(FORMATS):
        raise UsageError(
            f"--target is for a table's file ({' or '.join(FORMATS)}), and {path} is none; leave "
            "--target out"
        )
    result = run(Config(path, target), open_store(context))
    if not context.obj.quiet:
        print(f"numtok: {path} is the table {result.artifact.ref}", file=sys.stderr)
    return result.artifact.ref


def is_table(context: typer.Context, ref: str) -> bool:
    """Whether a REF stands for a table rather than for encoded data; UsageError for neither."""
    from numtok.records import ENCODED, TABLE

    return open_store(context).resolve(ref, kinds={ENCODED, TABLE}).kind == TABLE


def train_table(context: typer.Context, format: Format, **options: Any) -> None:
    """Fit models to a table, and print their REF."""
    from numtok.stages.fit import Config, run

    with _FittingBar(context.obj.quiet) as progress:
        result = run(Config(**options), open_store(context), progress)
    _print_result(result, format, context.obj.quiet)
    counts = result.artifact.counts(_FitCounts)
    if counts.unsayable and not context.obj.quiet:
        print(
            f"numtok: {counts.unsayable:,} of {counts.rows:,} targets are beyond the numbers that "
            f"{options['head']} writes, and are learnt as the nearest of them; give a head that "
            "reaches further",
            file=sys.stderr,
        )
    if result.made and not context.obj.quiet:
        steps, of_epoch = counts.steps / counts.folds, counts.steps / counts.epochs
        if steps < _FEW_STEPS and of_epoch < _FEW_BATCHES:
            print(
                f"numtok: {steps:.0f} steps are few to learn in, and an epoch has {of_epoch:.0f}; "
                "give a smaller --batch",
                file=sys.stderr,
            )


def options_of(
    point: str, draws: int, temperature: float, top_k: int, top_p: float
) -> "TableOptions":
    """How numbers are read off a model of tables; UsageError for what is not possible."""
    from numtok.evaluation.tables import TableOptions
    from numtok.models.distributions.sampling import Sampling

    return TableOptions(point, draws, Sampling(temperature, top_k, top_p))


def eval_table(context: typer.Context, progress: Count, **options: Any) -> "Artifact":
    """Evaluate a model of tables: the report."""
    from numtok.stages.eval_table import Config, run

    return run(Config(**options), open_store(context), progress).artifact


def predicted_rows(
    store: "Store", model: str, path: str, fold: int | None, options: "TableOptions", device: str
) -> "Iterator[bytes]":
    """The rows of a file with what a model of tables says of them, as lines of CSV."""
    from numtok.stages.predict_table import Config, outgoing, run

    return map(outgoing, run(Config(model, path, fold, options, device), store))


class _FittingBar(Live):
    """Which fold, which epoch, and the losses."""

    def columns(self) -> "list[ProgressColumn]":
        from rich.progress import TextColumn

        return [TextColumn("{task.fields[told]}")]

    def __call__(self, update: "FitProgress") -> None:
        epoch = update.epoch
        told = (
            f"fold {update.fold}  epoch {epoch.epoch} of at most {update.epochs}  "
            f"loss {epoch.train:.4g}  held back {epoch.validation:.4g}"
        )
        if update.folds == 1:
            told = told.partition("  ")[2]
        self.show("fitting", epoch.epoch, update.epochs, told)


def _print_result(result: "Result", format: Format, quiet: bool) -> None:
    from numtok.training.regressor_files import read_regressor_file

    artifact = result.artifact
    if format is Format.JSON:
        told = {"counts": artifact.manifest.counts, "timing": artifact.timing(dict[str, Scalar])}
        print_json({"ref": artifact.ref, "made": result.made} | told)
        return
    counts, timing = artifact.counts(_FitCounts), artifact.timing(_FitTiming)
    fits = [fold.fit for fold in read_regressor_file(artifact).folds]
    kept = [fit.best_epoch for fit in fits]
    rows: list[tuple[str, object]] = [
        ("folds", counts.folds),
        ("parameters", counts.parameters),
        ("  in the head", share(counts.head_parameters / max(1, counts.parameters))),
        ("rows", counts.rows),
        ("epochs", counts.epochs),
        ("  whose weights are kept", " to ".join(map(str, sorted({min(kept), max(kept)})))),
        ("validation loss there", number(sum(fit.best_loss for fit in fits) / len(fits))),
        ("steps", counts.steps),
        ("seconds", round(timing.seconds, 1)),
        ("rows a second", number(timing.samples_per_second)),
        ("MFU", share(timing.mfu)),
        ("peak memory", Size(timing.peak_memory)),
    ]
    title = "fitted" if result.made else "found, not fitted again"
    print_made(title, artifact.ref, rows, format, quiet)
