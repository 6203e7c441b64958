"""Fits a model to each fold of a table, in the draft of the table model.

The draft is the unpublished artifact (:class:`numtok.store.draft.Draft`). Folds are fitted one
after the other, or in parallel with one process per device. Each fold has its own checkpoint in the
draft, so a killed run can resume on any number of devices. On a CPU, the result is identical to
that of an uninterrupted run, byte for byte.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import torch

from numtok.data.tables.table import VALIDATION, Table, learnt_rows, read_table_of
from numtok.data.tables.text_features import write_text_features
from numtok.errors import DataError
from numtok.models.flops import regressor_flops
from numtok.registry import settings_of
from numtok.store.draft import Draft
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import gpu_slots, threads_each
from numtok.training.checkpoint import Finished, checking_checkpoint
from numtok.training.device import peak_memory, torch_threads, tune_malloc
from numtok.training.features import Features
from numtok.training.log import Line
from numtok.training.model_files import write_regressor
from numtok.training.model_json import (
    FORMAT,
    Fold,
    TableModelFile,
    TableModelSettings,
    TrainedFolds,
)
from numtok.training.resolved_table import ResolvedTable
from numtok.training.run import TrainingRun, clocks, write_log
from numtok.training.trained_table import Epoch, FittedTable, FittingState, Preparation
from numtok.training.trainer import WHOLE_STEP


class FitProgress(NamedTuple):
    """Progress of fitting a table model, reported after each epoch.

    fold, folds
        The fold, and the number of folds to fit.
    epoch, epochs
        The finished epoch with its losses, and the maximum number of epochs.
    """

    fold: int
    folds: int
    epoch: Epoch
    epochs: int


Progress = Callable[[FitProgress], None]
Note = Callable[[str], None]
_DIED = "Run the same command again (finished folds are kept); fewer --devices need less memory"


@dataclass(frozen=True, kw_only=True)
class FoldDone:
    """The fitted model of a fold, with its log and costs.

    unsayable
        Number of targets that the head cannot represent. The head is trained on the nearest values
        instead.
    records
        Lines of the log, ``metrics.jsonl``.
    seconds
        Fitting time, including earlier runs.
    matmul_rate
        Matrix multiplication speed of the device (see :class:`numtok.training.device.MatmulRate`).
    memory
        Peak memory in bytes.
    """

    fold: int
    fitted: FittedTable
    unsayable: int
    records: list[Line]
    seconds: float
    matmul_rate: float
    memory: int


@dataclass(frozen=True)
class FoldFit:
    """Callable that fits the model of one fold in a worker process. Its argument is the fold.

    :meth:`fit` does the same in this process. Checkpoints in the draft keep the state of each fold,
    so fitting can resume.
    """

    draft: Draft
    resolved: ResolvedTable
    folds: Sequence[int]

    @cached_property
    def table(self) -> Table:
        """Table to train on, read on first use."""
        return read_table_of(self.resolved.data)

    def __call__(self, fold: int) -> FoldDone:
        """Fit a fold in a worker process, using its share of the cores and reporting no
        progress."""
        torch.set_num_threads(threads_each(self.devices))
        if self.resolved.execution.device.type == "cpu":
            tune_malloc()
        done = self.fit(fold, lambda update: None, lambda note: None)
        done.fitted.model.cpu()  # because it is sent to another process
        return done

    @property
    def devices(self) -> int:
        """Number of folds that are fitted in parallel."""
        return min(self.resolved.devices, len(self.folds))

    def fit(self, fold: int, progress: Progress, note: Note) -> FoldDone:
        """Fit the model of a fold to the end, resuming from its checkpoint if there is one.

        progress
            Function that is called after each epoch.
        note
            Function that prints a note to the user.
        """
        run = TrainingRun(
            draft=self.draft,
            plain=FittingState,
            execution=self.resolved.execution,
            note=note,
            part=f"-fold{fold}",
        )
        preparation = prepared(self.resolved, self.table, fold)
        fitting = preparation.fitting
        checkpoint = run.checkpoint()
        if checkpoint is not None:
            with checking_checkpoint(self.draft.path):
                fitting.load(*checkpoint)
        was_done = checkpoint is not None and fitting.done
        with run.running(fitting.state) as after:
            while not fitting.done:
                epoch = fitting.advance()
                run.records.append({"fold": fold, **epoch._asdict()})
                progress(FitProgress(fold, len(self.folds), epoch, fitting.recipe.epochs))
                after(epoch.epoch, None, f"epoch {epoch.epoch} of fold {fold}")
        if len(self.folds) > 1 and not was_done:
            run.save(fitting.epoch, fitting.state())
        run.rate.remeasure()
        fitted = preparation.finished()
        run.rate.share(_flops(fitted) / max(run.seconds, 1e-9))
        return FoldDone(
            fold=fold,
            fitted=fitted,
            unsayable=preparation.unsayable,
            records=run.records,
            seconds=run.seconds,
            matmul_rate=run.rate.per_second,
            memory=peak_memory(self.resolved.execution.device),
        )


def prepared(resolved: ResolvedTable, table: Table, fold: int) -> Preparation:
    """Prepare the model of a fold for its first epoch.

    Raises DataError if the fold has fewer than 2 rows to train on.
    """
    rows = learnt_rows(table, fold, resolved.config.rows, resolved.config.seed)
    if len(rows) < 2:
        raise DataError(
            f"{resolved.data.ref} has {len(rows)} row to train on in fold {fold}. At least 2 are "
            "needed, one of them for validation"
        )
    columns = Features(table.numbers, table.categories)
    validation = None
    if VALIDATION in table.splits(fold):
        held = table.split(VALIDATION, fold)
        validation = columns.take(held), table.target[held]
    return Preparation.of(
        columns.take(rows),
        table.target[rows],
        validation,
        head=resolved.head,
        trunk=resolved.trunk,
        normalizer=resolved.normalizer,
        recipe=resolved.recipe,
        device=resolved.execution.device,
    )


def pace_table(resolved: ResolvedTable, limit: float) -> float:
    """Return the seconds per epoch of all folds together, measured over about ``limit`` seconds.

    The model that is trained for the measurement is discarded.
    """
    table = read_table_of(resolved.data)
    fitting = prepared(resolved, table, resolved.folds[0] if resolved.folds else 0).fitting
    fitting.advance()  # not timed, because it allocates memory
    started, first = time.monotonic(), fitting.epoch
    while fitting.epoch == first or time.monotonic() - started < limit:
        fitting.advance()
    folds = len(resolved.folds) or len(table.file.splits)
    return folds * (time.monotonic() - started) / (fitting.epoch - first)


def train_table(draft: Draft, resolved: ResolvedTable, note: Note, progress: Progress) -> Finished:
    """Fit a model to each fold, on one or several devices, and write the table model to its draft.

    note
        Function that prints a note to the user.
    progress
        Function that is called after each epoch.

    Returns the counts and timing of the table model.
    """
    splits = read_table_of(resolved.data).file.splits
    folds = list(resolved.folds) or list(range(len(splits)))
    fit = FoldFit(draft, resolved, folds)
    if fit.devices == 1:
        return _written(fit, [fit.fit(fold, progress, note) for fold in folds])
    # This process computes with the same number of threads as each worker.
    with torch_threads(threads_each(fit.devices)):
        try:
            done = list(_in_parallel(fit, progress))
            return _written(fit, sorted(done, key=lambda fold: folds.index(fold.fold)))
        except BaseException as error:
            if not isinstance(error, Exception):  # a signal: each process has saved its last epoch
                note("stopped. To resume, run the same command again")
            raise


def _in_parallel(fit: FoldFit, progress: Progress) -> Iterator[FoldDone]:
    on_gpus = fit.resolved.execution.device.type == "cuda"
    gpus = gpu_slots(fit.devices, torch.cuda.device_count()) if on_gpus else ()
    with Workers(fit.devices, gpus, _DIED) as workers:
        for done in workers.run(fit, fit.folds):
            last = msgspec.convert([done.records[-1][name] for name in Epoch._fields], Epoch)
            epochs = fit.resolved.recipe.epochs
            progress(FitProgress(done.fold, len(fit.folds), last, epochs))
            yield done


def _written(fit: FoldFit, done: Sequence[FoldDone]) -> Finished:
    draft, resolved, table = fit.draft, fit.resolved, fit.table
    folds = [_fold(result.fold, result.fitted) for result in done]
    settings = TableModelSettings(
        target=table.file.target,
        features=table.file.features,
        trunk=settings_of(resolved.trunk),
        head=settings_of(resolved.head),
        normalizer=settings_of(resolved.normalizer),
    )
    trained = TrainedFolds(resolved.configuration, resolved.config.seed, folds)
    file = TableModelFile(FORMAT, settings, trained)
    write_regressor(draft.path, file, [result.fitted.model for result in done])
    if resolved.text_features is not None:
        write_text_features(draft.path, resolved.text_features)
    write_log(draft, [record for result in done for record in result.records])
    parameters, head = done[0].fitted.model.parameter_counts()
    counts = {
        "folds": len(folds),
        "rows": sum(fold.learnt_from.rows for fold in folds),
        "unsayable": sum(result.unsayable for result in done),
        "epochs": sum(fold.fit.epochs for fold in folds),
        "steps": sum(fold.fit.steps for fold in folds),
        "samples": sum(fold.fit.samples for fold in folds),
        "parameters": parameters,
        "head_parameters": head,
    }
    return Finished(counts, _timing(fit, done, counts["samples"]))


def _timing(fit: FoldFit, done: Sequence[FoldDone], samples: int) -> dict[str, Any]:
    """Return timing.json with the summed seconds of all folds, so speeds are per device."""
    seconds = sum(fold.seconds for fold in done)
    flops = sum(_flops(fold.fitted) for fold in done)
    rate = max(fold.matmul_rate for fold in done)
    mfu = flops / max(seconds, 1e-9) / rate
    memory = max(fold.memory for fold in done)
    return clocks(
        seconds, flops, {"samples": samples}, mfu=mfu, matmul_rate=rate, peak_memory=memory
    ) | {"device": fit.resolved.execution.device.type, "devices": fit.devices}


def _fold(fold: int, fitted: FittedTable) -> Fold:
    return Fold(
        fold=fold,
        inputs=fitted.inputs,
        scaling=fitted.scaling.constants,
        calibration=fitted.calibration,
        learnt_from=fitted.learnt_from,
        fit=fitted.fit,
        flops=_flops(fitted),
    )


def _flops(fitted: FittedTable) -> float:
    return float(WHOLE_STEP * regressor_flops(fitted.model, fitted.fit.samples))
