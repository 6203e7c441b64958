"""The fake device behaves like a real one: what can be combined, what copies, what waits."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.cases import case, each
from tests.fake_device import FakeDevice, OnDevice


@pytest.fixture
def fake() -> Iterator[FakeDevice]:
    with FakeDevice("cuda") as device:
        yield device


def here(*values: float) -> Tensor:
    return torch.tensor(values, device="cuda")


def test_a_tensor_is_on_it_where_it_is_asked_for_and_what_is_made_of_one_too(
    fake: FakeDevice,
) -> None:
    one = torch.ones(2, 3)
    for made in (
        one.to("cuda"),
        one.to(fake.device),
        one.to("cuda:0", torch.float64),
        one.cuda(),
        torch.zeros(3, device="cuda"),
        torch.arange(3, device=torch.device("cuda")),
        torch.tensor([1, 2], device="cuda"),
        here(1.0).new_zeros(4),
        torch.zeros_like(here(1.0)),
        torch.arange(2, device=here(1.0).device),
        here(1.0, 2.0)[:1] * 3 + 1,
        torch.cat([here(1.0), here(2.0)]),
    ):
        assert isinstance(made, OnDevice) and made.device == torch.device("cuda", 0)
    assert here(1.0, 2.0).tolist() == [1.0, 2.0]
    for made in (
        torch.zeros(3),
        torch.arange(2),
        one + 1,
        torch.zeros_like(here(1.0), device="cpu"),
    ):
        assert type(made) is Tensor


MIXED: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "sum": lambda device, host: device + host,
    "matrix product": lambda device, host: device[None] @ host[:, None],
    "concatenation": lambda device, host: torch.cat([device, host]),
    "stack": lambda device, host: torch.stack([device.sum(), host.sum()]),
    "choice": lambda device, host: torch.where(device > 0, device, host),
    "linear map": lambda device, host: F.linear(device, host[None]),
    "lookup": lambda device, host: F.embedding(host.long(), device[:, None]),
    "index": lambda device, host: device[host.long()],
    "gather": lambda device, host: device.gather(0, host.long()),
    "assignment": lambda device, host: device.clone().index_put_((host.long(),), device),
    "into the host": lambda device, host: host.add_(device),
    "a number of the host takes it": lambda device, host: host.sum().add_(device.sum()),
    "attention": lambda device, host: F.scaled_dot_product_attention(
        device[None, :, None], host[None, :, None], host[None, :, None]
    ),
}


@each("how", MIXED)
def test_host_and_device_do_not_meet(how: str) -> None:
    with FakeDevice("cuda"):
        device, host = here(1.0, 2.0), torch.tensor([1.0, 0.0])
        with pytest.raises(RuntimeError, match="same device"):
            MIXED[how](device, host)
        MIXED[how](device, host.to("cuda"))
        MIXED[how](device.cpu(), host)


def test_a_number_of_the_host_may_stand_beside_a_tensor_of_the_device(fake: FakeDevice) -> None:
    device = here(1.0, 2.0)
    assert (device + torch.tensor(1.0)).tolist() == [2.0, 3.0]
    assert (device * 3 + True).tolist() == [4.0, 7.0]
    device[0] = 5.0
    device += torch.tensor(1.0)
    assert torch.where(device > 4, 0.0, device).tolist() == [0.0, 3.0]


def test_only_to_cpu_and_copy_cross(fake: FakeDevice) -> None:
    device, host = here(1.0, 2.0), torch.zeros(2)
    assert torch.equal(device.cpu(), torch.tensor([1.0, 2.0]))
    assert torch.equal(device.to("cpu", torch.int64), torch.tensor([1, 2]))
    assert host.copy_(device) is host and host.tolist() == [1.0, 2.0]
    assert device.copy_(torch.tensor([3.0, 4.0])) is device and device.tolist() == [3.0, 4.0]
    ways: list[Callable[[], Any]] = [lambda: device.numpy(), lambda: np.asarray(device)]
    for to_numpy in ways:
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            to_numpy()


def test_what_waits_for_the_device_is_counted(fake: FakeDevice) -> None:
    device = here(1.0, 0.0)
    pinned = torch.ones(2).pin_memory()
    waiting: dict[str, Callable[[], Any]] = {
        "_local_scalar_dense": lambda: device[0].item(),
        "tolist": lambda: device.tolist(),
        "nonzero": lambda: device.nonzero(),
        "index by a mask": lambda: device[device > 0],
        "masked_select": lambda: device.masked_select(device > 0),
        "_unique2": lambda: torch.unique(device),
        "equal": lambda: torch.equal(device, device),
        "copy to the host": lambda: device.cpu(),
        "copy from memory that is not pinned": lambda: torch.ones(2).to("cuda"),
    }
    for name, wait in waiting.items():
        fake.syncs.clear()
        wait()
        assert fake.syncs == {name: 1}
    for told in (lambda: float(device[0]), lambda: bool(device[0]), lambda: int(device[0])):
        fake.syncs.clear()
        told()
        assert fake.syncs == {"_local_scalar_dense": 1}
    fake.syncs.clear()
    pinned.to("cuda", non_blocking=True)
    device.masked_fill(device > 0, 2.0)[torch.zeros(1, dtype=torch.int64, device="cuda")].sum()
    torch.where(device > 0, device, 0.0).max(dim=0)
    assert not fake.syncs


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.ModuleList([nn.GRU(4, 6, batch_first=True), nn.Linear(6, 4), nn.LayerNorm(4)])


def gradients(parts: Any, x: Tensor) -> list[Tensor]:
    states, _ = parts[0](x)
    y = parts[2](parts[1](states))[:, None]
    loss = F.scaled_dot_product_attention(y, y, y, is_causal=True).square().sum()
    loss.backward()  # type: ignore[no-untyped-call]
    return [one.grad for one in parts.parameters()]


def test_gradients_are_those_of_the_cpu() -> None:
    plain = network()
    x = torch.randn(2, 3, 4)
    expected = gradients(plain, x)
    with FakeDevice("cuda"):
        moved = network().to("cuda")
        found = gradients(moved, x.to("cuda"))
        for one, other in zip(found, expected, strict=True):
            assert isinstance(one, OnDevice)
            torch.testing.assert_close(one.cpu(), other)
        assert len(found) == len(list(plain.parameters()))


def test_a_module_that_moves_keeps_its_parameters_and_what_is_tied(fake: FakeDevice) -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    weight, both = first.weight, nn.ModuleList([first, second])
    both.to(fake.device)
    assert first.weight is second.weight is weight and isinstance(weight, OnDevice)
    copied = copy.deepcopy(both.state_dict())
    with torch.no_grad():
        weight.zero_()
    assert second.weight.tolist() == [[0.0] * 3] * 3
    assert float(copied["0.weight"].abs().sum()) > 0


def test_a_device_without_float64_takes_none() -> None:
    with FakeDevice("mps", float64=False):
        one = torch.ones(2, device="mps")
        ways: dict[str, Callable[[], Any]] = {
            "double": lambda: one.double(),
            "zeros": lambda: torch.zeros(2, dtype=torch.float64, device="mps"),
            "to": lambda: torch.ones(2, dtype=torch.float64).to("mps"),
        }
        for name, wide in ways.items():
            with case(name), pytest.raises(TypeError, match="float64"):
                wide()
        assert (one.cpu().double() / 3).dtype == torch.float64
