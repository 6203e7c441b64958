"""The optimizer against PyTorch's own, which is made of the same kernel."""

import copy

import torch
from torch import nn

from numtok.training.adamw import AdamW, Group


def test_steps_are_those_of_pytorch_for_every_group() -> None:
    """To the bit: rates that change, a group with a rate and a decay of its own, and a parameter
    that has a gradient now and then."""
    torch.default_generator.manual_seed(0)
    ours = [nn.Parameter(torch.randn(size)) for size in ((3, 4), (5,), (2, 2))]
    theirs = copy.deepcopy(ours)
    optimizer = AdamW([Group(ours[:2], 0.1), Group(ours[2:], 0.0, times=4.0)], (0.9, 0.95))
    groups = [
        {"params": theirs[:2], "weight_decay": 0.1},
        {"params": theirs[2:], "weight_decay": 0.0},
    ]
    wanted = torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)
    for step in range(6):
        rate = 0.1 / (1 + step)
        for group, times in zip(wanted.param_groups, (1.0, 4.0), strict=True):
            group["lr"] = rate * times
        for one, other in zip(ours, theirs, strict=True):
            if other is not theirs[1] or step % 2:
                other.grad = torch.randn_like(other)
                one.grad = other.grad.clone()
        optimizer.step(rate)
        wanted.step()
        optimizer.zero_grad()
        wanted.zero_grad()
        assert all(one.grad is None for one in ours)
        for one, other in zip(ours, theirs, strict=True):
            assert torch.equal(one, other)
    for one, other in zip(ours, theirs, strict=True):
        for name, tensor in wanted.state[other].items():
            assert torch.equal(optimizer.state[one][name], tensor), name
