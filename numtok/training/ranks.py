"""Ranks: processes that train one model together, each on a part of every batch.

A single process runs the same code. All ranks take the same steps, so all of them call a method of
:class:`Ranks`, or none does. The group is PyTorch's (gloo between CPU processes, nccl between
GPUs); flags and Python values go through gloo.
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

# Its functions have the group of the time of import as a default, and training on copies imports
# it. Imported before there is a group, it keeps none, and no threads, past the end of Python, where
# a thread that releases a tensor aborts the process.
from torch.distributed.nn import functional as functional
from torch.nn.parallel import DistributedDataParallel

from numtok.models.inputs import ModelInputs
from numtok.models.model import Losses, Model

T = TypeVar("T")

#: After so long without an answer from a rank that hangs the others give up.
PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True)
class Ranks:
    """``rank`` of ``count``; the first one, 0, writes what is written.

    >>> alone = Ranks()
    >>> alone.any(False, True), alone.gathered(3), alone.first
    ([False, True], [3], True)
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this one writes."""
        return self.rank == 0

    def total(self, tensor: Tensor) -> Tensor:
        """The sum over all ranks, of any shape; for one the tensor itself."""
        if self.count == 1:
            return tensor
        summed = tensor.clone()
        distributed.all_reduce(summed)
        return summed

    def any(self, *flags: bool) -> list[bool]:
        """Of each flag whether any rank has it set."""
        if self.count == 1:
            return list(flags)
        every = torch.tensor(flags, dtype=torch.uint8)  # of the host: no device is waited for
        distributed.all_reduce(every, distributed.ReduceOp.MAX)
        return [bool(one) for one in every.tolist()]

    def gathered(self, value: T) -> list[T]:
        """What each has, in the order of ranks."""
        if self.count == 1:
            return [value]
        found: list[T | None] = [None] * self.count
        distributed.all_gather_object(found, value)
        return found  # type: ignore[return-value]

    def agreed(self, value: T) -> T:
        """What the first has."""
        if self.count == 1:
            return value
        told = [value]
        distributed.broadcast_object_list(told)
        return told[0]


ALONE = Ranks()


def launched() -> bool:
    """Whether a launcher (numtok's own, torchrun, Slurm with its variables) started this process
    as one of several ranks."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """The ranks that this process is one of, as the launcher's variables say; alone without."""
    if not launched():
        yield ALONE
        return
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Ranks(distributed.get_rank(), distributed.get_world_size())
    except BaseException:
        # Later: once it has left, the others fail for want of it, maybe before it has said why.
        atexit.register(_leave)
        raise
    _leave()


def _leave() -> None:
    """End the group, which waits for its threads. They ask for Python's lock as they let go of
    tensors, and what learns on copies would keep it, were it the last to let go of the group."""
    gc.collect()
    distributed.destroy_process_group()


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor of any shape, of which each rank has a part; all ranks ask for it together.
    Of one that is nobody's part the tensor itself."""
    return tensor.full_tensor() if _is_part(tensor) else tensor  # type: ignore[attr-defined]


def part_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Of a tensor that each rank has whole what it has of the other one, which is of the same
    shape; on the device of that."""
    if not _is_part(other):
        return tensor.to(other.device)
    from torch.distributed.tensor import DTensor, distribute_tensor  # late: half a second

    assert isinstance(other, DTensor)
    mesh, places = other.device_mesh, other.placements
    return distribute_tensor(tensor.to(other.device), mesh, places, src_data_rank=None)


def _is_part(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")  # of torch.distributed.tensor.DTensor alone


_LossesOf = Callable[[ModelInputs], Losses]


class Placement:
    """How a model lies on the ranks that train it: whole on one, a copy or a part on each.

    PyTorch averages the gradients of ranks, and training needs their sum, so a loss is multiplied
    by ``times`` before its gradient is taken.
    """

    times = 1
    apart = True  #: whether each rank may run the model by itself, without the others

    def __init__(self, losses: _LossesOf) -> None:
        self._losses = losses

    def losses(self, given: ModelInputs, last: bool) -> Losses:
        """What is learnt; ``last``: of the parts of a batch the last one."""
        return self._losses(given)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Within the block the model may be called in any way, without gradients."""
        yield


class _Copies(Placement):
    """A copy on each rank; gradients are exchanged once a batch, with its last part."""

    def __init__(self, model: Model, losses: _LossesOf, ranks: Ranks) -> None:
        super().__init__(losses)
        self.times = ranks.count
        self._together = DistributedDataParallel(_Learnt(model, losses))
        self._together.broadcast_buffers = False  # they are constants

    def losses(self, given: ModelInputs, last: bool) -> Losses:
        self._together.require_backward_grad_sync = last
        return self._together(given)  # type: ignore[no-any-return]


class _Shards(Placement):
    """A part of each weight, its gradient and its moments on each rank. What a trunk runs in turn
    is whole on a device only while it runs, all else from the first of a step to its last."""

    apart = False

    def __init__(self, model: Model, losses: _LossesOf, ranks: Ranks, device: torch.device) -> None:
        super().__init__(losses)
        self.times = ranks.count
        # Late: it takes half a second, and few need it.
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(device.type, (ranks.count,))
        for part in model.trunk.in_turn():  # each goes to the device, and only a part of it stays
            fully_shard(part, mesh=mesh)
        self._learnt = _Learnt(model, losses)
        self._shared = fully_shard(self._learnt, mesh=mesh)  # the same module, with more methods

    def losses(self, given: ModelInputs, last: bool) -> Losses:
        return self._learnt(given)  # type: ignore[no-any-return]

    @contextmanager
    def looking(self) -> Iterator[None]:
        self._shared.unshard()
        try:
            yield
        finally:
            self._shared.reshard()


class _Learnt(nn.Module):
    """The losses of a model as a forward pass, which is what torch watches."""

    def __init__(self, model: Model, losses: _LossesOf) -> None:
        super().__init__()
        self.model = model
        self._losses = losses

    def forward(self, given: ModelInputs) -> Losses:
        return self._losses(given)


def place(
    model: Model, losses: _LossesOf, ranks: Ranks, device: torch.device, shard: bool
) -> Placement:
    """The model goes to the device, of several ranks as a copy or, with ``shard``, in parts."""
    if ranks.count > 1 and shard:
        return _Shards(model, losses, ranks, device)
    model.to(device)
    return _Copies(model, losses, ranks) if ranks.count > 1 else Placement(losses)
