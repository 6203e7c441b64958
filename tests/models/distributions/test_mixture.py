"""The normal distribution in its tails, and mixtures of Gaussians: exact and normalized."""

import math
from statistics import NormalDist

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.encoding.normalizers.base import FittedNormalizer
from numtok.models.distributions import normal
from numtok.models.distributions.mixture import Mixture
from tests.cases import each
from tests.messages import Says
from tests.models.distributions.test_distributions import NORMALIZATIONS, Floats

# --- the normal distribution -------------------------------------------------------------------


def test_the_error_function_is_that_of_the_standard_library_to_its_last_digits() -> None:
    t = np.concatenate([np.linspace(-7.0, 7.0, 4001), 10.0 ** np.linspace(-300, 0, 301)])
    expected = [math.erfc(value) / 2 for value in (t / math.sqrt(2)).tolist()]
    np.testing.assert_allclose(normal.cumulative(-t), expected, rtol=1e-14)


def test_tails_keep_their_digits_as_far_as_float64_goes() -> None:
    t = np.linspace(-37.5, 8.0, 401)
    with mpmath.workdps(50):
        exact = [mpmath.ncdf(mpmath.mpf(value)) for value in t.tolist()]
        logs = [float(mpmath.log(value)) for value in exact]
    np.testing.assert_allclose(normal.cumulative(t), np.array(exact, np.float64), rtol=1e-14)
    np.testing.assert_allclose(normal.log_cumulative(t), logs, rtol=1e-14)


def test_at_the_ends_of_the_line_there_is_nothing_and_everything() -> None:
    ends = np.array([-np.inf, -1e300, 1e300, np.inf, np.nan])
    np.testing.assert_array_equal(normal.cumulative(ends), [0, 0, 1, 1, np.nan])
    np.testing.assert_array_equal(normal.log_cumulative(ends), [-np.inf, -np.inf, 0, 0, np.nan])
    np.testing.assert_array_equal(normal.mean_distance(ends), np.abs(ends))
    assert normal.cumulative(np.empty((0, 3))).shape == (0, 3)


@given(st.floats(-25.0, 25.0), st.floats(-12.0, 1.5))
def test_the_probability_of_an_interval_keeps_its_digits(low: float, width: float) -> None:
    high = low + 10.0**width
    ends = np.array([low]), np.array([high])
    found = normal.log_interval(*ends, ends[1] - ends[0])[0]
    with mpmath.workdps(350):
        a, b = (-high, -low) if low > 0 else (low, high)
        mass = (mpmath.erfc(-b / mpmath.sqrt(2)) - mpmath.erfc(-a / mpmath.sqrt(2))) / 2
        expected = float(mpmath.log(mass))
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_intervals_without_an_end_and_empty_ones() -> None:
    low = np.array([-np.inf, -np.inf, 2.0, np.inf, 3.0, 3.0, np.nan])
    high = np.array([np.inf, 0.0, np.inf, np.inf, 3.0, 2.0, 1.0])
    with np.errstate(invalid="ignore"):
        found = normal.log_interval(low, high, high - low)
    expected = [0, math.log(0.5), math.log(math.erfc(math.sqrt(2)) / 2), *[-np.inf] * 3, np.nan]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


# --- mixtures ----------------------------------------------------------------------------------


def mixture(rows: int, components: int, normalization: str, seed: int = 0) -> Mixture:
    """Return random mixtures; with several components, one weight of each row is 0."""
    rng = np.random.default_rng(seed)
    shape = rows, components
    weights = rng.normal(size=shape)
    if components > 1:
        weights[:, 0] = -np.inf
    centers, deviations = rng.normal(size=shape), rng.uniform(0.05, 1, shape)
    return Mixture(weights, centers, deviations, NORMALIZATIONS[normalization])


def of_two(normalization: str = "none") -> Mixture:
    """Return 0.3 of N(-1, 0.5^2) and 0.7 of N(2, 0.25^2)."""
    weights, centers = np.log([[0.3, 0.7]]), np.array([[-1.0, 2.0]])
    return Mixture(weights, centers, np.array([[0.5, 0.25]]), NORMALIZATIONS[normalization])


def repeated(one: Mixture, count: int) -> Mixture:
    """Return the first row of a mixture, repeated ``count`` times."""
    weights, centers, deviations = (
        np.repeat(array[:1], count, axis=0)
        for array in (one.log_weights, one.centers, one.deviations)
    )
    return Mixture(weights, centers, deviations, one.normalizer)


def test_what_two_components_give_by_hand() -> None:
    one, left, right = of_two(), NormalDist(-1, 0.5), NormalDist(2, 0.25)
    for value in (-1.3, 0.0, 1.9):
        at = np.array([value])
        density = 0.3 * left.pdf(value) + 0.7 * right.pdf(value)
        below = 0.3 * left.cdf(value) + 0.7 * right.cdf(value)
        assert one.log_density(at)[0] == pytest.approx(math.log(density))
        assert one.cdf(at)[0] == pytest.approx(below)
    assert one.mean()[0] == pytest.approx(0.3 * -1 + 0.7 * 2)
    assert one.mode()[0] == pytest.approx(2.0)  # the other component is 12 standard deviations away
    # Below -0.5, the lower component has P(Z <= 1) and the upper one almost nothing.
    assert one.quantiles([0.3 * NormalDist().cdf(1.0)])[0, 0] == pytest.approx(-0.5, rel=1e-12)


@each("normalization", list(NORMALIZATIONS))
def test_one_component_is_like_two_equal_ones(normalization: str) -> None:
    """One component uses closed forms, two are summed numerically."""
    single = mixture(40, 1, normalization)
    plain = Mixture.single(single.centers[:, 0], single.deviations[:, 0], single.normalizer)
    centers, deviations = (np.repeat(x, 2, axis=1) for x in (single.centers, single.deviations))
    one = Mixture(np.log([[0.3, 0.7]] * 40), centers, deviations, single.normalizer)
    values = one.normalizer.inverse(np.random.default_rng(1).normal(size=40))
    low, high = values - 1e-3 * (1 + np.abs(values)), values
    np.testing.assert_allclose(one.log_density(values), plain.log_density(values), rtol=1e-12)
    np.testing.assert_allclose(one.log_interval(low, high), plain.log_interval(low, high))
    np.testing.assert_allclose(one.cdf(values), plain.cdf(values), rtol=1e-12)
    levels = [1e-12, 0.05, 0.5, 0.999]
    np.testing.assert_allclose(one.quantiles(levels), plain.quantiles(levels), rtol=1e-9)
    np.testing.assert_allclose(one.mode(), plain.mode(), rtol=1e-7)  # a peak is flat
    np.testing.assert_allclose(one.mean(), plain.mean(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.crps(values), plain.crps(values), rtol=1e-4)


@each("normalization", list(NORMALIZATIONS))
def test_the_density_of_a_mixture_integrates_to_one(normalization: str) -> None:
    one = mixture(1, 7, normalization)
    edges = one.normalizer.inverse(np.linspace(-14, 14, 40001))
    middles = edges[1:] / 2 + edges[:-1] / 2
    density = np.exp(repeated(one, len(middles)).log_density(middles))
    assert density @ np.diff(edges) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("normalization", list(NORMALIZATIONS))
@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(1e-9, 1 - 1e-9))
def test_a_quantile_of_a_mixture_undoes_its_cdf(
    normalization: str, seed: int, components: int, level: float
) -> None:
    one = mixture(3, components, normalization, seed)
    points = one.quantiles([level])[:, 0]
    np.testing.assert_allclose(one.cdf(points), level, rtol=1e-10, atol=1e-14)


def test_quantiles_are_found_across_gaps_and_from_both_tails() -> None:
    # Two needles far apart: between them, the distribution function is flat at 0.5.
    needles = Mixture(
        np.log([[0.5, 0.5]]), np.array([[-1e6, 1e6]]), np.full((1, 2), 1e-3), NORMALIZATIONS["none"]
    )
    low, middle, high = needles.quantiles([0.25, 0.5, 0.75])[0]
    assert low == pytest.approx(-1e6, rel=1e-15)
    assert high == pytest.approx(1e6, rel=1e-15)
    assert -1e6 <= middle <= 1e6
    tails = of_two().quantiles([1e-300, 1 - 1e-15])[0]
    assert of_two().cdf(tails[:1])[0] == pytest.approx(1e-300, rel=1e-9)
    above = of_two().log_interval(tails[1:], np.array([np.inf]))[0]
    assert above == pytest.approx(math.log(1 - (1 - 1e-15)), rel=1e-12)


def test_levels_of_all_rows_and_sizes_of_parts_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, values = mixture(50, 6, "affine"), np.linspace(270, 290, 50)

    def answers() -> list[Floats]:
        points = one.quantiles([0.1, 0.5, 0.9])
        return [one.cdf(values), one.crps(values), points, one.mode(), one.log_density(values)]

    whole = answers()
    monkeypatch.setattr("numtok.models.distributions.mixture._AT_ONCE", 40)
    for found, expected in zip(answers(), whole, strict=True):
        np.testing.assert_array_equal(found, expected)


@each("normalization", list(NORMALIZATIONS))
@each("components", [1, 5])
def test_draws_of_a_mixture_agree_with_its_cdf(components: int, normalization: str) -> None:
    one = mixture(1, components, normalization)
    draws = np.sort(one.sample(20000, np.random.default_rng(8))[0])
    shares = np.arange(1, 20001) / 20000
    assert np.abs(repeated(one, 20000).cdf(draws) - shares).max() < 1.95 / math.sqrt(20000)


@each("normalization", list(NORMALIZATIONS))
@each("value", [-2.0, 0.1, 3.0])
@each("components", [1, 4])
def test_the_crps_of_a_mixture_is_the_integral_of_its_definition(
    components: int, normalization: str, value: float
) -> None:
    one = mixture(1, components, normalization)
    raw = one.normalizer.inverse(np.array([value]))
    edges = np.union1d(one.normalizer.inverse(np.linspace(-9, 9, 40001)), raw)
    middles = edges[1:] / 2 + edges[:-1] / 2
    apart = repeated(one, len(middles)).cdf(middles) - (middles >= raw)
    assert one.crps(raw)[0] == pytest.approx(np.square(apart) @ np.diff(edges), rel=1e-4)


def test_the_crps_of_two_needles_is_that_of_two_points() -> None:
    # Points at 0 and 1, 1/2 each: between them, mean |X - y| - mean |X - X'| / 2 = 1/2 - 1/4.
    needles = Mixture(
        np.zeros((2, 2)),
        np.tile([0.0, 1.0], (2, 1)),
        np.full((2, 2), 1e-12),
        NORMALIZATIONS["none"],
    )
    np.testing.assert_allclose(needles.crps(np.array([0.3, 3.0])), [0.25, 2.25], rtol=1e-10)
    scores = needles.crps(np.array([np.nan, -np.inf]))
    np.testing.assert_array_equal(scores, [np.nan, np.inf])


def test_components_of_no_weight_do_not_change_the_crps() -> None:
    one, values = mixture(8, 5, "affine"), np.linspace(270.0, 290.0, 8)
    few = Mixture(one.log_weights[:, 1:], one.centers[:, 1:], one.deviations[:, 1:], one.normalizer)
    np.testing.assert_allclose(one.crps(values), few.crps(values), rtol=1e-12)
    light = np.where(np.isinf(one.log_weights), -40.0, one.log_weights)
    lighter = Mixture(light, one.centers, one.deviations, one.normalizer)
    np.testing.assert_allclose(lighter.crps(values), few.crps(values), rtol=1e-10)


@pytest.mark.parametrize("components", [1, 2, 9])
def test_numerical_and_closed_forms_of_a_mixture_agree(
    components: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, values = mixture(20, components, "affine"), np.linspace(260.0, 300.0, 20)
    exact, center = one.crps(values), one.mean()
    assert isinstance(one.normalizer, FittedNormalizer)
    monkeypatch.setattr(type(one.normalizer.normalizer), "linear", False)
    np.testing.assert_allclose(one.crps(values), exact, rtol=1e-4)
    np.testing.assert_allclose(one.mean(), center, rtol=1e-6)


def test_the_mode_is_between_components_that_overlap() -> None:
    # With three equal components, the mode is the center of the middle one, by symmetry.
    three = Mixture(
        np.zeros((1, 3)), np.array([[-1.0, 0.0, 1.0]]), np.ones((1, 3)), NORMALIZATIONS["scale"]
    )
    assert three.mode()[0] == pytest.approx(0, abs=1e-9)
    # A slope moves the peak away from the center of the needle on it: no center is a mode.
    pair = Mixture(
        np.log([[0.5, 0.5]]), np.array([[0.0, 1.0]]), np.array([[1.0, 0.8]]), NORMALIZATIONS["none"]
    )
    around = pair.mode() + np.linspace(-1, 1, 2001)
    densities = repeated(pair, 2001).log_density(around)
    assert abs(around[densities.argmax()] - pair.mode()[0]) < 2e-3
    assert 0.5 < pair.mode()[0] < 0.999


def test_the_mode_is_the_peak_in_raw_units() -> None:
    """Under signed-log, a narrow low component can be denser than a wide high one."""
    weights, centers = np.log([[0.4, 0.6], [0.1, 0.9]]), np.array([[1.0, 3.0], [-2.0, 2.0]])
    deviations = np.array([[0.1, 0.1], [0.02, 0.3]])
    both = Mixture(weights, centers, deviations, NORMALIZATIONS["signed-log"])
    grid = both.normalizer.inverse(np.linspace(-4, 5, 4001))
    for row, mode in enumerate(both.mode().tolist()):
        own = slice(row, row + 1)
        one = Mixture(weights[own], centers[own], deviations[own], both.normalizer)
        densities = repeated(one, len(grid)).log_density(grid)
        assert one.mode()[0] == mode == pytest.approx(grid[densities.argmax()], rel=6e-3)
        assert one.log_density(one.mode())[0] >= densities.max()
    single = Mixture.single(np.array([2.0]), 0.3, NORMALIZATIONS["signed-log"])
    # The density of log10(1 + x) peaks variance * ln 10 below its center.
    expected = single.normalizer.inverse(np.array([2 - 0.09 * math.log(10)]))
    np.testing.assert_allclose(single.mode(), expected, rtol=1e-6)


def test_weights_are_divided_by_their_sum() -> None:
    one, values = mixture(10, 3, "scale"), np.linspace(-50.0, 50.0, 10)
    more = Mixture(one.log_weights + 700.0, one.centers, one.deviations, one.normalizer)
    np.testing.assert_allclose(more.log_density(values), one.log_density(values))
    np.testing.assert_allclose(more.cdf(values), one.cdf(values))


@given(st.floats(-15.0, 15.0), st.floats(1e-9, 5.0))
def test_the_interval_of_a_mixture_is_the_sum_over_its_components(low: float, width: float) -> None:
    high = np.array([low + width])
    found = of_two().log_interval(np.array([low]), high)[0]
    with mpmath.workdps(400):
        parts = [
            weight
            * (
                mpmath.erf((mpmath.mpf(low + width) - m) / (s * mpmath.sqrt(2)))
                - mpmath.erf((mpmath.mpf(low) - m) / (s * mpmath.sqrt(2)))
            )
            / 2
            for weight, m, s in ((0.3, -1, 0.5), (0.7, 2, 0.25))
        ]
        expected = float(mpmath.log(parts[0] + parts[1]))
    assert found == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_arrays_that_make_no_mixture_are_refused(says: Says) -> None:
    fitted, one = NORMALIZATIONS["none"], np.ones((2, 3))
    with says.raises(ValueError, "[n, k]", "[(2, 2), (2, 3)]"):
        Mixture(one, one[:, :2], one, fitted)
    for deviation in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=r"^standard deviations must be positive$"):
            Mixture(one, one, np.full((2, 3), deviation), fitted)
