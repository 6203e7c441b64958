"""Devices: names, memory, and the measured speed of matrix products."""

import platform
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from numtok.errors import TrainingFailed, UsageError
from numtok.training import device
from numtok.training.device import (
    MatmulRate,
    device_count,
    device_of,
    measured_matmul_rate,
    oom_advice,
    peak_memory,
    seed_generator,
    wait,
)
from tests.cases import each
from tests.fakemodels import CPU, one_thread
from tests.messages import Says

__all__ = ["one_thread"]


def too_much() -> None:
    torch.empty(1 << 55)


def out_of_memory() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")


def out_of_memory_on_mps() -> None:
    raise RuntimeError("MPS backend out of memory (MPS allocated: 9 GB, max allowed: 9 GB)")


def memory_error() -> None:
    raise MemoryError


def out_of_memory_in_onednn() -> None:
    raise RuntimeError("could not create a primitive")


@each(
    "fail",
    [too_much, out_of_memory, out_of_memory_on_mps, out_of_memory_in_onednn, memory_error],
)
def test_a_lack_of_memory_is_named_with_what_to_do(fail: Any, says: Says) -> None:
    with pytest.raises(TrainingFailed) as caught, oom_advice("so much; take less"):
        fail()
    says(caught, "out of memory", "so much; take less")
    assert caught.value.exit_code == 5
    assert caught.value.__cause__ is not None


@each("error", [RuntimeError("shapes differ"), KeyError("x"), OSError()])
def test_other_errors_pass_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, oom_advice("so much"):
        raise error
    assert caught.value is error


@each(
    ("name", "available", "device"),
    [
        ("auto", False, "cpu"),
        ("auto", True, "cuda"),
        ("cpu", True, "cpu"),
        ("cpu", False, "cpu"),
        ("cuda", True, "cuda"),
        ("mps", True, "mps"),
    ],
)
def test_a_device_is_found_by_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, available: bool, device: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: available)
    assert device_of(name).type == device


@each(
    ("name", "parts"),
    [
        ("gpu", ("--device", "'gpu'", "auto, cpu, cuda, cuda:N and mps")),
        ("cuda", ("--device cuda", "--device cpu")),
        ("mps", ("--device mps", "--device cpu")),
    ],
)
def test_a_device_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, parts: tuple[str, ...], says: Says
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UsageError) as caught:
        device_of(name)
    says(caught, *parts)
    assert caught.value.exit_code == 2


def test_more_ranks_than_gpus_are_refused(says: Says) -> None:
    """On a CPU, any number of processes is accepted."""
    mps = torch.device("mps")
    assert [device_count(devices, mps) for devices in ("1", "all")] == [1, 1]
    assert [device_count(devices, CPU) for devices in ("3", "all")] == [3, 1]
    with says.raises(UsageError, "--devices 2", "1 GPU.", "all"):
        device_count("2", mps)


def test_mps_is_waited_for_and_asked_for_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(torch.mps, "synchronize", lambda: calls.append("waited"))
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 1 << 30)
    mps = torch.device("mps")
    wait(mps)
    seed_generator(mps, 3)
    drawn = torch.rand(2)
    assert (calls, peak_memory(mps)) == (["waited"], 1 << 30)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(2))


def test_peak_memory_is_in_bytes_and_does_not_fall() -> None:
    taken = torch.ones(1 << 24)
    now, peak = psutil.Process().memory_info().rss, peak_memory(CPU)
    assert 0.9 * now < peak < psutil.virtual_memory().total  # the system updates both in steps
    del taken
    assert peak_memory(CPU) >= peak


@pytest.mark.integration
def test_freed_memory_is_kept_for_the_next_step() -> None:
    """The setting affects a whole process, so this runs in its own. Only glibc supports it."""
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


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Yield a list for results of future measurements. Nothing is measured yet; time is frozen."""
    results: list[float] = []
    monkeypatch.setattr(MatmulRate, "_measured", {})
    monkeypatch.setattr(device, "measured_matmul_rate", lambda *_: results.pop(0))
    monkeypatch.setattr(device, "time", SimpleNamespace(monotonic=lambda: 0.0))
    yield results


def test_a_rate_that_was_measured_beside_other_work_is_mended_by_a_later_look(
    rates: list[float],
) -> None:
    rates += [20e9, 45e9, 30e9]
    rate = MatmulRate(CPU, bfloat16=False)
    shares = [rate.share(18e9)]
    for _ in range(2):
        rate.remeasure()
        shares.append(rate.share(18e9))
    assert shares == [0.9, 0.4, 0.4]
    assert rate.per_second == 45e9 == MatmulRate(CPU, bfloat16=False).per_second


def test_what_training_reached_the_device_can_do(rates: list[float]) -> None:
    rates += [20e9]
    rate = MatmulRate(CPU, bfloat16=False)
    assert (rate.share(25e9), rate.per_second) == (1.0, 25e9)
    assert rate.share(5e9) == 0.2
    assert MatmulRate(CPU, bfloat16=False).per_second == 20e9  # 25e9 was another run's speed


def test_looks_at_the_rate_take_little_of_a_run(
    monkeypatch: pytest.MonkeyPatch, rates: list[float]
) -> None:
    now, measurements = 0.0, 0

    def measure(*_: object) -> float:
        nonlocal now, measurements
        now += 0.1
        measurements += 1
        return 1e9

    monkeypatch.setattr(device, "measured_matmul_rate", measure)
    monkeypatch.setattr(device, "time", SimpleNamespace(monotonic=lambda: now))
    rate = MatmulRate(CPU, bfloat16=False)
    while now < 1000:
        now += 0.5
        rate.remeasure()
    assert 30 < measurements <= 0.005 * now / 0.1 + 1


def test_measuring_the_rate_of_matrix_products_draws_no_random_numbers() -> None:
    state = torch.get_rng_state()
    assert min(measured_matmul_rate(CPU, bfloat16) for bfloat16 in (False, True)) > 1e8
    assert torch.equal(torch.get_rng_state(), state)
