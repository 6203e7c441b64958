"""Ranks: processes that train one model together, each on a part of every batch.

A single process runs the same code. The methods of :class:`Ranks` are collective: all ranks must
call them. The process group is PyTorch's (gloo between CPUs, nccl between GPUs); flags and Python
values always use gloo.
"""

import atexit
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn

# Imported early, before there is a process group: its functions capture the current group as a
# default, and DistributedDataParallel imports it. A captured group keeps threads alive after Python
# ends, and a thread that then releases a tensor aborts the process.
from torch.distributed.nn import functional as functional
from torch.nn.parallel import DistributedDataParallel

from numtok.models.inputs import ModelInputs
from numtok.models.model import Losses, Model

T = TypeVar("T")

#: Time without an answer from a rank after which the others give up.
PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True)
class Ranks:
    """One of the processes (ranks) that train a model together. Its methods communicate with the
    others.

    This process is rank number ``rank`` of ``count``. The first rank, number 0, writes all files.

    >>> alone = Ranks()
    >>> alone.any(False, True), alone.gathered(3), alone.first
    ([False, True], [3], True)
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """True if this process is the first rank, which writes all files."""
        return self.rank == 0

    def total(self, tensor: Tensor) -> Tensor:
        """Return the sum of a tensor of any shape over all ranks.

        With a single rank, the result is the tensor itself, not a copy.
        """
        if self.count == 1:
            return tensor
        summed = tensor.clone()
        distributed.all_reduce(summed)
        return summed

    def any(self, *flags: bool) -> list[bool]:
        """For each flag, return True if at least one rank has set it."""
        if self.count == 1:
            return list(flags)
        reduced = torch.tensor(flags, dtype=torch.uint8)  # on the host, so no GPU has to finish
        distributed.all_reduce(reduced, distributed.ReduceOp.MAX)
        return [bool(flag) for flag in reduced.tolist()]

    def gathered(self, value: T) -> list[T]:
        """Return the values passed by all ranks, in rank order."""
        if self.count == 1:
            return [value]
        values: list[T | None] = [None] * self.count
        distributed.all_gather_object(values, value)
        return values  # type: ignore[return-value]

    def agreed(self, value: T) -> T:
        """Return the value of the first rank, on every rank.

        The values of the other ranks are ignored.
        """
        if self.count == 1:
            return value
        values = [value]
        distributed.broadcast_object_list(values)
        return values[0]


ALONE = Ranks()


def launched() -> bool:
    """Return whether this process was started as one of several ranks.

    Ranks are started by numtok itself, by torchrun or by Slurm.
    """
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Context manager that connects this process to the other ranks, and yields its :class:`Ranks`.

    The launcher describes the ranks in environment variables. A process that was started without a
    launcher gets :data:`ALONE`.
    """
    if not launched():
        yield ALONE
        return
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Ranks(distributed.get_rank(), distributed.get_world_size())
    except BaseException:
        # Leave at exit only: otherwise the others could fail before this rank reports the cause.
        atexit.register(_leave)
        raise
    _leave()


def _leave() -> None:
    """Destroy the process group, which waits for its threads.

    The threads need the GIL to release tensors. DistributedDataParallel would hold it if it owned
    the last reference to the group, so it is garbage-collected first.
    """
    gc.collect()
    distributed.destroy_process_group()


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor of any shape in full, gathered from all ranks if it is sharded.

    If the tensor is sharded, all ranks must call this function together.
    """
    return tensor.full_tensor() if _is_part(tensor) else tensor  # type: ignore[attr-defined]


def part_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Return ``tensor``, a full tensor of any shape, moved to the device of ``other`` and sharded
    in the same way.

    Both tensors must have the same full shape.
    """
    if not _is_part(other):
        return tensor.to(other.device)
    from torch.distributed.tensor import DTensor, distribute_tensor  # late: half a second

    assert isinstance(other, DTensor)
    mesh, placements = other.device_mesh, other.placements
    return distribute_tensor(tensor.to(other.device), mesh, placements, src_data_rank=None)


def _is_part(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")  # only DTensor has it


_LossesOf = Callable[[ModelInputs], Losses]


class Placement:
    """Placement of a model on the ranks that train it.

    This class is for a model on a single rank; its subclasses replicate or shard the model. PyTorch
    averages the gradients of the ranks, but training needs their sum, so losses are multiplied by
    ``times`` before the backward pass.
    """

    times = 1
    apart = True  #: whether a rank can run the model without the others

    def __init__(self, losses: _LossesOf) -> None:
        self._losses = losses

    def losses(self, inputs: ModelInputs, last: bool) -> Losses:
        """Compute the losses of one part of a batch. ``last`` is True for the last part."""
        return self._losses(inputs)

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Context manager that makes the whole model available for calls without gradients."""
        yield


class _Copies(Placement):
    """A replica on each rank; gradients are exchanged once per batch, with its last part."""

    def __init__(self, model: Model, losses: _LossesOf, ranks: Ranks) -> None:
        super().__init__(losses)
        self.times = ranks.count
        self._together = DistributedDataParallel(_LossModule(model, losses))
        self._together.broadcast_buffers = False  # they are constants

    def losses(self, inputs: ModelInputs, last: bool) -> Losses:
        self._together.require_backward_grad_sync = last
        return self._together(inputs)  # type: ignore[no-any-return]


class _Shards(Placement):
    """A shard of each weight, gradient and moment on each rank.

    The blocks of the trunk are gathered only while they run, all other weights for the whole step.
    """

    apart = False

    def __init__(self, model: Model, losses: _LossesOf, ranks: Ranks, device: torch.device) -> None:
        super().__init__(losses)
        self.times = ranks.count
        # Imported late: it takes half a second, and few runs need it.
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(device.type, (ranks.count,))
        for block in model.trunk.in_turn():  # moves it to the device, where only a shard remains
            fully_shard(block, mesh=mesh)
        self._module = _LossModule(model, losses)
        self._shared = fully_shard(self._module, mesh=mesh)  # the same module, with more methods

    def losses(self, inputs: ModelInputs, last: bool) -> Losses:
        return self._module(inputs)  # type: ignore[no-any-return]

    @contextmanager
    def inference(self) -> Iterator[None]:
        self._shared.unshard()
        try:
            yield
        finally:
            self._shared.reshard()


class _LossModule(nn.Module):
    """Wraps the losses of a model as a forward pass, which PyTorch's wrappers hook into."""

    def __init__(self, model: Model, losses: _LossesOf) -> None:
        super().__init__()
        self.model = model
        self._losses = losses

    def forward(self, inputs: ModelInputs) -> Losses:
        return self._losses(inputs)


def place_model(
    model: Model, losses: _LossesOf, ranks: Ranks, device: torch.device, shard: bool
) -> Placement:
    """Move a model to the device, and return its placement on the ranks.

    With several ranks, the model is sharded if ``shard`` is True and replicated otherwise.
    ``losses`` is the function that computes the model's losses.
    """
    if ranks.count > 1 and shard:
        return _Shards(model, losses, ranks, device)
    model.to(device)
    return _Copies(model, losses, ranks) if ranks.count > 1 else Placement(losses)
