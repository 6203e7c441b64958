"""Fitting a model to a table, or one to each of its folds, in a draft.

Folds are fitted one after the other. The draft holds a checkpoint with those
that are done and the one at work, so a run that was killed goes on at the epoch
where it stood and ends, on the CPU, in the same bytes.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor

from numtok import files
from numtok.data.tables.rows import VALIDATION, learnt_rows
from numtok.data.tables.table import Table
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.errors import DataError
from numtok.models.presets import trunk
from numtok.records import LOG_FILE, Natural
from numtok.registry import settings_of
from numtok.store.draft import Draft
from numtok.training.checkpoint import (
    Checkpoint,
    Finished,
    belonging,
    read_checkpoint,
    write_checkpoint,
)
from numtok.training.device import MatmulRate, peak_memory
from numtok.training.features import Features
from numtok.training.model_json import (
    FORMAT,
    Fold,
    TableModelFile,
    TableModelSettings,
    TrainedFolds,
)
from numtok.training.regressor_files import write_regressor
from numtok.training.signals import Signals
from numtok.training.table_learner import Epoch, FittingState, TableLearner
from numtok.training.table_plan import TablePlan
from numtok.training.trained_table import FittedTable, Preparation
from numtok.training.trainer import WHOLE_STEP

_CHECKPOINT_SECONDS = 60.0


class FitProgress(NamedTuple):
    """Where fitting stands: which of how many folds, which of at most how many epochs."""

    fold: int
    folds: int
    epoch: Epoch
    epochs: int


Progress = Callable[[FitProgress], None]


class _EpochRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of ``metrics.jsonl``."""

    fold: Natural
    epoch: Natural
    train: float
    validation: float


class _FitState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a checkpoint."""

    records: list[_EpochRecord]
    seconds: float
    states: list[tuple[int, FittingState]]


class TableFolds:
    """One run in its draft: fold after fold, checkpoints, what is left behind."""

    def __init__(self, draft: Draft, plan: TablePlan, table: Table, progress: Progress) -> None:
        self.draft = draft
        self.plan = plan
        self.table = table
        self.progress = progress
        self.folds = plan.folds or list(range(len(table.file.splits)))
        self.states: dict[int, tuple[dict[str, Tensor], FittingState]] = {}
        self.records: list[_EpochRecord] = []
        self.seconds = 0.0
        self.unsayable = 0
        self.rate = MatmulRate(plan.device, bfloat16=False)

    def run(self) -> Finished:
        """Leave the files of the model in the draft."""
        checkpoint = read_checkpoint(self.draft, _FitState)
        if checkpoint is not None:
            self.records, self.seconds = checkpoint.plain.records, checkpoint.plain.seconds
            for fold, plain in checkpoint.plain.states:
                prefix = f"fold{fold}."
                tensors = {
                    name.removeprefix(prefix): tensor
                    for name, tensor in checkpoint.tensors.items()
                    if name.startswith(prefix)
                }
                self.states[fold] = tensors, plain
        fitted = []
        for fold in self.folds:
            preparation = self._prepared(fold)
            self.unsayable += preparation.unsayable
            fitting = preparation.fitting
            if fold in self.states:
                with belonging(self.draft.path):
                    fitting.load(*self.states[fold])
            self._fit(fold, fitting)
            self.rate.look_again()
            self.states[fold] = fitting.state()
            fitted.append(preparation.finished())
        return self._written(fitted)

    def _prepared(self, fold: int) -> Preparation:
        plan, table = self.plan, self.table
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

    def _fit(self, fold: int, fitting: TableLearner) -> None:
        started, before, saved = time.monotonic(), self.seconds, time.monotonic()
        with Signals() as signals:
            while not fitting.done:
                epoch = fitting.advance()
                self.records.append(_EpochRecord(fold, **epoch._asdict()))
                self.progress(FitProgress(fold, len(self.folds), epoch, fitting.recipe.epochs))
                self.seconds = before + time.monotonic() - started
                stop = signals.received is not None
                if stop or time.monotonic() - saved > _CHECKPOINT_SECONDS:
                    self.states[fold] = fitting.state()
                    self._save()
                    saved = time.monotonic()
                if stop:
                    signals.deliver()

    def _save(self) -> None:
        tensors = {
            f"fold{fold}.{name}": tensor
            for fold, (tensors, _) in self.states.items()
            for name, tensor in tensors.items()
        }
        states = [(fold, plain) for fold, (_, plain) in self.states.items()]
        plain = _FitState(self.records, self.seconds, states)
        write_checkpoint(self.draft, len(self.records), Checkpoint(tensors, plain))

    def _written(self, fitted: Sequence[FittedTable]) -> Finished:
        plan, table = self.plan, self.table
        folds = [self._fold(fold, one) for fold, one in zip(self.folds, fitted, strict=True)]
        settings = TableModelSettings(
            target=table.file.target,
            features=table.file.features,
            trunk=settings_of(trunk(plan.preset)),
            head=settings_of(plan.head),
            normalizer=settings_of(NORMALIZERS.build(plan.normalizer)),
        )
        trained = TrainedFolds(plan.configuration, plan.config.seed, folds)
        file = TableModelFile(FORMAT, settings, trained)
        write_regressor(self.draft.path, file, [one.model for one in fitted])
        # Sorted, because a checkpoint gives the fields back in another order.
        lines = [msgspec.json.encode(record, order="sorted") + b"\n" for record in self.records]
        files.write_atomic(self.draft.path / LOG_FILE, b"".join(lines))
        parameters, head = fitted[0].model.parameter_counts()
        counts = {
            "folds": len(folds),
            "rows": sum(fold.learnt_from.rows for fold in folds),
            "unsayable": self.unsayable,
            "epochs": sum(fold.fit.epochs for fold in folds),
            "steps": sum(fold.fit.steps for fold in folds),
            "samples": sum(fold.fit.samples for fold in folds),
            "parameters": parameters,
            "head_parameters": head,
        }
        flops = sum(fold.flops for fold in folds)
        return Finished(counts, self._timing(counts["samples"], flops))

    def _fold(self, fold: int, fitted: FittedTable) -> Fold:
        return Fold(
            fold,
            fitted.inputs,
            fitted.scaling.constants,
            fitted.calibration,
            fitted.learnt_from,
            fitted.fit,
            float(WHOLE_STEP * fitted.model.flops(fitted.fit.samples)),
        )

    def _timing(self, samples: int, flops: float) -> dict[str, Any]:
        device, seconds = self.plan.device, max(self.seconds, 1e-9)
        return {
            "seconds": self.seconds,
            "samples_per_second": samples / seconds,
            "flops_per_second": flops / seconds,
            "mfu": self.rate.share(flops / seconds),
            "peak_memory": peak_memory(device),
            "threads": torch.get_num_threads(),
        }
