"""How continuous a series of predictions is, on arrays with known answers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.analysis.probing.continuity import (
    distinct,
    errors,
    evenly,
    jump,
    path,
    repeated,
    saturation,
    slope,
)
from numtok.analysis.probing.probes.pca import components, spearman
from numtok.analysis.probing.swept_row import evenly_spaced
from numtok.evaluation.seen_values import SeenValues, rounded
from numtok.metrics.base import share
from numtok.reports import Figure
from tests.cases import case

SEEN = SeenValues(np.array([1.0, 2.0, 3.0]))
X = np.linspace(1.0, 3.0, 201)
#: Predicts the seen value nearest to the true one, the larger of two.
SNAPS = np.where(X < 1.5, 1.0, np.where(X < 2.5, 2.0, 3.0))


# --- a continuous model and one that snaps -------------------------------------------------------


def test_a_continuous_function_has_its_slope_and_repeats_nothing() -> None:
    y = 0.5 * X + 0.2503  # to three digits, equals a seen value only by chance
    found = slope(X, y)
    assert found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5) and found.high == pytest.approx(0.5)
    step = jump(path(X, y), is_truth=True)
    assert step is not None
    assert step.size == pytest.approx(0.005)
    assert step.of_median_step == pytest.approx(1.0)
    assert step.of_truth == pytest.approx(0.5)
    assert step.of_range == pytest.approx(1 / 200)
    assert distinct(y, 0) == 201
    again = repeated(y, X, SEEN, 3)
    assert again.exact.value == 0.0
    assert again.rounded.value == pytest.approx(np.isin(rounded(y, 3), SEEN.values).mean())
    assert again.rounded.value is not None and again.rounded.value < 0.01
    ends = saturation(path(X, y), y, SEEN)
    assert ends.low is not None and ends.high is not None
    assert ends.low.value == pytest.approx(50 / 201)
    assert ends.high.value == 0.0
    assert 0 < ends.still_low < 0.011 and 0 < ends.still_high < 0.011


def test_a_model_that_snaps_repeats_everything_and_jumps() -> None:
    step = jump(path(X, SNAPS), is_truth=True)
    assert step is not None
    assert (step.size, step.from_y, step.to_y) == (1.0, 1.0, 2.0)
    assert [step.from_x, step.to_x] == pytest.approx([1.49, 1.5])
    assert step.of_median_step is None  # most steps are 0
    assert step.of_range == 0.5
    assert step.of_truth == pytest.approx(100)
    assert distinct(SNAPS, 0) == distinct(SNAPS, 3) == 3
    again = repeated(SNAPS, X[1:-1][X[1:-1] != 2.0], SEEN, 3)
    assert (again.rounded.value, again.exact.value) == (1.0, 1.0)
    assert (again.floor_rounded.value, again.floor_exact.value) == (0.0, 0.0)
    ends = saturation(path(X, SNAPS), SNAPS, SEEN)
    assert ends.low is not None and ends.high is not None
    assert (ends.low.value, ends.high.value) == (50 / 201, 51 / 201)
    assert [ends.still_low, ends.still_high] == pytest.approx([0.245, 0.25])


def test_a_model_that_snaps_right_has_the_error_of_the_nearest_seen_value() -> None:
    found = errors(X, SNAPS, SEEN)
    assert list(found) == ["model", "nearest seen value", "best constant"]
    assert found["model"]["mae"] == found["nearest seen value"]["mae"]
    assert found["best constant"]["mae"].value == pytest.approx(np.abs(X - 2.0).mean())
    assert found["best constant"]["mse"].value == pytest.approx(X.var())
    assert list(errors(X, SNAPS, None)) == ["model", "best constant"]


def test_the_best_constants_are_the_median_and_the_mean() -> None:
    truth = np.array([0.0, 0.0, 9.0])
    found = errors(truth, truth, None)["best constant"]
    assert (found["mae"].value, found["mse"].value) == (3.0, 18.0)


def test_predictions_that_never_move_have_no_jump_worth_the_name() -> None:
    still = np.full(201, 2.0)
    step = jump(path(X, still), is_truth=False)
    assert step is not None
    assert (step.size, step.of_range, step.of_median_step, step.of_truth) == (0.0, 0.0, None, None)
    ends = saturation(path(X, still), still, None)
    assert (ends.low, ends.high, ends.still_low, ends.still_high) == (None, None, 1.0, 1.0)
    assert slope(X, still).value == 0.0
    assert evenly(still).tolist() == still.tolist()
    assert jump(path(X[:1], still[:1]), is_truth=False) is None


def test_rows_of_one_truth_are_their_median() -> None:
    x, y = np.array([1.0, 1.0, 1.0, 2.0]), np.array([0.0, 100.0, 1.0, 3.0])
    step = jump(path(x, y), is_truth=False)
    assert step is not None
    assert (step.size, step.from_y) == (2.0, 1.0)


def test_a_slope_without_two_truths_is_not_defined() -> None:
    assert slope(np.full(5, 3.0), np.arange(5.0)) == Figure(None, None, None, 5)


def test_units_do_not_matter_to_a_slope() -> None:
    for size in [1e-300, 1e-9, 1e9, 1e300]:
        with case(size):
            x = np.array([0.0, 1.0, 2.0, 5.0])
            y = np.array([0.0, 1.0, 1.0, 4.0])
            expected = np.polyfit(x, y, 1)[0]
            assert slope(x * size, y).value == pytest.approx(expected / size, rel=1e-9)
            assert slope(x + 1e6, y).value == pytest.approx(expected, rel=1e-6)


# --- values seen, shares -------------------------------------------------------------------------


def test_a_share_has_wilsons_interval() -> None:
    for hits, n in ((0, 10), (3, 10), (10, 10), (1, 1000)):
        found = share(hits, n)
        assert found.value == hits / n and found.low is not None and found.high is not None
        for end in (found.low, found.high):  # where the score test is exactly at its limit
            off = abs(hits / n - end)
            expected = 1.959963984540054 * math.sqrt(end * (1 - end) / n)
            assert off == pytest.approx(expected, abs=1e-12)
    assert share(0, 0) == Figure(None, None, None, 0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(-2e6, 2e6))
def test_no_seen_value_is_nearer_than_the_nearest(values: list[float], number: float) -> None:
    seen = SeenValues(np.unique(np.array(values)))
    [found] = seen.nearest(np.array([number]))
    assert found in seen.values
    assert abs(found - number) == np.abs(seen.values - number).min()


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=10), st.integers(1, 17))
def test_rounding_keeps_that_many_digits(values: list[float], digits: int) -> None:
    found = rounded(np.array(values), digits)
    for value, one in zip(values, found.tolist(), strict=True):
        assert one == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits), abs=0)
        assert len(f"{one:.{digits - 1}e}") and float(f"{one:.{digits - 1}e}") == one


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(3, 50))
def test_swept_values_are_even_to_a_thousandth_of_a_step(
    low: float, width: float, points: int
) -> None:
    values = evenly_spaced(low, low + width, points)
    expected = np.linspace(low, low + width, points)
    step = width / (points - 1)
    assert len(values) == points
    assert np.abs(values - expected).max() <= 1.1e-3 * step + 1e-9 * abs(low)


# --- embeddings of tokens ------------------------------------------------------------------------


def test_tokens_on_a_line_have_one_component_in_the_order_of_values() -> None:
    values = np.arange(100.0, 400.0)
    direction = np.array([1.0, -2.0, 2.0])
    found, places = components(np.outer(np.log(values), direction), values)
    assert found.explained[0] == pytest.approx(1.0)
    assert found.by_value[0] == pytest.approx(1.0)
    assert found.by_size[0] == pytest.approx(1.0)
    assert found.neighbours is not None and found.neighbours < 0.02
    assert (np.diff(places[:, 0]) > 0).all()


def test_tokens_at_random_know_no_order() -> None:
    random = np.random.default_rng(0)
    found, places = components(random.normal(size=(1000, 16)), np.arange(1000.0))
    assert places.shape == (1000, 3)
    assert all(one is not None and abs(one) < 0.15 for one in found.by_value)
    assert found.neighbours == pytest.approx(1.0, abs=0.05)


def test_size_and_value_are_two_orders_where_there_are_signs() -> None:
    values = np.arange(-50.0, 51.0)
    found, _ = components(np.abs(values)[:, None] * np.array([[1.0, 1.0]]), values)
    assert found.by_value[0] == pytest.approx(0.0, abs=1e-9)
    assert found.by_size[0] is not None and abs(found.by_size[0]) == pytest.approx(1.0)


def test_ranks_of_a_constant_say_nothing() -> None:
    assert spearman(np.ones(4), np.arange(4.0)) is None
    assert spearman(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(
        math.sqrt(0.75)
    )
