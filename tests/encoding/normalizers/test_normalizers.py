"""Normalizers, their inverses, and the moments on which they are fitted."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok.encoding.normalizers.base import (
    NORMALIZERS,
    Chained,
    FittedNormalizer,
    Moments,
    fit,
    stored_normalizer,
)
from numtok.errors import DataError, UsageError
from numtok.registry import settings_of
from tests.cases import each
from tests.messages import Says

SPECS = [*NORMALIZERS, "scale:5"]
# Scaled values near the end of float64's range lose digits.
ordinary = st.floats(-1e12, 1e12).map(lambda value: value if abs(value) > 1e-250 else 0.0)
columns = st.lists(ordinary, min_size=1, max_size=30).map(np.array)


def fitted(spec: str, values: NDArray[np.float64]) -> FittedNormalizer:
    """Fit the normalizer of a spec to values."""
    return fit(NORMALIZERS.build(spec), Moments.of(values))


@given(columns)
@each("spec", SPECS)
def test_the_inverse_undoes_a_normaliser(spec: str, values: NDArray[np.float64]) -> None:
    one = fitted(spec, values)
    again = one.inverse(one.forward(values))
    # A shift loses digits of values that are small relative to the largest.
    slack = 1e-13 if one.normalizer.linear and not one.normalizer.keeps_zero else 0.0
    np.testing.assert_allclose(again, values, rtol=1e-11, atol=slack * np.abs(values).max())


@given(columns)
@each("spec", SPECS)
def test_what_is_not_finite_passes_through_and_stays_out_of_the_fit(
    spec: str, values: NDArray[np.float64]
) -> None:
    odd = np.array([np.nan, np.inf, -np.inf])
    one = fitted(spec, values)
    assert fitted(spec, np.concatenate([odd, values])) == one
    np.testing.assert_array_equal(one.forward(odd), odd)
    np.testing.assert_array_equal(one.inverse(odd), odd)


@given(columns)
def test_scale_maps_the_largest_magnitude_to_its_limit(
    values: NDArray[np.float64],
) -> None:
    largest = np.abs(fitted("scale:5", values).forward(values)).max()
    assert largest == pytest.approx(5.0) or not values.any()


def test_affine_and_unit_give_what_they_say() -> None:
    values = np.array([2.0, 4.0, 6.0])
    affine = fitted("affine", values)
    assert affine.constants == {"mean": 4.0, "deviation": pytest.approx(math.sqrt(8 / 3))}
    assert affine.forward(values).mean() == 0.0
    assert affine.forward(values).std() == pytest.approx(1.0)
    assert fitted("unit", values).forward(values).tolist() == [0.0, 0.5, 1.0]


def test_signed_log_keeps_signs_and_needs_no_fit() -> None:
    one = fit(NORMALIZERS.build("signed-log"), Moments())
    np.testing.assert_allclose(one.forward(np.array([9.0, -99.0, 0.0])), [1.0, -2.0, 0.0])
    assert np.signbit(one.forward(np.array([-0.0])))[0]
    assert np.signbit(one.inverse(np.array([-0.0])))[0]


@each("spec", ["scale:5", "affine", "unit"])
def test_a_constant_column_can_be_normalised(spec: str) -> None:
    for value in (0.0, 3.0):
        one = fitted(spec, np.array([value, value]))
        assert one.inverse(one.forward(np.array([value, 7.0]))).tolist() == [value, 7.0]


@each("spec", ["scale:5", "affine", "unit"])
def test_a_fit_without_finite_numbers_is_refused(spec: str, says: Says) -> None:
    with pytest.raises(DataError) as caught:
        fitted(spec, np.array([np.nan, np.inf]))
    name = spec.partition(":")[0]
    says(caught, f"--normalize {name}", "finite numbers", "--normalize none")


@each(
    ("spec", "values"),
    [("scale:5", [5e-324]), ("affine", [1e308, 1e308]), ("unit", [-1e308, 1e308])],
)
def test_constants_beyond_float64_are_refused(spec: str, values: list[float], says: Says) -> None:
    with pytest.raises(DataError) as caught:
        fitted(spec, np.array(values))
    says(
        caught,
        f"--normalize {spec.partition(':')[0]}",
        str(min(values)),
        "--normalize signed-log or none",
    )


def test_answers_can_have_a_factor_of_their_own() -> None:
    """Golden numbers: operands up to 50 and products up to 2000, each scaled into [-5, 5]."""
    outside, answers = Moments.of(np.array([40.0, 50.0])), Moments.of(np.array([2000.0]))
    one = fit(NORMALIZERS.build("scale:5,by=answer"), outside, answers)
    assert one.constants == {"factor": 0.1, "answer_factor": 0.0025}
    values, in_answer = np.array([40.0, 50.0, 2000.0]), np.array([False, False, True])
    scaled = one.at(in_answer)
    assert scaled.forward(values).tolist() == [4.0, 5.0, 5.0]
    np.testing.assert_allclose(scaled.inverse(scaled.forward(values)), values)
    np.testing.assert_allclose(np.exp(scaled.log_slope(values)), [0.1, 0.1, 0.0025])
    assert stored_normalizer(settings_of(one.normalizer), one.constants) == one
    affine = fit(NORMALIZERS.build("affine,by=answer"), outside, answers).at(in_answer)
    assert affine.forward(values).tolist() == [-1.0, 1.0, 0.0]


def test_a_factor_of_answers_needs_answers_and_is_never_guessed(says: Says) -> None:
    normalizer, some = NORMALIZERS.build("scale:5,by=answer"), Moments.of(np.array([1.0]))
    for moments in ((some,), (some, Moments()), (Moments(), some)):
        with pytest.raises(DataError) as caught:
            fit(normalizer, *moments)
        says(caught, "answer_start", "Leave out by=answer")
    one = fit(normalizer, some, some)
    for member in (one.forward, one.inverse, one.log_slope):
        with pytest.raises(UsageError) as refused:
            member(np.array([1.0]))
        says(refused, "scale,by=answer", "answers")
    with pytest.raises(ValueError, match="answer_factor"):
        stored_normalizer(settings_of(normalizer), {"factor": 1.0})


# --- moments -----------------------------------------------------------------------------------


def close(one: Moments, other: Moments, size: float) -> None:
    """Check equality up to rounding; ``size`` is the largest magnitude of the values."""
    assert (one.count, one.low, one.high) == (other.count, other.low, other.high)
    assert one.mean == pytest.approx(other.mean, rel=1e-12, abs=1e-13 * size)
    assert one.squares == pytest.approx(other.squares, rel=1e-9, abs=1e-12 * size * size)
    assert one.magnitude == pytest.approx(other.magnitude, rel=1e-12)


@given(st.lists(st.lists(ordinary, max_size=12), min_size=1, max_size=5))
def test_merged_moments_are_those_of_the_whole(parts: list[list[float]]) -> None:
    whole = np.array([value for part in parts for value in part], np.float64)
    merged = Moments()
    for part in parts:
        merged = merged.merged(Moments.of(np.array(part, np.float64)))
    close(merged, Moments.of(whole), float(np.abs(whole).max(initial=0.0)))


@given(st.lists(ordinary, max_size=20), st.lists(ordinary, max_size=20))
def test_merging_goes_both_ways(one: list[float], other: list[float]) -> None:
    a, b = Moments.of(np.array(one, np.float64)), Moments.of(np.array(other, np.float64))
    close(a.merged(b), b.merged(a), max([abs(value) for value in one + other], default=0.0))


def test_moments_are_those_of_the_finite_values() -> None:
    moments = Moments.of(np.array([1.0, np.nan, 3.0, np.inf, -np.inf]))
    assert moments == Moments(count=2, low=1.0, high=3.0, mean=2.0, squares=2.0, magnitude=2.0)
    assert (moments.largest, moments.deviation) == (3.0, 1.0)
    assert Moments.of(np.array([np.nan])) == Moments()


# --- chained normalizers -----------------------------------------------------------------------


def chained(values: NDArray[np.float64]) -> Chained:
    """Return a normalizer that maps the range of signed logarithms to [-0.5, 0.5]."""
    first = fitted("signed-log", values)
    return Chained(first, fitted("unit,start=-0.5", first.forward(values)))


def test_of_two_normalisers_the_second_takes_what_the_first_gives() -> None:
    values = np.array([-99.0, 0.0, 9.0, 999.0])
    one = chained(values)
    np.testing.assert_allclose(one.forward(values), [-0.5, -0.1, 0.1, 0.5], atol=1e-15)
    np.testing.assert_allclose(one.inverse(one.forward(values)), values, atol=1e-10)


def test_the_slope_of_two_normalisers_is_the_derivative_of_both() -> None:
    one = chained(np.array([-99.0, 999.0]))
    values = np.array([-1e6, -3.0, 0.0, 0.25, 77.0])
    step = 1e-6 * (1 + np.abs(values))
    rise = one.forward(values + step) - one.forward(values - step)
    np.testing.assert_allclose(np.exp(one.log_slope(values)), rise / (2 * step), rtol=1e-5)
    assert not one.linear
    straight = fitted("affine", values)
    assert Chained(straight, straight).linear


def test_the_range_can_begin_elsewhere() -> None:
    values = np.array([2.0, 4.0, 6.0])
    one = fitted("unit,start=-0.5", values)
    assert one.forward(values).tolist() == [-0.5, 0.0, 0.5]
    assert one.inverse(np.array([-0.5, 0.0, 0.5])).tolist() == values.tolist()
    np.testing.assert_array_equal(one.log_slope(values), fitted("unit", values).log_slope(values))
