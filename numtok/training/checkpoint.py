"""Checkpoints of a training run, written atomically to the model's draft.

A draft is an artifact that is not published yet (:class:`numtok.store.draft.Draft`). A checkpoint
consists of a safetensors file with the tensors, and a receipt: a small JSON file with all other
values and the digest of the safetensors file. The receipt is replaced in a single rename, so a
crash leaves either the old or the new checkpoint valid.

If several models in one artifact are trained in parallel, such as the folds of a table, each has
its own checkpoint, named by ``part``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from numtok import files
from numtok.errors import StoreError
from numtok.store.artifact import RECEIPTS, Output
from numtok.store.draft import Draft
from numtok.store.receipts import Receipt, write_receipt
from numtok.stored_json import Natural, Scalar
from numtok.training.adamw import AdamW
from numtok.training.ranks import part_like, whole

_UNIT, _BUDGET, _MODEL = "checkpoint", "budget", "model"
_MOMENTS = ("exp_avg", "exp_avg_sq")
_P = TypeVar("_P", bound=msgspec.Struct)


class Checkpoint(NamedTuple, Generic[_P]):
    """The state that training resumes from.

    tensors
        Tensors keyed by name, such as weights and optimizer moments.
    plain
        All other values, as a struct that can be stored as JSON without loss.
    """

    tensors: Mapping[str, Tensor]
    plain: _P


class _Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    steps: Natural


def write_checkpoint(draft: Draft, step: int, checkpoint: Checkpoint[Any], part: str) -> None:
    """Write a checkpoint to a draft, then delete the previous one.

    step
        Number of finished steps, or of finished epochs for table models.
    part
        Suffix that identifies the model if the draft has several, such as ``-fold3``.
    """
    unit = _UNIT + part
    name = f"{unit}-{step:09d}.safetensors"
    tensors = {key: tensor.cpu().contiguous() for key, tensor in checkpoint.tensors.items()}
    with files.Sink(draft.path / name) as sink:
        sink.write(save(tensors))
    _write(draft, unit, [Output(name, sink.bytes, sink.sha256)], checkpoint.plain)
    _drop_files(draft.path, f"{unit}-", keep=name)


def read_checkpoint(draft: Draft, plain: type[_P], part: str) -> Checkpoint[_P] | None:
    """Return the last complete checkpoint in a draft, or None if the draft has none.

    plain
        Type of the checkpoint's plain values.
    part
        Suffix that identifies the model if the draft has several, such as ``-fold3``.

    Raises StoreError if the checkpoint is malformed.
    """
    receipt = _read(draft, _UNIT + part, plain)
    if receipt is None or len(receipt.outputs) != 1:
        return None
    path = draft.path / receipt.outputs[0].path
    with checking_checkpoint(path):
        return Checkpoint(load(files.read_bytes(path, 1 << 40)), receipt.facts)


def learner_tensors(model: nn.Module, optimizer: AdamW, keep: bool = True) -> dict[str, Tensor]:
    """Return the weights of a model and, after the first step, their AdamW moments, keyed by name.

    Sharded weights are gathered, so all ranks must call this function together. Ranks with
    ``keep=False`` return an empty dictionary.
    """
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter, {})
        own = {f"weight.{name}": parameter.detach()}
        own |= {f"{key}.{name}": state[key] for key in _MOMENTS if key in state}
        for key, tensor in own.items():
            if (full := whole(tensor)) is not tensor:  # a device holds one of them at a time
                full = full.cpu()
            tensors |= {key: full} if keep else {}
    return tensors


@torch.no_grad()
def load_learner(
    model: nn.Module, optimizer: AdamW, tensors: Mapping[str, Tensor], step: int
) -> None:
    """Restore weights and optimizer state from the tensors that :func:`learner_tensors` returned.

    ``step`` is the number of finished steps. If it is 0, the optimizer has no state to restore.
    """
    for name, parameter in model.named_parameters():
        parameter.copy_(part_like(tensors[f"weight.{name}"], parameter))
        if step and parameter.requires_grad:
            moments = {key: part_like(tensors[f"{key}.{name}"], parameter) for key in _MOMENTS}
            done = torch.tensor(float(step), device=parameter.device)
            optimizer.state[parameter] = {"step": done, **moments}


@contextmanager
def checking_checkpoint(path: Path) -> Iterator[None]:
    """Context manager that turns errors while loading a checkpoint into StoreError.

    Such errors mean that the checkpoint at ``path`` is malformed or belongs to another run.
    """
    try:
        yield
    except (SafetensorError, KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise StoreError(
            f"{path} is not a checkpoint of this run ({why}). Start over: --restart"
        ) from error


class Finished(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a finished training run, whose model files are complete in the draft.

    counts
        Sizes for the artifact's manifest, such as the numbers of rows, steps and parameters.
    timing
        Contents of ``timing.json``.
    """

    counts: dict[str, Natural]
    timing: dict[str, Scalar]


def write_finished(draft: Draft, names: Sequence[str], finished: Finished) -> None:
    """Write a receipt that marks the model files ``names`` as complete.

    The checkpoint is no longer needed afterwards.
    """
    digests = [(name, *files.sha256_file(draft.path / name)) for name in names]
    _write(draft, _MODEL, [Output(name, size, digest) for name, digest, size in digests], finished)


def read_finished(draft: Draft) -> Finished | None:
    """Return the result that :func:`write_finished` recorded, or None if training has not finished.

    There is a result if an earlier run finished training but ended before publishing the model.
    """
    receipt = _read(draft, _MODEL, Finished)
    return None if receipt is None else receipt.facts


def drop_checkpoint(draft: Draft) -> None:
    """Delete all checkpoints in a draft, so that only the model files are published."""
    for folder in (draft.path / RECEIPTS, draft.path):
        _drop_files(folder, _UNIT, keep="")


def write_steps(draft: Draft, steps: int) -> None:
    """Record the number of training steps, so that a resumed run trains for the same number.

    Otherwise, a budget in minutes would be converted to steps again, with a different result.
    """
    _write(draft, _BUDGET, [], _Budget(steps))


def read_steps(draft: Draft) -> int | None:
    """Return the number of steps that :func:`write_steps` recorded in an earlier run, or None."""
    receipt = _read(draft, _BUDGET, _Budget)
    return None if receipt is None else receipt.facts.steps


def _write(draft: Draft, unit: str, outputs: Sequence[Output], facts: msgspec.Struct) -> None:
    version = draft.version
    write_receipt(draft.path, unit, input=version, settings=version, outputs=outputs, facts=facts)


def _read(draft: Draft, unit: str, facts: type[_P]) -> Receipt[_P] | None:
    return draft.receipt(unit, input=draft.version, settings=draft.version, facts=facts)


def _drop_files(folder: Path, begin: str, keep: str) -> None:
    with files.reporting("clear", folder):
        for entry in files.system.scandir(folder):
            if entry.name.startswith(begin) and entry.name != keep:
                files.system.unlink(folder / entry.name)
