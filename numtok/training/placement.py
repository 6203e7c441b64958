"""How a model lies on the ranks that train it: whole on one, a copy on each, or a part on each.

Gradients of ranks are averaged by torch, and their sum is meant, so a loss is to be multiplied by
``times`` before its gradient is taken.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from numtok.models.inputs import ModelInputs
from numtok.models.model import Losses, Model
from numtok.training.ranks import Ranks

_LossesOf = Callable[[ModelInputs], Losses]


class Placement:
    """On one rank the model is whole, and its own."""

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
