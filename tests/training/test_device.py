"""What a device can do at best, and the memory that was taken."""

import platform
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest
import torch

from numtok.training import device
from numtok.training.device import MatmulRate, measured_matmul_rate, peak_memory
from tests.fakemodels import CPU, one_thread

__all__ = ["one_thread"]


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """What the looks to come will find; nothing is known yet, and no time goes by."""
    found: list[float] = []
    monkeypatch.setattr(MatmulRate, "_known", {})
    monkeypatch.setattr(device, "measured_matmul_rate", lambda *_: found.pop(0))
    monkeypatch.setattr(device, "time", SimpleNamespace(monotonic=lambda: 0.0))
    yield found


def test_a_rate_that_was_measured_beside_other_work_is_mended_by_a_later_look(
    rates: list[float],
) -> None:
    rates += [20e9, 45e9, 30e9]
    rate = MatmulRate(CPU, bfloat16=False)
    shares = [rate.share(18e9)]
    for _ in range(2):
        rate.look_again()
        shares.append(rate.share(18e9))
    assert shares == [0.9, 0.4, 0.4]
    assert rate.per_second == 45e9 == MatmulRate(CPU, bfloat16=False).per_second


def test_what_training_reached_the_device_can_do(rates: list[float]) -> None:
    rates += [20e9]
    rate = MatmulRate(CPU, bfloat16=False)
    assert (rate.share(25e9), rate.per_second) == (1.0, 25e9)
    assert rate.share(5e9) == 0.2
    assert MatmulRate(CPU, bfloat16=False).per_second == 20e9  # of another run nothing is known


def test_looks_at_the_rate_take_little_of_a_run(
    monkeypatch: pytest.MonkeyPatch, rates: list[float]
) -> None:
    now, looks = 0.0, 0

    def look(*_: object) -> float:
        nonlocal now, looks
        now += 0.1
        looks += 1
        return 1e9

    monkeypatch.setattr(device, "measured_matmul_rate", look)
    monkeypatch.setattr(device, "time", SimpleNamespace(monotonic=lambda: now))
    rate = MatmulRate(CPU, bfloat16=False)
    while now < 1000:
        now += 0.5
        rate.look_again()
    assert 30 < looks <= 0.005 * now / 0.1 + 1


def test_measuring_the_rate_of_matrix_products_draws_no_random_numbers() -> None:
    state = torch.get_rng_state()
    assert min(measured_matmul_rate(CPU, bfloat16) for bfloat16 in (False, True)) > 1e8
    assert torch.equal(torch.get_rng_state(), state)


def test_mps_is_waited_for_and_asked_for_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(torch.mps, "synchronize", lambda: told.append("waited"))
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 1 << 30)
    mps = torch.device("mps")
    device.wait(mps)
    device.seed_generator(mps, 3)
    drawn = torch.rand(2)
    assert (told, peak_memory(mps)) == (["waited"], 1 << 30)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(2))


def test_peak_memory_is_in_bytes_and_does_not_fall() -> None:
    taken = torch.ones(1 << 24)
    now, peak = psutil.Process().memory_info().rss, peak_memory(CPU)
    assert 0.9 * now < peak < psutil.virtual_memory().total  # systems count in steps
    del taken
    assert peak_memory(CPU) >= peak


@pytest.mark.integration
def test_freed_memory_is_kept_for_the_next_step() -> None:
    """In a process of its own; another C library than glibc takes no notice."""
    program = """
import psutil, torch
from numtok.training.device import tune_malloc
tune_malloc()
before = psutil.Process().memory_info().rss
torch.ones(1 << 26)
print(psutil.Process().memory_info().rss - before)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    kept = int(ran.stdout) > 200e6  # of 268
    assert kept == (platform.libc_ver()[0] == "glibc")
