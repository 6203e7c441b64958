"""Fit: a table -> a model of it, or a model for each of its folds.

Folds are fitted one after the other. The draft holds a checkpoint with those
that are done and the one at work, so a run that was killed goes on at the epoch
where it stood and ends, on the CPU, in the same bytes.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypedDict

import msgspec
import torch
from torch import Tensor

from numtok import files
from numtok.data.tables.rows import VALIDATION, learnt_rows, read_table_of
from numtok.data.tables.table import Table
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.errors import DataError, UsageError
from numtok.models.heads.base import HEADS, ValueHead
from numtok.models.presets import shortest, trunk
from numtok.models.trunk_settings import unnamed
from numtok.records import LOG_FILE, MODEL, TABLE, Natural
from numtok.registry import settings_of, spec_of
from numtok.store.artifact import Artifact, check_name
from numtok.store.draft import Draft
from numtok.store.store import Store
from numtok.training.checkpoint import (
    Checkpoint,
    Finished,
    belonging,
    drop_checkpoint,
    read_checkpoint,
    read_finished,
    write_checkpoint,
    write_finished,
)
from numtok.training.device import MatmulRate, peak_memory, tune_malloc
from numtok.training.features import Features
from numtok.training.model_files import WEIGHTS
from numtok.training.regressor_files import REGRESSOR_FILE, Fold, RegressorFile, write_regressor
from numtok.training.signals import Signals
from numtok.training.table_learner import Epoch, FittingRecipe, FittingState, TableLearner
from numtok.training.trained_table import FittedTable, Preparation
from numtok.training.trainer import WHOLE_STEP, device_of, oom_advice

REVISION = 1
_CHECKPOINT_SECONDS = 60.0


@dataclass(frozen=True)
class Config:
    """What ``numtok train`` was asked for, of a table.

    ``fold``: None for all folds of the table. ``rows``: of the train split at most, drawn by the
    seed; None for all. ``normalize``: None for the head's own.
    """

    table: str
    preset: str = "mlp"
    head: str = "pointwise"
    normalize: str | None = None
    fold: int | None = None
    rows: int | None = None
    epochs: int = 300
    patience: int = 5
    validation: float = 0.1
    batch: int = 128
    learning_rate: float = 5e-4
    weight_decay: float = 0.0
    seed: int = 0
    device: str = "auto"
    name: str | None = None
    restart: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.rows is not None and self.rows < 2:
            raise UsageError(
                f"--rows {self.rows} is not possible; at least 2, one of them to look at"
            )
        self.recipe  # noqa: B018  # refuses what is not possible

    @property
    def recipe(self) -> FittingRecipe:
        return FittingRecipe(
            self.epochs,
            self.patience,
            self.validation,
            self.batch,
            self.learning_rate,
            self.weight_decay,
            self.seed,
        )


@dataclass(frozen=True)
class Result:
    """The model, and whether this call made it."""

    artifact: Artifact
    made: bool


class FitProgress(NamedTuple):
    """Where fitting stands: which of how many folds, which of at most how many epochs."""

    fold: int
    folds: int
    epoch: Epoch
    epochs: int


Progress = Callable[[FitProgress], None]


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Fit a model to each fold, or find the artifact that holds them.

    Raises UsageError, DataError, StoreError, and TrainingFailed (a loss that is not finite, no
    memory). An interrupt is answered by a checkpoint first; the same call then continues.
    """
    source = store.resolve(config.table, kinds={TABLE})
    plan = _FitPlan.of(config, source)
    with store.draft(
        MODEL,
        config.name or f"{source.name}-{plan.head_name}",
        plan.settings,
        [source.as_parent()],
        plan.command,
        restart=config.restart,
        force=config.force,
    ) as draft:
        if isinstance(draft, Artifact):
            return Result(draft, made=False)
        if plan.device.type == "cpu":
            tune_malloc()
        with oom_advice(f"--batch {config.batch}; give a smaller one, or a smaller --preset"):
            finished = read_finished(draft)
            if finished is None:
                finished = _Fit(draft, plan, read_table_of(source), progress).run()
                write_finished(draft, (WEIGHTS, REGRESSOR_FILE, LOG_FILE), finished)
            drop_checkpoint(draft)
            return Result(draft.publish(finished.counts, finished.timing), made=True)


@dataclass(frozen=True)
class _FitPlan:
    """What is fitted to what, with all defaults in place."""

    config: Config
    source: Artifact
    device: torch.device
    head: ValueHead
    normalizer: str
    folds: list[int]

    @classmethod
    def of(cls, config: Config, source: Artifact) -> "_FitPlan":
        head = HEADS.build(config.head)
        if not isinstance(head, ValueHead) or not head.of_tables:
            raise UsageError(
                f"--head {config.head} reads tokens of a text, which a table has not; give one "
                "that reads values, such as pointwise, riemann:256, mdn:5 or decoder:ud"
            )
        trunk(config.preset)
        return cls(
            config,
            source,
            device_of(config.device),
            head,
            spec_of(NORMALIZERS.build(config.normalize or head.normalizer)),
            [] if config.fold is None else [config.fold],
        )

    @property
    def head_name(self) -> str:
        """``decoder:ud,base=4 -> decoder-ud-base-4``: what a name may have in it."""
        spec = spec_of(self.head).lower()
        return "".join(one if one.isalnum() or one == "." else "-" for one in spec)

    @property
    def settings(self) -> dict[str, Any]:
        """What the version depends on."""
        return {
            "stage": "fit",
            "revision": REVISION,
            "trunk": unnamed(settings_of(trunk(self.config.preset))),
            "head": settings_of(self.head),
            "normalizer": settings_of(NORMALIZERS.build(self.normalizer)),
            "folds": self.folds,
            "recipe": asdict(self.config.recipe),
            "device": self.device.type,
            **self._rows,
        }

    @property
    def _rows(self) -> dict[str, Any]:
        """The setting ``rows``, where it says something."""
        return {} if self.config.rows is None else {"rows": self.config.rows}

    @property
    def configuration(self) -> dict[str, Any]:
        """The same for people, by which seeds of one experiment are found."""
        recipe = asdict(self.config.recipe)
        del recipe["seed"]
        shape = {"preset": shortest(self.config.preset), "normalize": self.normalizer}
        return {"scheme": spec_of(self.head)} | shape | recipe | self._rows

    @property
    def command(self) -> list[str]:
        """The command line that makes the model again."""
        config = self.config
        words = ["numtok", "train", self.source.ref, "--preset", config.preset]
        words += ["--head", spec_of(self.head), "--normalize", self.normalizer]
        words += [] if config.fold is None else ["--fold", str(config.fold)]
        words += [] if config.rows is None else ["--rows", str(config.rows)]
        words += ["--epochs", str(config.epochs), "--patience", str(config.patience)]
        words += ["--validation", repr(config.validation), "--batch", str(config.batch)]
        words += ["--lr", repr(config.learning_rate), "--weight-decay", repr(config.weight_decay)]
        words += ["--seed", str(config.seed), "--device", self.device.type]
        return words + (["--name", config.name] if config.name else [])


class _EpochRecord(TypedDict):
    """A line of ``metrics.jsonl``."""

    fold: Natural
    epoch: Natural
    train: float
    validation: float


class _FitConfiguration(TypedDict):
    """Of a checkpoint."""

    records: list[_EpochRecord]
    seconds: float
    states: list[tuple[int, FittingState]]


class _Fit:
    """One run in its draft: fold after fold, checkpoints, what is left behind."""

    def __init__(self, draft: Draft, plan: _FitPlan, table: Table, progress: Progress) -> None:
        self.draft = draft
        self.plan = plan
        self.table = table
        self.progress = progress
        self.folds = plan.folds or list(range(len(table.file.splits)))
        self.states: dict[int, tuple[dict[str, Tensor], FittingState]] = {}
        self.records: list[Mapping[str, Any]] = []
        self.seconds = 0.0
        self.unsayable = 0
        self.rate = MatmulRate(plan.device, bfloat16=False)

    def run(self) -> Finished:
        """Leave the files of the model in the draft."""
        checkpoint = read_checkpoint(self.draft, _FitConfiguration)
        if checkpoint is not None:
            self.records, self.seconds = [*checkpoint.plain["records"]], checkpoint.plain["seconds"]
            for fold, plain in checkpoint.plain["states"]:
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
            trunk=trunk(plan.config.preset),
            normalizer=plan.normalizer,
            recipe=plan.config.recipe,
            device=plan.device,
        )

    def _fit(self, fold: int, fitting: TableLearner) -> None:
        started, before, saved = time.monotonic(), self.seconds, time.monotonic()
        with Signals() as signals:
            while not fitting.done:
                epoch = fitting.advance()
                self.records.append({"fold": fold, **epoch._asdict()})
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
        plain = {"states": states, "records": self.records, "seconds": self.seconds}
        write_checkpoint(self.draft, len(self.records), Checkpoint(tensors, plain))

    def _written(self, fitted: Sequence[FittedTable]) -> Finished:
        plan, table = self.plan, self.table
        folds = [self._fold(fold, one) for fold, one in zip(self.folds, fitted, strict=True)]
        file = RegressorFile(
            target=table.file.target,
            features=table.file.features,
            trunk=unnamed(settings_of(trunk(plan.config.preset))),
            head=settings_of(plan.head),
            normalizer=settings_of(NORMALIZERS.build(plan.normalizer)),
            configuration=plan.configuration,
            seed=plan.config.seed,
            folds=folds,
        )
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
