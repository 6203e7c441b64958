"""The Harrell-Davis estimator."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.models.distributions.samples import harrell_davis


def test_the_estimates_are_those_of_scipy() -> None:
    from scipy.stats.mstats import hdquantiles

    draws = np.random.default_rng(0).normal(size=(6, 64))
    for level in (0.05, 0.5, 0.9):
        expected = [hdquantiles(row, [level])[0] for row in draws]
        np.testing.assert_allclose(harrell_davis(draws, level), expected, rtol=1e-11)


def test_the_weights_of_three_draws_are_those_worked_out_by_hand() -> None:
    # Beta(2, 2) has the distribution function 3 x^2 - 2 x^3, which is 7/27 at 1/3.
    found = harrell_davis(np.array([[27.0, 270.0, 2700.0]]))
    assert found[0] == pytest.approx(7 + 130 + 700)
    assert harrell_davis(np.array([[5.0]]), 0.3)[0] == 5.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_a_median_turns_with_the_line(draws: list[float]) -> None:
    row = np.array([draws])
    scale = max(map(abs, draws)) * 1e-12
    assert harrell_davis(-row)[0] == pytest.approx(-harrell_davis(row)[0], abs=scale)
    assert harrell_davis(2 * row + 3)[0] == pytest.approx(
        2 * harrell_davis(row)[0] + 3, abs=scale + 1e-12
    )
    assert harrell_davis(-row, 0.2)[0] == pytest.approx(-harrell_davis(row, 0.8)[0], abs=scale)


def test_draws_that_are_no_numbers_are_left_out_row_by_row() -> None:
    draws = np.array([[1.0, np.nan, 2.0, 4.0], [np.nan] * 4, [np.nan, 3.0, np.nan, np.nan]])
    kept = harrell_davis(np.array([[2.0, 4.0, 1.0]]))[0]
    np.testing.assert_allclose(harrell_davis(draws), [kept, np.nan, 3.0])
    assert harrell_davis(np.empty((0, 4))).shape == (0,)
    assert np.isnan(harrell_davis(np.empty((2, 0)))).all()


def test_one_absurd_draw_far_in_the_tail_does_not_carry_the_median_away() -> None:
    draws = np.random.default_rng(1).normal(size=(1, 128))
    usual = harrell_davis(draws)[0]
    for absurd in (1e300, math.inf):
        draws[0, 7] = absurd
        assert abs(harrell_davis(draws)[0] - usual) < 0.1
    # With few samples, every sample counts.
    assert harrell_davis(np.array([[1.0, math.inf, 0.0]]))[0] == math.inf
    assert np.isnan(harrell_davis(np.array([[1.0, math.inf, -math.inf]]))[0])


def test_the_median_varies_less_than_the_draw_in_the_middle() -> None:
    draws = np.random.default_rng(2).normal(size=(4000, 33))
    assert harrell_davis(draws).std() < 0.97 * np.median(draws, axis=1).std()
