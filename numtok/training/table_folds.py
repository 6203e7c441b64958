"""Fitting a model to a table, or one to each of its folds, in a draft.

Folds are fitted one after the other, or side by side by as many processes as
there are devices. Each has a checkpoint of its own in the draft, so a run that was
killed goes on at the epochs where it stood, on however many devices, and ends, on
the CPU, in the same bytes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import torch

from numtok.data.tables.rows import VALIDATION, learnt_rows, read_table_of
from numtok.data.tables.table import Table
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.errors import DataError
from numtok.models.flops import regressor_flops
from numtok.models.presets import trunk
from numtok.registry import settings_of
from numtok.store.draft import Draft
from numtok.store.engines.local import Workers
from numtok.store.engines.workers import gpu_slots, threads_each
from numtok.training.checkpoint import Finished, belonging
from numtok.training.device import peak_memory, tune_malloc
from numtok.training.features import Features
from numtok.training.log import Line
from numtok.training.model_json import (
    FORMAT,
    Fold,
    TableModelFile,
    TableModelSettings,
    TrainedFolds,
)
from numtok.training.regressor_files import write_regressor
from numtok.training.run import TrainingRun, clocks, write_log
from numtok.training.table_learner import Epoch, FittingState
from numtok.training.table_plan import TablePlan
from numtok.training.trained_table import FittedTable, Preparation
from numtok.training.trainer import WHOLE_STEP


class FitProgress(NamedTuple):
    """Where fitting stands: which of how many folds, which of at most how many epochs."""

    fold: int
    folds: int
    epoch: Epoch
    epochs: int


Progress = Callable[[FitProgress], None]
Note = Callable[[str], None]
_DIED = "run the same command again: what is finished is kept; fewer --devices need less memory"


class FoldDone(NamedTuple):
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
    """Fits the models of single folds, in any process; where each stands lies in the draft."""

    draft: Draft
    plan: TablePlan
    several: bool

    @cached_property
    def table(self) -> Table:
        """What is learnt from."""
        return read_table_of(self.plan.source)

    def fit(self, fold: int, progress: Progress, folds: int, note: Note) -> FoldDone:
        """Go on with a fold until it is done."""
        run = TrainingRun(self.draft, FittingState, self.plan.device, note, part=f"-fold{fold}")
        preparation = prepared(self.plan, self.table, fold)
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
                progress(FitProgress(fold, folds, epoch, fitting.recipe.epochs))
                after(epoch.epoch, None, f"epoch {epoch.epoch} of fold {fold}")
        if self.several and not there:
            run.save(fitting.epoch, fitting.state())
        run.rate.look_again()
        fitted = preparation.finished()
        run.rate.share(_flops(fitted) / max(run.seconds, 1e-9))
        memory = peak_memory(self.plan.device)
        return FoldDone(
            *(fold, fitted, preparation.unsayable, run.records, run.seconds),
            *(run.rate.per_second, memory),
        )


def prepared(plan: TablePlan, table: Table, fold: int) -> Preparation:
    """The model of a fold before its first epoch; DataError where it has too little to learn."""
    rows = learnt_rows(table, fold, plan.config.rows, plan.config.seed)
    if len(rows) < 2:
        raise DataError(
            f"{plan.source.ref} has {len(rows)} row to learn from in fold {fold}; at least 2 "
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
        head=plan.head,
        trunk=trunk(plan.preset),
        normalizer=plan.normalizer,
        recipe=plan.recipe,
        device=plan.device,
    )


def pace_table(plan: TablePlan, limit: float) -> float:
    """Seconds an epoch of all folds, measured for about ``limit`` seconds on a model that is thrown
    away."""
    table = read_table_of(plan.source)
    fitting = prepared(plan, table, plan.folds[0] if plan.folds else 0).fitting
    fitting.advance()  # takes memory
    started, first = time.monotonic(), fitting.epoch
    while fitting.epoch == first or time.monotonic() - started < limit:
        fitting.advance()
    folds = len(plan.folds) or len(table.file.splits)
    return folds * (time.monotonic() - started) / (fitting.epoch - first)


@dataclass(frozen=True)
class _FoldWork:
    """Fits folds in a process that has one device, and a part of the cores."""

    fit: FoldFit
    threads: int

    def __call__(self, fold: int) -> FoldDone:
        torch.set_num_threads(self.threads)
        if self.fit.plan.device.type == "cpu":
            tune_malloc()
        done = self.fit.fit(fold, _untold, 1, _untold)
        done.fitted.model.cpu()  # what goes to another process
        return done


def _untold(told: object) -> None:
    """Who follows a fold from another process: nobody."""


@dataclass(frozen=True, eq=False)
class TableFolds:
    """One run on a table: a model for each fold, on so many devices."""

    fit: FoldFit
    folds: Sequence[int]
    devices: int
    progress: Progress
    note: Note

    @classmethod
    def of(
        cls, draft: Draft, plan: TablePlan, devices: int, progress: Progress, note: Note
    ) -> "TableFolds":
        """``devices`` at most: no more than there are folds."""
        fit = FoldFit(draft, plan, several=True)
        folds = plan.folds or list(range(len(fit.table.file.splits)))
        fit = replace(fit, several=len(folds) > 1)
        return cls(fit, folds, min(devices, len(folds)), progress, note)

    def learn(self) -> Finished:
        """Leave the files of the model in the draft."""
        if self.devices == 1:
            count = len(self.folds)
            return self._written(
                [self.fit.fit(fold, self.progress, count, self.note) for fold in self.folds]
            )
        with _cores(self.devices), self._stopping():
            done = list(self._side_by_side())
            return self._written(sorted(done, key=lambda one: self.folds.index(one.fold)))

    def _side_by_side(self) -> Iterator[FoldDone]:
        device = self.fit.plan.device
        gpus = gpu_slots(self.devices, torch.cuda.device_count()) if device.type == "cuda" else ()
        work = _FoldWork(self.fit, threads_each(self.devices))
        with Workers(self.devices, gpus, _DIED) as workers:
            for done in workers.run(work, self.folds):
                last = msgspec.convert([done.records[-1][name] for name in Epoch._fields], Epoch)
                epochs = self.fit.plan.recipe.epochs
                self.progress(FitProgress(done.fold, len(self.folds), last, epochs))
                yield done

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            raise
        except BaseException:  # a signal: each process has ended its epoch and kept it
            self.note("stopped; the same command goes on")
            raise

    def _written(self, done: Sequence[FoldDone]) -> Finished:
        draft, plan, table = self.fit.draft, self.fit.plan, self.fit.table
        folds = [_fold(one.fold, one.fitted) for one in done]
        settings = TableModelSettings(
            target=table.file.target,
            features=table.file.features,
            trunk=settings_of(trunk(plan.preset)),
            head=settings_of(plan.head),
            normalizer=settings_of(NORMALIZERS.build(plan.normalizer)),
        )
        trained = TrainedFolds(plan.configuration, plan.config.seed, folds)
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
        return Finished(counts, self._timing(done, counts["samples"]))

    def _timing(self, done: Sequence[FoldDone], samples: int) -> dict[str, Any]:
        """Seconds of all folds added up, so speeds are those of one device."""
        seconds, flops = sum(one.seconds for one in done), sum(_flops(one.fitted) for one in done)
        rate = max(one.matmul_rate for one in done)
        share = flops / max(seconds, 1e-9) / rate
        memory = max(one.memory for one in done)
        device = {"device": self.fit.plan.device.type, "devices": self.devices}
        return clocks(seconds, flops, {"samples": samples}, share, rate, memory) | device


def _fold(fold: int, fitted: FittedTable) -> Fold:
    return Fold(
        fold,
        fitted.inputs,
        fitted.scaling.constants,
        fitted.calibration,
        fitted.learnt_from,
        fitted.fit,
        _flops(fitted),
    )


def _flops(fitted: FittedTable) -> float:
    return float(WHOLE_STEP * regressor_flops(fitted.model, fitted.fit.samples))


@contextmanager
def _cores(processes: int) -> Iterator[None]:
    """What this process does itself it does as each of several does, with as many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads_each(processes))
    try:
        yield
    finally:
        torch.set_num_threads(before)
