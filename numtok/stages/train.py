"""Train: encoded data or a table -> a model.

The draft holds a checkpoint, so a run that was killed goes on where it stood
and ends, on the CPU, in the same bytes. A budget in minutes is measured at the
start and frozen to steps there.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from numtok import files
from numtok.data.reading.split_rule import TRAIN
from numtok.declaration import CheckApplies, command_line, no_options
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.splits import read_codec, splits
from numtok.errors import DataError, UsageError
from numtok.registry import name_in
from numtok.settings.train import Config as Config
from numtok.store.artifact import ENCODED, MODEL, TABLE, Artifact
from numtok.store.draft import Draft
from numtok.store.store import Store
from numtok.training.checkpoint import Finished, drop_checkpoint, read_finished, write_finished
from numtok.training.device import device_count, device_of, oom_advice, tune_malloc
from numtok.training.launch import launch
from numtok.training.log import LOG_FILE
from numtok.training.loop import TrainingProgress
from numtok.training.model_files import LoadedModel, read_model
from numtok.training.model_json import MODEL_FILE, TableModelFile, read_model_file
from numtok.training.profiler import Cost
from numtok.training.ranks import ALONE, Ranks, joined, launched
from numtok.training.table_folds import FitProgress, TableFolds, pace_table
from numtok.training.table_plan import TablePlan
from numtok.training.text_learner import VALIDATION as VALIDATION
from numtok.training.text_learner import pace_texts, train_texts
from numtok.training.text_plan import TextPlan
from numtok.training.weights import WEIGHTS

Progress = Callable[[TrainingProgress | FitProgress], None]
REVISION, TABLE_REVISION = 3, 1


@dataclass(frozen=True)
class Result:
    """The model, whether this call made it, and what a step costs if that was asked for; of
    several processes that a launcher started, whether this is the one that speaks."""

    artifact: Artifact
    made: bool
    costs: Sequence[Cost] = ()
    speaks: bool = True


@dataclass(frozen=True)
class _TrainPlan:
    """What is trained, of texts or of a table.

    settings
        What the version depends on.
    less_memory
        With what memory is out, and what needs less of it.
    files
        Those of the model.
    train
        Leaves them in the draft; and what a step costs, if that was asked for.
    """

    name: str
    settings: dict[str, Any]
    parents: list[Artifact]
    command: list[str]
    device: torch.device
    less_memory: str
    files: Sequence[str]
    train: Callable[[Draft, Progress], tuple[Finished, Sequence[Cost]]]
    ranks: int  # that ``--devices`` starts for it

    def learn(self, draft: Draft, progress: Progress) -> tuple[Finished, Sequence[Cost]]:
        """``train``, with memory kept between steps; TrainingFailed with advice for lack of it."""
        if self.device.type == "cpu":
            tune_malloc()
        with oom_advice(self.less_memory):
            return self.train(draft, progress)


def run(
    config: Config,
    store: Store,
    progress: Progress,
    check: CheckApplies = no_options,
) -> Result:
    """Train a model, of a table one for each fold, or find the one that is there. ``check`` may
    refuse options that are not for texts, or not for tables.

    Raises UsageError, DataError, StoreError, and TrainingFailed (a loss that is not finite, no
    memory). An interrupt is answered by a checkpoint first; the same call then continues.
    """
    data = store.resolve(config.data, kinds={ENCODED, TABLE})
    of_table = data.kind == TABLE
    check(*("tables", "a table") if of_table else ("texts", "encoded data"))
    if config.profile is not None:
        files.check_output("--profile", config.profile)
    with joined(device_of(config.device)) as ranks:
        plan = (_of_table if of_table else _of_texts)(config, data, store, ranks)
        if not ranks.first:
            return _follow(plan, store, ranks)
        return _make(plan, config, store, progress, ranks)


def pace(config: Config, store: Store, limit: float) -> float:
    """Seconds a step of texts, or an epoch of all folds of a table, as this process would train:
    measured for about ``limit`` seconds, and nothing is kept of it.

    Raises as :func:`run`.
    """
    data = store.resolve(config.data, kinds={ENCODED, TABLE})
    if data.kind == TABLE:
        return pace_table(TablePlan.of(config, data), limit)
    plan = _text_plan(config, data, store, ALONE)
    with ExitStack() as spools, oom_advice(_less_memory(plan)):
        return pace_texts(plan, lambda: spools.enter_context(store.spool()), store.note, limit)


def _make(
    plan: _TrainPlan, config: Config, store: Store, progress: Progress, ranks: Ranks
) -> Result:
    """What one process does, or the first of several."""
    parents, command = [one.as_parent() for one in plan.parents], ["numtok", "train", *plan.command]
    with store.draft(MODEL, plan.name, plan.settings, parents, command, config) as draft:
        finished = None if isinstance(draft, Artifact) else read_finished(draft)
        ranks.agreed(None if finished or isinstance(draft, Artifact) else draft)
        if isinstance(draft, Artifact):
            ranks.agreed(draft.ref)
            if config.profile:
                raise UsageError(
                    f"--profile: {draft.ref} is there already, so nothing is trained that could be "
                    "profiled; add --force"
                )
            if config.log:
                store.note(f"{draft.ref} is there already, so nothing is logged; add --force")
            return Result(draft, made=False)
        costs: Sequence[Cost] = ()
        if finished is None:
            if plan.ranks > 1:
                finished, costs = _launch(plan.ranks, config, store, draft, progress)
            else:
                finished, costs = plan.learn(draft, progress)
            write_finished(draft, plan.files, finished)
        drop_checkpoint(draft)
        artifact = draft.publish(finished.counts, finished.timing)
        ranks.agreed(artifact.ref)
        return Result(artifact, made=True, costs=costs)


def _follow(plan: _TrainPlan, store: Store, ranks: Ranks) -> Result:
    """What another rank does, which writes nothing."""
    draft = ranks.agreed(None)
    if draft is not None:
        plan.learn(draft, _untold)
    return Result(store.resolve(ranks.agreed("")), made=False, speaks=False)


def _launch(
    count: int, config: Config, store: Store, draft: Draft, progress: Progress
) -> tuple[Finished, Sequence[Cost]]:
    """Have ranks leave the files of the model in the draft of this process."""

    def told(thing: Any) -> None:
        store.note(thing) if isinstance(thing, str) else progress(thing)

    with store.spool() as folder:
        return launch(count, _rank, (config, store.root, draft), told, folder)


def _rank(
    tell: Callable[[Any], None], config: Config, root: Path, draft: Draft
) -> tuple[Finished, Sequence[Cost]]:
    """One of the ranks that :func:`_launch` starts."""
    store = Store(root, tell)
    with joined(device_of(config.device)) as ranks:
        data = store.resolve(config.data, kinds={ENCODED})
        return _of_texts(config, data, store, ranks).learn(draft, tell)


def _untold(progress: TrainingProgress | FitProgress) -> None:
    """The first rank tells how far all are."""


def _text_plan(config: Config, encoded: Artifact, store: Store, ranks: Ranks) -> TextPlan:
    if TRAIN not in splits(encoded):
        raise DataError(f"{encoded.ref} has no split {TRAIN!r} to learn from; encode one")
    codec = read_codec(encoded)
    init = _init(config, encoded, codec.digest, store)
    return TextPlan.of(config, encoded, codec, init, ranks)


def _of_texts(config: Config, encoded: Artifact, store: Store, ranks: Ranks) -> _TrainPlan:
    plan = _text_plan(config, encoded, store, ranks)

    def train(draft: Draft, progress: Progress) -> tuple[Finished, Sequence[Cost]]:
        with ExitStack() as spools:
            return train_texts(
                draft, plan, lambda: spools.enter_context(store.spool()), store.note, progress
            )

    return _TrainPlan(
        config.name or f"{encoded.name}-{name_in(plan.preset)}",
        {"stage": "train", "revision": REVISION} | plan.settings,
        [encoded, *([plan.init.artifact] if plan.init else [])],
        command_line(plan.config, "texts"),
        plan.device,
        _less_memory(plan),
        (WEIGHTS, MODEL_FILE, SCHEME_FILE, LOG_FILE),
        train,
        1 if launched() else device_count(config.devices, plan.device),
    )


def _of_table(config: Config, table: Artifact, store: Store, ranks: Ranks) -> _TrainPlan:
    plan = TablePlan.of(config, table)
    if ranks.count > 1:
        raise UsageError(
            f"{table.ref} is a table, which one process trains; leave the launcher out"
        )

    devices = device_count(config.devices, plan.device)

    def train(draft: Draft, progress: Progress) -> tuple[Finished, Sequence[Cost]]:
        return TableFolds.of(draft, plan, devices, progress, store.note).learn(), ()

    return _TrainPlan(
        config.name or f"{table.name}-{plan.head_name}",
        {"stage": "fit", "revision": TABLE_REVISION} | plan.settings,
        [table],
        command_line(plan.config, "tables"),
        plan.device,
        f"--batch {config.batch}; give a smaller one, or a smaller --preset",
        (WEIGHTS, MODEL_FILE, LOG_FILE),
        train,
        ranks=1,
    )


def _init(config: Config, encoded: Artifact, digest: str, store: Store) -> LoadedModel | None:
    """The model that is begun with; UsageError for one of tables, or of another encoding."""
    if config.init is None:
        return None
    begun = store.resolve(config.init, kinds={MODEL})
    file = read_model_file(begun)
    if isinstance(file, TableModelFile):
        raise UsageError(f"--init {begun.ref} is a model of tables; begin with one of texts")
    init = read_model(begun, torch.device("cpu"), file)
    if init.codec.digest != digest:
        raise UsageError(
            f"--init {init.artifact.ref} was trained on another encoding than "
            f"{encoded.ref}; `numtok encode --like {init.artifact.ref}` encodes data for it"
        )
    return init


def _less_memory(plan: TextPlan) -> str:
    """With what memory is out, and what needs less of it."""
    config, parts = plan.config, plan.config.accumulate
    had, less = f"--batch {config.batch}", []
    if parts > 1:
        had += f" --accumulate {parts}"
    if parts < config.batch:
        less.append(f"--accumulate {min(2 * parts, config.batch)}, the same steps in smaller parts")
    if not config.recompute and plan.chosen.trunk.recomputes:
        less.append("--recompute, the same steps in more time")
    return f"{had}; give " + ", or ".join([*less, "a smaller --preset"])
