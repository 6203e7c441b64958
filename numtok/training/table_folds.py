"""Fitting a model to a table, or one to each of its folds, in a draft.

Folds are fitted one after the other. The draft holds a checkpoint with those
that are done and the one at work, so a run that was killed goes on at the epoch
where it stood and ends, on the CPU, in the same bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from numtok.data.tables.rows import VALIDATION, learnt_rows
from numtok.data.tables.table import Table
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.errors import DataError
from numtok.models.presets import trunk
from numtok.registry import settings_of
from numtok.training.checkpoint import Checkpoint, Finished, belonging
from numtok.training.features import Features
from numtok.training.model_json import (
    FORMAT,
    Fold,
    TableModelFile,
    TableModelSettings,
    TrainedFolds,
)
from numtok.training.regressor_files import write_regressor
from numtok.training.run import TrainingRun
from numtok.training.table_learner import Epoch, FittingState, TableLearner
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


class FoldStates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The folds that were begun, in order: all but the last are done."""

    states: list[tuple[int, FittingState]]


@dataclass(eq=False)
class TableFolds:
    """One run on a table: a model for each fold, one after the other."""

    run: TrainingRun[FoldStates]
    plan: TablePlan
    table: Table
    progress: Progress
    states: dict[int, Checkpoint[FittingState]] = field(default_factory=dict)
    unsayable: int = 0

    @property
    def folds(self) -> list[int]:
        """Those to be fitted."""
        return self.plan.folds or list(range(len(self.table.file.splits)))

    def learn(self) -> Finished:
        """Leave the files of the model in the draft."""
        if (checkpoint := self.run.checkpoint()) is not None:
            for fold, plain in checkpoint.plain.states:
                own = ((name.partition("."), one) for name, one in checkpoint.tensors.items())
                tensors = {name: one for (of, _, name), one in own if of == f"fold{fold}"}
                self.states[fold] = Checkpoint(tensors, plain)
        fitted = []
        for fold in self.folds:
            preparation = self._prepared(fold)
            self.unsayable += preparation.unsayable
            fitting = preparation.fitting
            if fold in self.states:
                with belonging(self.run.draft.path):
                    fitting.load(*self.states[fold])
            self._fit(fold, fitting)
            self.run.rate.look_again()
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
        def state() -> Checkpoint[FoldStates]:
            states = self.states | {fold: fitting.state()}
            tensors = {
                f"fold{fold}.{name}": tensor
                for fold, (tensors, _) in states.items()
                for name, tensor in tensors.items()
            }
            plain = FoldStates([(fold, plain) for fold, (_, plain) in states.items()])
            return Checkpoint(tensors, plain)

        with self.run.going(state) as after:
            while not fitting.done:
                epoch = fitting.advance()
                self.run.records.append({"fold": fold, **epoch._asdict()})
                self.progress(FitProgress(fold, len(self.folds), epoch, fitting.recipe.epochs))
                after(len(self.run.records), None, f"epoch {epoch.epoch} of fold {fold}")

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
        write_regressor(self.run.draft.path, file, [one.model for one in fitted])
        self.run.write_log()
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
        return Finished(counts, self.run.timing(flops, {"samples": counts["samples"]}))

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
