"""Modules run on a device without values before a plugin is used."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from numtok.models.made_up import on_another_device

CONSTANT = torch.arange(4.0)


class _Module(nn.Module):
    """A linear map, followed by a function."""

    def __init__(self, then: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.linear, self.then = nn.Linear(3, 4), then

    def forward(self, x: Tensor) -> object:
        with torch.autocast(x.device.type, enabled=False):
            return self.then(self.linear(x.float()))


def run(module: nn.Module, device: str) -> None:
    module(torch.ones(2, 3).to(device))


@pytest.mark.parametrize(
    "then",
    [
        lambda y: y + torch.arange(4, device=y.device),
        lambda y: y.sum().item(),
        lambda y: y[y > 0],
        lambda y: y.cpu().numpy(),
    ],
)
def test_a_module_of_one_device_passes_also_where_values_decide(
    then: Callable[[Tensor], object],
) -> None:
    on_another_device(_Module(then), run)


def test_devices_that_meet_are_reported_with_the_remedy() -> None:
    with pytest.raises(RuntimeError, match=r"a CPU tensor.*register_buffer"):
        on_another_device(_Module(lambda y: y + CONSTANT), run)


def test_any_other_error_is_raised() -> None:
    with pytest.raises(IndexError):
        on_another_device(_Module(lambda y: y[0, 0, 0]), run)
