"""Fitting a model to a table, or one to each of its folds, in a draft.

Folds are fitted one after the other, or side by side by as many processes as
there are devices. Each has a checkpoint of its own in the draft, so a run that was
killed goes on at the epochs where it stood, on however many devices, and ends, on
the CPU, in the same bytes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import torch

from numtok.data.tables.table import VALIDATION, Table, learnt_rows, read_table_of
from numtok.errors import DataError
from numtok.models.flops import regressor_flops
from numtok.registry import settings_of
from numtok.store.draft import Draft
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import gpu_slots, threads_each
from numtok.training.checkpoint import Finished, belonging
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
    """Where fitting stands: which of how many folds, which of at most how many epochs."""

    fold: int
    folds: int
    epoch: Epoch
    epochs: int


Progress = Callable[[FitProgress], None]
Note = Callable[[str], None]
_DIED = "Run the same command again to resume; fewer --devices need less memory"


@dataclass(frozen=True, kw_only=True)
class FoldDone:
    """A fold's model, and what there is to say of it.

    unsayable
        Targets that the head learns as the nearest that it can say.
    records
        Lines of ``metrics.jsonl``.
    seconds
        Of its fitting, in earlier runs too.
    matmul_rate
        As of :class:`MatmulRate`, where it was fitted.
    memory
        Bytes at the peak there.
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
    """Fits the models of single folds in any process; the draft holds the state of each."""

    draft: Draft
    resolved: ResolvedTable
    folds: Sequence[int]

    @cached_property
    def table(self) -> Table:
        """The table to train on."""
        return read_table_of(self.resolved.data)

    def __call__(self, fold: int) -> FoldDone:
        """Fit a fold in a worker process, with its part of the cores and without progress."""
        torch.set_num_threads(threads_each(self.devices))
        if self.resolved.execution.device.type == "cpu":
            tune_malloc()
        done = self.fit(fold, lambda update: None, lambda note: None)
        done.fitted.model.cpu()  # it goes to another process
        return done

    @property
    def devices(self) -> int:
        """Number of folds fitted side by side."""
        return min(self.resolved.devices, len(self.folds))

    def fit(self, fold: int, progress: Progress, note: Note) -> FoldDone:
        """Fit a fold to its end, from its checkpoint if there is one."""
        run = TrainingRun(
            draft=self.draft,
            plain=FittingState,
            execution=self.resolved.execution,
            note=note,
            part=f"-fold{fold}",
        )
        preparation = prepared(self.resolved, self.table, fold)
        fitting = preparation.fitting
        found = run.checkpoint()
        if found is not None:
            with belonging(self.draft.path):
                fitting.load(*found)
        there = found is not None and fitting.done
        with run.going(fitting.state) as after:
            while not fitting.done:
                epoch = fitting.advance()
                run.records.append({"fold": fold, **epoch._asdict()})
                progress(FitProgress(fold, len(self.folds), epoch, fitting.recipe.epochs))
                after(epoch.epoch, None, f"epoch {epoch.epoch} of fold {fold}")
        if len(self.folds) > 1 and not there:
            run.save(fitting.epoch, fitting.state())
        run.rate.look_again()
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
    """The model of a fold before its first epoch; DataError where it has too little to learn."""
    rows = learnt_rows(table, fold, resolved.config.rows, resolved.config.seed)
    if len(rows) < 2:
        raise DataError(
            f"{resolved.data.ref} has {len(rows)} row to learn from in fold {fold}; at least 2 "
            "are needed, one of them to look at"
        )
    columns = Features(table.numbers, table.categories)
    validation = None
    if VALIDATION in table.splits(fold):
        others = table.split(VALIDATION, fold)
        validation = columns.take(others), table.target[others]
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
    """Seconds an epoch of all folds, measured for about ``limit`` seconds on a model that is thrown
    away."""
    table = read_table_of(resolved.data)
    fitting = prepared(resolved, table, resolved.folds[0] if resolved.folds else 0).fitting
    fitting.advance()  # takes memory
    started, first = time.monotonic(), fitting.epoch
    while fitting.epoch == first or time.monotonic() - started < limit:
        fitting.advance()
    folds = len(resolved.folds) or len(table.file.splits)
    return folds * (time.monotonic() - started) / (fitting.epoch - first)


def train_table(draft: Draft, resolved: ResolvedTable, note: Note, progress: Progress) -> Finished:
    """Fit a model for each fold, on one or several devices, and leave their files in the draft."""
    splits = read_table_of(resolved.data).file.splits
    folds = list(resolved.folds) or list(range(len(splits)))
    fit = FoldFit(draft, resolved, folds)
    if fit.devices == 1:
        return _written(fit, [fit.fit(fold, progress, note) for fold in folds])
    # What this process computes itself uses as many threads as each worker.
    with torch_threads(threads_each(fit.devices)):
        try:
            done = list(_side_by_side(fit, progress))
            return _written(fit, sorted(done, key=lambda one: folds.index(one.fold)))
        except BaseException as error:
            if not isinstance(error, Exception):  # a signal: each process has kept its last epoch
                note("stopped; the same command goes on")
            raise


def _side_by_side(fit: FoldFit, progress: Progress) -> Iterator[FoldDone]:
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
    folds = [_fold(one.fold, one.fitted) for one in done]
    settings = TableModelSettings(
        target=table.file.target,
        features=table.file.features,
        trunk=settings_of(resolved.trunk),
        head=settings_of(resolved.head),
        normalizer=settings_of(resolved.normalizer),
    )
    trained = TrainedFolds(resolved.configuration, resolved.config.seed, folds)
    file = TableModelFile(FORMAT, settings, trained)
    write_regressor(draft.path, file, [one.fitted.model for one in done])
    write_log(draft, [record for one in done for record in one.records])
    parameters, head = done[0].fitted.model.parameter_counts()
    counts = {
        "folds": len(folds),
        "rows": sum(fold.learnt_from.rows for fold in folds),
        "unsayable": sum(one.unsayable for one in done),
        "epochs": sum(fold.fit.epochs for fold in folds),
        "steps": sum(fold.fit.steps for fold in folds),
        "samples": sum(fold.fit.samples for fold in folds),
        "parameters": parameters,
        "head_parameters": head,
    }
    return Finished(counts, _timing(fit, done, counts["samples"]))


def _timing(fit: FoldFit, done: Sequence[FoldDone], samples: int) -> dict[str, Any]:
    """Seconds of all folds added up, so speeds are those of one device."""
    seconds, flops = sum(one.seconds for one in done), sum(_flops(one.fitted) for one in done)
    rate = max(one.matmul_rate for one in done)
    share = flops / max(seconds, 1e-9) / rate
    memory = max(one.memory for one in done)
    return clocks(
        seconds, flops, {"samples": samples}, mfu=share, matmul_rate=rate, peak_memory=memory
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
