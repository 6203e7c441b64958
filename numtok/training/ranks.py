"""Processes that train one model together, each with a part of every batch: its ranks.

What one of them alone does it does as ever; there is no other code for it. All ranks take the same
steps, so each of these methods is called by all of them, or by none. The group is torch's own
(gloo between processes of CPUs, nccl between GPUs); flags and Python values go through gloo.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed

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
    finally:
        distributed.destroy_process_group()
