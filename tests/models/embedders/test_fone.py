"""The embedder ``fone``: digits of numbers as angles."""

import numpy as np
import pytest

from numtok.models.embedders.fone import turns_of


@pytest.mark.parametrize("bases", ["10", "2+5"])
def test_digits_before_the_longest_period_are_ignored(bases: str) -> None:
    values = np.array([1.5, 2345678901.25, -0.125])
    beyond = np.sign(values) * (np.abs(values) + 4e11)
    assert turns_of(beyond, 9, 3, bases) == pytest.approx(turns_of(values, 9, 3, bases))
