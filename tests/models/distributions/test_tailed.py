"""Fixed tails: normalized, consistent with the inner distribution, and checked by hand."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
from numtok.models.distributions.intervals import Intervals
from numtok.models.distributions.mixture import Mixture
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.samples import Empirical
from numtok.models.distributions.tailed import Tailed
from tests.cases import each
from tests.messages import Says

Floats = NDArray[np.float64]

LOW, HIGH, MASS = 1.0, 5.0, 0.1
EDGES = np.array([1.0, 2.0, 2.5, 5.0])
SHARES = np.array([0.2, 0.5, 0.3])


def histogram(rows: int) -> Intervals:
    """Return three bins, the same in each row."""
    middles = (EDGES[1:] + EDGES[:-1]) / 2
    return Intervals(
        low=EDGES[:-1], high=EDGES[1:], values=middles, log_mass=np.tile(np.log(SHARES), (rows, 1))
    )


def tailed(rows: int, mass: float = MASS) -> Tailed:
    return Tailed(histogram(rows), LOW, HIGH, mass)


def answers(ask: Callable[[Tailed], Callable[[Floats], Floats]], values: Floats) -> Floats:
    """Return the answers of one distribution at many values."""
    return ask(tailed(len(values)))(values)


def test_densities_are_those_worked_out_by_hand() -> None:
    found = np.exp(answers(lambda one: one.log_density, np.array([1.5, 2.2, 0.0, 13.0])))
    # 0 is a quarter of the width below the range; 13 is two widths above it.
    expected = [0.9 * 0.2, 0.9 * 0.5 / 0.5, 0.05 * math.exp(-0.25) / 4, 0.05 * math.exp(-2) / 4]
    np.testing.assert_allclose(found, expected)


def test_the_density_integrates_to_one() -> None:
    edges = np.union1d(np.linspace(-160.0, 166.0, 100001), EDGES)
    middles = (edges[1:] + edges[:-1]) / 2
    density = np.exp(answers(lambda one: one.log_density, middles))
    assert density @ np.diff(edges) == pytest.approx(1, abs=1e-7)


def test_the_cdf_is_the_integral_of_the_density() -> None:
    ends = np.array([-7.0, 1.0, 2.2, 5.0, 30.0])
    below = [0.05 * math.exp(-2), 0.05, 0.05 + 0.9 * 0.4, 0.95, 1 - 0.05 * math.exp(-6.25)]
    np.testing.assert_allclose(answers(lambda one: one.cdf, ends), below)
    odd = answers(lambda one: one.cdf, np.array([-np.inf, np.inf, np.nan]))
    np.testing.assert_array_equal(odd, [0, 1, np.nan])


@given(st.floats(1e-6, 1 - 1e-6), st.floats(0.0, 0.9))
def test_a_quantile_undoes_the_cdf(level: float, mass: float) -> None:
    one = tailed(1, mass)
    assert one.cdf(one.quantiles([level])[:, 0])[0] == pytest.approx(level, rel=1e-9)


def test_quantiles_of_several_levels_come_in_their_order() -> None:
    points = tailed(2).quantiles([0.999, 0.01, 0.5, 0.05, 0.95])
    np.testing.assert_array_equal(points[0], points[1])
    assert points[0, 1] < LOW <= points[0, 3] < points[0, 2] < points[0, 4] <= HIGH < points[0, 0]
    assert points[0, 1] == pytest.approx(1 + 4 * math.log(0.2))


def test_the_crps_is_the_integral_of_its_definition() -> None:
    values = [-9.0, 1.0, 1.7, 2.3, 5.0, 5.5, 40.0]
    edges = np.union1d(np.linspace(-160.0, 166.0, 200001), [*EDGES, *values])
    middles = (edges[1:] + edges[:-1]) / 2
    cdf = answers(lambda one: one.cdf, middles)
    for value in values:
        found = answers(lambda one: one.crps, np.array([value]))[0]
        expected = np.square(cdf - (middles >= value)) @ np.diff(edges)
        assert found == pytest.approx(expected, rel=1e-6), value


@given(st.floats(-50.0, 50.0), st.floats(1e-3, 60.0))
def test_an_interval_is_the_difference_of_the_cdf(low: float, width: float) -> None:
    ends = np.array([low]), np.array([low + width])
    one = tailed(1)
    expected = one.cdf(ends[1])[0] - one.cdf(ends[0])[0]
    assert np.exp(one.log_interval(*ends))[0] == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_an_interval_far_out_keeps_its_digits() -> None:
    ends = np.array([4001.0, 4001.0, 3.0, np.nan]), np.array([4001.0 + 4e-6, np.inf, 2.0, 3.0])
    beyond = math.log(0.05) - 999
    expected = [beyond + math.log(-math.expm1(-1e-6)), beyond, -math.inf, math.nan]
    np.testing.assert_allclose(tailed(4).log_interval(*ends), expected, rtol=1e-9)


def test_draws_agree_with_the_cdf_and_the_mean() -> None:
    draws = np.sort(tailed(1, 0.4).sample(40000, np.random.default_rng(0))[0])
    one = Tailed(histogram(len(draws)), LOW, HIGH, 0.4)
    shares = np.arange(1, len(draws) + 1) / len(draws)
    assert np.abs(one.cdf(draws) - shares).max() < 1.95 / math.sqrt(len(draws))
    mean = 0.6 * (0.2 * 1.5 + 0.5 * 2.25 + 0.3 * 3.75) + 0.4 * 3
    assert one.mean()[0] == pytest.approx(mean)
    assert draws.mean() == pytest.approx(mean, abs=4 * draws.std() / math.sqrt(len(draws)))
    assert one.mode()[0] == 2.25


def test_no_mass_changes_nothing() -> None:
    plain, one = histogram(3), tailed(3, 0.0)
    values, rng = np.array([0.0, 1.3, 4.0]), np.random.default_rng
    np.testing.assert_array_equal(one.log_density(values), plain.log_density(values))
    ends = values, values + 1
    np.testing.assert_array_equal(one.log_interval(*ends), plain.log_interval(*ends))
    np.testing.assert_allclose(one.crps(values), plain.crps(values))
    np.testing.assert_array_equal(one.quantiles([0.3]), plain.quantiles([0.3]))
    np.testing.assert_array_equal(one.sample(9, rng(1)), plain.sample(9, rng(1)))


def test_draws_inside_score_as_well_as_they_would_alone() -> None:
    # With mass 0, samples score as without tails. With tails, samples still have no density.
    drawn = Empirical(np.array([[1.0, 2.0, 5.0]]))
    assert Tailed(drawn, LOW, HIGH, 0.0).crps(np.array([3.0]))[0] == pytest.approx(
        drawn.crps(np.array([3.0]))[0]
    )
    for value in (3.0, HIGH + 1):  # also outside the range, where tails have one
        tailed = Tailed(drawn, LOW, HIGH, MASS)
        assert np.isnan(tailed.log_density(np.array([value]))).all()
        assert np.isnan(tailed.log_interval(np.array([value]), np.array([value + 1]))).all()


@each(
    ("low", "high", "mass", "parts"),
    [
        (2.0, 2.0, 0.1, ("two different ends", "2.0 and 2.0")),
        (0.0, math.inf, 0.1, ("two different ends", "0.0 and inf")),
        (1.0, 5.0, 1.0, ("[0, 1)", "got 1.0")),
        (1.0, 5.0, math.nan, ("[0, 1)", "got nan")),
        (1.5, 5.0, 0.1, ("range", "1.5 to 5.0")),
        (1.0, 4.9, 0.1, ("range", "1.0 to 4.9")),
    ],
)
def test_what_cannot_have_such_tails_is_refused(
    low: float, high: float, mass: float, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(ValueError, *parts):
        Tailed(histogram(1), low, high, mass)


def test_a_distribution_without_ends_needs_no_stated_tails() -> None:
    normal: Predictive = Mixture.single(
        np.array([3.0]), 1.0, FittedNormalizer(NORMALIZERS.build("none"), {})
    )
    with pytest.raises(ValueError, match=r"within its range, 1\.0 to 5\.0$"):
        Tailed(normal, LOW, HIGH, MASS)
