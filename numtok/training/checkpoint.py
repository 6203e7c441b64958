"""Where training stands, in the draft of a model: written whole, or not at all.

A checkpoint is one safetensors file and a receipt, which holds the plain values
and vouches for the file. The receipt is replaced by one rename, so at any moment
either the old or the new checkpoint is the one that counts. Models that are learnt
side by side, each a ``part`` of an artifact, have a checkpoint each.
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
    """What a learner goes on from: tensors by name, and values that JSON can hold exactly."""

    tensors: Mapping[str, Tensor]
    plain: _P


class _Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    steps: Natural


def write_checkpoint(draft: Draft, step: int, checkpoint: Checkpoint[Any], part: str = "") -> None:
    """Make this the checkpoint, after so many steps or epochs, then drop the one before."""
    unit = _UNIT + part
    name = f"{unit}-{step:09d}.safetensors"
    tensors = {key: tensor.cpu().contiguous() for key, tensor in checkpoint.tensors.items()}
    with files.Sink(draft.path / name) as sink:
        sink.write(save(tensors))
    _write(draft, unit, [Output(name, sink.bytes, sink.sha256)], checkpoint.plain)
    _drop_files(draft.path, f"{unit}-", besides=name)


def read_checkpoint(draft: Draft, plain: type[_P], part: str = "") -> Checkpoint[_P] | None:
    """The last one that is whole, from an earlier run of this draft; its plain values are of the
    type ``plain``."""
    receipt = _read(draft, _UNIT + part, plain)
    if receipt is None or len(receipt.outputs) != 1:
        return None
    path = draft.path / receipt.outputs[0].path
    with belonging(path):
        return Checkpoint(load(files.read_bytes(path, 1 << 40)), receipt.facts)


def learner_tensors(model: nn.Module, optimizer: AdamW, keep: bool = True) -> dict[str, Tensor]:
    """The weights of a model, and both moments of each where AdamW has made a step, of the shapes
    that they have in all. Where ranks have parts of them, all put them together, and those that do
    not ``keep`` them have none."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter, {})
        mine = {f"weight.{name}": parameter.detach()}
        mine |= {f"{key}.{name}": state[key] for key in _MOMENTS if key in state}
        for key, tensor in mine.items():
            if (every := whole(tensor)) is not tensor:  # a device holds one of them at a time
                every = every.cpu()
            tensors |= {key: every} if keep else {}
    return tensors


@torch.no_grad()
def load_learner(
    model: nn.Module, optimizer: AdamW, tensors: Mapping[str, Tensor], step: int
) -> None:
    """The inverse, after so many steps."""
    for name, parameter in model.named_parameters():
        parameter.copy_(part_like(tensors[f"weight.{name}"], parameter))
        if step and parameter.requires_grad:
            moments = {key: part_like(tensors[f"{key}.{name}"], parameter) for key in _MOMENTS}
            done = torch.tensor(float(step), device=parameter.device)
            optimizer.state[parameter] = {"step": done, **moments}


@contextmanager
def belonging(path: Path) -> Iterator[None]:
    """StoreError where what a checkpoint holds is none, or not of the run that goes on with it."""
    try:
        yield
    except (SafetensorError, KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise StoreError(
            f"{path} is no checkpoint of this run ({why}); begin again with --restart"
        ) from error


class Finished(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of a model that lies whole in its draft."""

    counts: dict[str, Natural]
    timing: dict[str, Scalar]


def write_finished(draft: Draft, names: Sequence[str], finished: Finished) -> None:
    """Vouch for the files of the model; only then the checkpoint is of no more use."""
    found = [(name, *files.sha256_file(draft.path / name)) for name in names]
    _write(draft, _MODEL, [Output(name, size, digest) for name, digest, size in found], finished)


def read_finished(draft: Draft) -> Finished | None:
    """Of an earlier run that was cut short between its last step and the store."""
    receipt = _read(draft, _MODEL, Finished)
    return None if receipt is None else receipt.facts


def drop_checkpoint(draft: Draft) -> None:
    """Leave none: what is published is the model alone."""
    for folder in (draft.path / RECEIPTS, draft.path):
        _drop_files(folder, _UNIT, besides="")


def write_steps(draft: Draft, steps: int) -> None:
    """Freeze the budget: a run that continues this one takes as many steps."""
    _write(draft, _BUDGET, [], _Budget(steps))


def read_steps(draft: Draft) -> int | None:
    """The frozen budget of an earlier run."""
    receipt = _read(draft, _BUDGET, _Budget)
    return None if receipt is None else receipt.facts.steps


def _write(draft: Draft, unit: str, outputs: Sequence[Output], facts: msgspec.Struct) -> None:
    version = draft.version
    write_receipt(draft.path, unit, input=version, settings=version, outputs=outputs, facts=facts)


def _read(draft: Draft, unit: str, facts: type[_P]) -> Receipt[_P] | None:
    return draft.receipt(unit, input=draft.version, settings=draft.version, facts=facts)


def _drop_files(folder: Path, begin: str, besides: str) -> None:
    with files.reporting("clear", folder):
        for entry in files.system.scandir(folder):
            if entry.name.startswith(begin) and entry.name != besides:
                files.system.unlink(folder / entry.name)
