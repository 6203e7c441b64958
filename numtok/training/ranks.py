"""Processes that train one model together, each with a part of every batch: its ranks.

What one of them alone does it does as ever; there is no other code for it. All ranks take the same
steps, so each of these methods is called by all of them, or by none. The group is torch's own
(gloo between processes of CPUs, nccl between GPUs); flags and Python values go through gloo.
"""

import atexit
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed

# Its functions have the group as a default that there is when it is imported, which learning on
# copies does. Imported before, it keeps no group, and no threads, past the end of Python, where one
# that lets go of a tensor aborts the process.
from torch.distributed.nn import functional as functional

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
