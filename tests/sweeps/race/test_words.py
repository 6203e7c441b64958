"""What numbers are like, in words."""

import numpy as np
import pytest

from numtok.arrays import Floats
from numtok.sweeps.race.words import Slot
from tests.cases import each


def words(values: Floats) -> str:
    return Slot.of_column("x", values).words


@each(
    ("values", "said"),
    [
        ([1.5, 2.5, 97.0], ["1.5 to 97", "half of them 2 to 49.8", "3 different values"]),
        ([-1.0, 0.0, 1.0, 2.0], ["whole numbers", "25% negative"]),
        ([7.0, 7.0], ["always 7"]),
        ([1.0, 1.0, 1.0, 5.0], ["75% are 1"]),
        ([1e-3, 1.0, 1e3], ["magnitudes over 6 decades"]),
    ],
)
def test_what_a_column_is_like(values: list[float], said: list[str]) -> None:
    told = words(np.array(values))
    assert all(one in told for one in said), told


def test_a_heavy_tail_is_one_that_normal_numbers_have_not() -> None:
    random = np.random.default_rng(0)
    assert not Slot.of_column("x", random.normal(size=5000)).heavy_tail
    assert not Slot.of_column("x", random.exponential(size=5000)).heavy_tail
    heavy = Slot.of_column("x", random.lognormal(0, 2, 5000))
    assert heavy.heavy_tail and "a heavy tail" in heavy.words


def test_half_a_column_of_one_value_has_no_tail_that_can_be_told() -> None:
    assert not Slot.of_column("x", np.array([1.0] * 9 + [2.0])).heavy_tail


def test_facts_of_a_column() -> None:
    slot = Slot.of_column("x", np.array([1.0, 2.0, 2.5, -4.0]))
    assert (slot.numbers, slot.low, slot.high, slot.distinct) == (4, -4.0, 2.5, 4)
    assert (slot.integer, slot.negative) == (0.75, 0.25)
    assert slot.decades == pytest.approx(np.log10(4))
