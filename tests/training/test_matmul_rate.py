"""What a device can do at best, looked at beside other work."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from numtok.training import matmul_rate
from numtok.training.matmul_rate import MatmulRate, measured_matmul_rate
from tests.fakemodels import CPU, one_thread

__all__ = ["one_thread"]


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """What the looks to come will find; nothing is known yet, and no time goes by."""
    found: list[float] = []
    monkeypatch.setattr(MatmulRate, "_known", {})
    monkeypatch.setattr(matmul_rate, "measured_matmul_rate", lambda *_: found.pop(0))
    monkeypatch.setattr(matmul_rate, "time", SimpleNamespace(monotonic=lambda: 0.0))
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

    monkeypatch.setattr(matmul_rate, "measured_matmul_rate", look)
    monkeypatch.setattr(matmul_rate, "time", SimpleNamespace(monotonic=lambda: now))
    rate = MatmulRate(CPU, bfloat16=False)
    while now < 1000:
        now += 0.5
        rate.look_again()
    assert 30 < looks <= 0.005 * now / 0.1 + 1


def test_measuring_the_rate_of_matrix_products_draws_no_random_numbers() -> None:
    state = torch.get_rng_state()
    assert min(measured_matmul_rate(CPU, bfloat16) for bfloat16 in (False, True)) > 1e8
    assert torch.equal(torch.get_rng_state(), state)
