"""train: trains a model on encoded data or a table.

The draft of the model contains a checkpoint, so an interrupted run resumes. On the CPU, the result
is byte for byte the same as that of an uninterrupted run. A budget in minutes is converted to steps
at the start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numtok import files
from numtok.errors import UsageError
from numtok.setting_scope import CheckApplies, no_options
from numtok.setting_words import command_line
from numtok.settings.train import Config as Config
from numtok.store.artifact import ENCODED, MODEL, TABLE, Artifact
from numtok.store.draft import Draft
from numtok.store.store import Store
from numtok.training.checkpoint import Finished, drop_checkpoint, read_finished, write_finished
from numtok.training.device import device_of, oom_advice, tune_malloc
from numtok.training.launch import launch
from numtok.training.loop import Cost, TrainingProgress
from numtok.training.ranks import ALONE, Ranks, joined
from numtok.training.resolved_table import ResolvedTable, resolve_table
from numtok.training.resolved_texts import ResolvedTexts, resolve_texts
from numtok.training.table_folds import FitProgress, pace_table, train_table
from numtok.training.text_learner import VALIDATION as VALIDATION
from numtok.training.text_learner import pace_texts, train_texts

Progress = Callable[[TrainingProgress | FitProgress], None]
Resolved = ResolvedTexts | ResolvedTable


@dataclass(frozen=True)
class Result:
    """Result of ``numtok train``: the model, and whether it was newly made.

    costs
        Cost of each kind of operation in a training step, if the run was profiled; otherwise empty.
    prints
        True for the process that prints the result. A launcher starts several processes, of which
        only one prints.
    """

    artifact: Artifact
    made: bool
    costs: Sequence[Cost] = ()
    prints: bool = True


def run(
    config: Config,
    store: Store,
    progress: Progress,
    check: CheckApplies = no_options,
) -> Result:
    """Train a model, or return the existing one. On a table, one model is trained per fold.

    The function ``check`` may reject options that do not apply to texts, or to tables. When
    interrupted, a run first writes a checkpoint, from which the same call resumes.

    Raises UsageError, DataError, StoreError, and TrainingFailed (the loss is not finite, or out of
    memory).
    """
    data = store.resolve(config.data, kinds={ENCODED, TABLE})
    check(*("tables", "a table") if data.kind == TABLE else ("texts", "encoded data"))
    if config.profile is not None:
        files.check_output("--trace", config.profile)
    with joined(device_of(config.device)) as ranks:
        resolved = _resolve(config, data, store, ranks)
        return _make(resolved, store, progress) if ranks.first else _follow(resolved, store)


def pace(config: Config, store: Store, limit: float) -> float:
    """Return the training time in seconds per step (texts) or per epoch of all folds (tables).

    The measurement takes about ``limit`` seconds and makes no artifact. Raises the same errors as
    :func:`run`.
    """
    data = store.resolve(config.data, kinds={ENCODED, TABLE})
    resolved = _resolve(config, data, store, ALONE)
    if isinstance(resolved, ResolvedTable):
        return pace_table(resolved, limit)
    with oom_advice(resolved.less_memory):
        return pace_texts(resolved, store.spool, store.note, limit)


def _resolve(config: Config, data: Artifact, store: Store, ranks: Ranks) -> Resolved:
    if data.kind == TABLE:
        return resolve_table(config, data, ranks)
    init = None if config.init is None else store.resolve(config.init, kinds={MODEL})
    return resolve_texts(config, data, init, ranks)


def _make(resolved: Resolved, store: Store, progress: Progress) -> Result:
    """Train in one process, or in the first of several."""
    config, ranks = resolved.config, resolved.execution.ranks
    name = config.name or resolved.default_name
    parents = [artifact.as_parent() for artifact in resolved.parents]
    command = ["numtok", "train", *command_line(config, resolved.kind)]
    with store.draft(
        MODEL, name, resolved.settings, parents=parents, command=command, how=config
    ) as draft:
        finished = None if isinstance(draft, Artifact) else read_finished(draft)
        ranks.agreed(None if finished or isinstance(draft, Artifact) else draft)
        if isinstance(draft, Artifact):
            ranks.agreed(draft.ref)
            if config.profile:
                raise UsageError(
                    f"--trace: {draft.ref} already exists, so nothing is trained or profiled. "
                    "To train again, add --force"
                )
            if config.log:
                store.note(
                    f"{draft.ref} already exists, so nothing is logged. To train again, add --force"
                )
            return Result(draft, made=False)
        costs: Sequence[Cost] = ()
        if finished is None:
            if isinstance(resolved, ResolvedTexts) and resolved.devices > 1:
                finished, costs = _launch(resolved, store, draft, progress)
            else:
                finished, costs = _train(resolved, draft, store, progress)
            write_finished(draft, resolved.files, finished)
        drop_checkpoint(draft)
        artifact = draft.publish(finished.counts, finished.timing)
        ranks.agreed(artifact.ref)
        return Result(artifact, made=True, costs=costs)


def _train(
    resolved: Resolved, draft: Draft, store: Store, progress: Progress
) -> tuple[Finished, Sequence[Cost]]:
    """Write the files of the model to the draft; TrainingFailed with advice if memory runs out."""
    if resolved.execution.device.type == "cpu":
        tune_malloc()
    with oom_advice(resolved.less_memory):
        if isinstance(resolved, ResolvedTable):
            return train_table(draft, resolved, store.note, progress), ()
        return train_texts(draft, resolved, store.spool, store.note, progress)


def _follow(resolved: Resolved, store: Store) -> Result:
    """Train in a rank other than the first, which writes nothing."""
    ranks = resolved.execution.ranks
    draft = ranks.agreed(None)
    if draft is not None:
        _train(resolved, draft, store, lambda update: None)  # the first reports for all
    return Result(store.resolve(ranks.agreed("")), made=False, prints=False)


def _launch(
    resolved: ResolvedTexts, store: Store, draft: Draft, progress: Progress
) -> tuple[Finished, Sequence[Cost]]:
    """Start ranks that write the files of the model to the draft of this process."""

    def forward(message: Any) -> None:
        store.note(message) if isinstance(message, str) else progress(message)

    with store.spool() as folder:
        arguments = resolved.config, store.root, draft
        return launch(resolved.devices, _rank, arguments, forward, folder)


def _rank(
    send: Callable[[Any], None], config: Config, root: Path, draft: Draft
) -> tuple[Finished, Sequence[Cost]]:
    """Train in one of the ranks that :func:`_launch` starts."""
    store = Store(root, send)
    with joined(device_of(config.device)) as ranks:
        data = store.resolve(config.data, kinds={ENCODED})
        return _train(_resolve(config, data, store, ranks), draft, store, send)
