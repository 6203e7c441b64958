"""A mantissa times an uncertain power of ten: normalized, consistent, and checked by hand."""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
from numtok.models.distributions.intervals import Intervals
from numtok.models.distributions.mixture import Mixture
from numtok.models.distributions.multiples import Multiples
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.tailed import Tailed
from tests.cases import each

Floats = NDArray[np.float64]

NONE = FittedNormalizer(NORMALIZERS.build("none"), {})
AFFINE = FittedNormalizer(NORMALIZERS.build("affine"), {"mean": 30.0, "deviation": 4.0})
LOG = FittedNormalizer(NORMALIZERS.build("signed-log"), {})
#: 0.1, 1, 10, 100, then underflow, overflow, NaN and both infinities, in the order of a scheme.
FACTORS = np.array([0.1, 1.0, 10.0, 100.0, 0.0, np.inf, np.nan, np.nan, np.nan])
ATOMS = np.array([*[np.nan] * 7, np.inf, -np.inf])
PLAIN = np.array([0.2, 0.4, 0.3, 0.1, 0, 0, 0, 0, 0])  # no underflow, overflow, NaN or infinity
ALL = np.array([0.1, 0.3, 0.2, 0.05, 0.08, 0.12, 0.05, 0.04, 0.06])
CENTER, DEVIATION = 2.5, math.sqrt(0.5)


def gaussian(rows: int) -> Predictive:
    return Mixture.single(np.full(rows, CENTER), DEVIATION, NONE)


def mixture(rows: int) -> Predictive:
    two = np.log([0.7, 0.3]), np.array([-4.0, 6.0]), np.array([0.5, 1.5])
    weights, centers, deviations = (np.tile(one, (rows, 1)) for one in two)
    return Mixture(weights, centers, deviations, NONE)


def histogram(rows: int) -> Predictive:
    edges, shares = np.array([-9.0, -2.0, 1.0, 4.0, 9.9]), np.log([0.1, 0.2, 0.4, 0.3])
    middles = (edges[1:] + edges[:-1]) / 2
    return Intervals(
        low=edges[:-1], high=edges[1:], values=middles, log_mass=np.tile(shares, (rows, 1))
    )


def tailed(rows: int) -> Predictive:
    return Tailed(histogram(rows), -9.0, 9.9, 0.05)


MANTISSAS = [gaussian, mixture, histogram, tailed]


def multiples(
    rows: int,
    weights: Floats = ALL,
    mantissa: Predictive | None = None,
    normalizer: FittedNormalizer = NONE,
) -> Multiples:
    """Return the same distribution in each row."""
    with np.errstate(divide="ignore"):
        logs = np.tile(np.log(weights), (rows, 1))
    return Multiples(
        mantissa=mantissa or gaussian(rows),
        factors=FACTORS,
        atoms=ATOMS,
        log_weights=logs,
        normalizer=normalizer,
    )


def test_the_density_is_that_of_the_mantissa_over_each_factor_by_hand() -> None:
    """Equations 10 and 11, with the factor 10^-e."""
    for value in (-3.0, 0.0, 0.2, 2.5, 30.0, 777.0):
        expected = sum(
            weight / math.sqrt(math.pi) * math.exp(-((value / 10.0**e - CENTER) ** 2)) / 10.0**e
            for e, weight in zip((-1, 0, 1, 2), PLAIN, strict=False)
        )
        found = np.exp(multiples(1, PLAIN).log_density(np.array([value])))
        assert found == pytest.approx(expected, rel=1e-12)


@each("mantissa", MANTISSAS)
@each("weights", [PLAIN, ALL])
@each("normalizer", [NONE, AFFINE])
def test_the_density_integrates_to_the_probability_of_a_finite_number(
    mantissa: object, weights: Floats, normalizer: FittedNormalizer
) -> None:
    one = multiples(1, weights, mantissa(1), normalizer)  # type: ignore[operator]
    sizes = np.geomspace(1e-4, 999.0, 20001)
    near = np.linspace(-1e-4, 1e-4, 5)
    edges = normalizer.inverse(np.concatenate([-sizes[::-1], near, sizes]))
    middles = (edges[1:] + edges[:-1]) / 2
    many = multiples(len(middles), weights, mantissa(len(middles)), normalizer)  # type: ignore[operator]
    total = np.exp(many.log_density(middles)) @ np.diff(edges)
    # The rest is beyond 999, in the tails of the largest factor.
    ends = one.log_interval(edges[:1], edges[-1:])
    assert total == pytest.approx(np.exp(ends)[0], abs=2e-4)
    assert total == pytest.approx(weights[:5].sum(), abs=0.06)


@each("mantissa", MANTISSAS)
def test_the_probability_of_an_interval_is_the_difference_of_the_distribution_function(
    mantissa: object,
) -> None:
    low = np.array([-800.0, -0.05, 0.0, 0.01, 3.0, 5.0, -np.inf])
    high = np.array([-3.0, 0.02, 0.05, 0.2, 60.0, 5.0, np.inf])
    many = multiples(len(low), ALL, mantissa(len(low)))  # type: ignore[operator]
    numbers = 1 - 0.05  # the probability of not being NaN
    expected = (many.cdf(high) - many.cdf(low)) * numbers
    np.testing.assert_allclose(np.exp(many.log_interval(low, high)), expected, atol=1e-12)
    assert np.isnan(many.log_interval(np.full(7, np.nan), high)).all()


def test_underflow_overflow_and_what_is_no_number_have_their_mass() -> None:
    """Underflow is spread evenly and overflow lies at infinity, as in ``Intervals``."""
    negative = NormalDist(CENTER, DEVIATION).cdf(0)
    one = multiples(6)
    values = np.array([np.nan, np.inf, -np.inf, 0.05, -0.05, 5000.0])
    found = np.exp(one.log_density(values))
    assert found[0] == pytest.approx(0.05)
    assert found[1] == pytest.approx(0.04 + 0.12 * (1 - negative))
    assert found[2] == pytest.approx(0.06 + 0.12 * negative)
    bare = np.exp(multiples(6, np.where(FACTORS == 0, 0.0, ALL)).log_density(values))
    assert found[3] - bare[3] == pytest.approx(0.08 * (1 - negative) / 0.1)
    assert found[4] - bare[4] == pytest.approx(0.08 * negative / 0.1)
    assert found[5] == pytest.approx(0.12 * (1 - negative))  # beyond the largest number
    ends = one.cdf(np.array([-np.inf, np.inf, 1e300, -1e300, np.nan, 0.0]))
    assert ends[:4] * 0.95 == pytest.approx([found[2], 0.95, 0.95 - found[1], found[2]])
    assert np.isnan(ends[4])


@each("mantissa", MANTISSAS)
@each("weights", [PLAIN, ALL])
@each("normalizer", [NONE, AFFINE, LOG])
def test_quantiles_are_the_inverse_of_the_distribution_function(
    mantissa: object, weights: Floats, normalizer: FittedNormalizer
) -> None:
    levels = [0.2, 0.3, 0.5, 0.7, 0.8]
    one = multiples(1, weights, mantissa(1), normalizer)  # type: ignore[operator]
    found = one.quantiles(levels)
    assert found.shape == (1, 5)
    assert (np.diff(found[0]) > 0).all()
    many = multiples(5, weights, mantissa(5), normalizer)  # type: ignore[operator]
    np.testing.assert_allclose(many.cdf(found[0]), levels, atol=1e-6)


def test_quantiles_in_an_overflow_are_infinite() -> None:
    found = multiples(2).quantiles([0.01, 0.5, 0.99])
    assert found[:, 0].tolist() == [-np.inf] * 2
    assert np.isfinite(found[:, 1]).all()
    assert found[:, 2].tolist() == [np.inf] * 2
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        multiples(1).quantiles([1.0])


def test_what_is_surely_no_finite_number_has_a_distribution_of_them_all_the_same() -> None:
    tokens = np.tile(np.log(PLAIN + 1e-300), (3, 1)) - 50
    tokens[[0, 1, 2], [5, 6, 7]] = 0
    one, plain = (
        Multiples(
            mantissa=gaussian(3), factors=FACTORS, atoms=ATOMS, log_weights=tokens, normalizer=NONE
        ),
        multiples(3, PLAIN),
    )
    np.testing.assert_allclose(one.mean(), plain.mean())
    np.testing.assert_allclose(one.crps(np.full(3, 7.0)), plain.crps(np.full(3, 7.0)))
    found = one.quantiles([0.5])[:, 0]
    assert found[0] == np.inf == found[2]
    assert found[1] == pytest.approx(plain.median()[1])  # conditional on not being NaN


def test_numbers_of_all_sizes_are_scored() -> None:
    values = np.array([1e300, -1e300, 1e-300, 0.0, 5e-324])
    one = multiples(5)
    assert np.isfinite(one.log_density(values)).all()
    assert not np.isnan(one.log_interval(values, 2 * values)).any()
    assert np.isfinite(one.crps(values)).all()


def test_each_row_has_its_own_exponents() -> None:
    weights = np.log(np.array([[1, 0, 0, 0], [0, 0, 0, 1.0], [0.5, 0, 0.5, 0]]) + 1e-300)
    logs = np.concatenate([weights, np.full((3, 5), -1e3)], axis=1)
    one = Multiples(
        mantissa=gaussian(3), factors=FACTORS, atoms=ATOMS, log_weights=logs, normalizer=NONE
    )
    np.testing.assert_allclose(one.mean(), [0.25, 250.0, 12.625])
    np.testing.assert_allclose(one.mode(), [0.25, 250.0, 0.25])
    np.testing.assert_allclose(one.median()[:2], [0.25, 250.0], rtol=1e-6)


@each("mantissa", MANTISSAS)
def test_draws_are_of_the_same_distribution(mantissa: object) -> None:
    one = multiples(1, ALL, mantissa(1))  # type: ignore[operator]
    draws = one.sample(40_000, np.random.default_rng(0))[0]
    assert np.isnan(draws).mean() == pytest.approx(0.05, abs=0.006)
    numbers = np.sort(draws[~np.isnan(draws)])
    levels = np.array([0.2, 0.3, 0.5, 0.7, 0.8])
    below = [(numbers <= point).mean() for point in one.quantiles(levels.tolist())[0]]
    np.testing.assert_allclose(below, levels, atol=0.01)
    finite = numbers[np.isfinite(numbers)]
    error = finite.std() / math.sqrt(len(finite))
    assert one.mean()[0] == pytest.approx(finite.mean(), abs=4 * error)


@each("mantissa", MANTISSAS)
@each("value", [-40.0, 0.03, 7.0, 900.0])
def test_the_score_is_that_of_many_draws(mantissa: object, value: float) -> None:
    one = multiples(1, ALL, mantissa(1))  # type: ignore[operator]
    draws = one.sample(60_000, np.random.default_rng(1))[0]
    draws = np.sort(draws[np.isfinite(draws)])
    count = len(draws)
    spread = draws @ (2 * np.arange(count) - count + 1) / count**2
    expected = np.abs(draws - value).mean() - spread
    assert one.crps(np.array([value]))[0] == pytest.approx(expected, rel=0.03, abs=0.3)


def test_with_one_certain_factor_it_is_the_scaled_mantissa() -> None:
    certain = np.array([0, 0, 1.0, 0, 0, 0, 0, 0, 0])
    values = np.array([-20.0, 3.0, 25.0, 44.0])
    one = multiples(4, certain)
    scaled = Mixture.single(np.full(4, 10 * CENTER), 10 * DEVIATION, NONE)
    for method in ("log_density", "cdf"):
        ours, theirs = getattr(one, method)(values), getattr(scaled, method)(values)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, err_msg=method)
    np.testing.assert_allclose(one.crps(values), scaled.crps(values), rtol=1e-3)
    np.testing.assert_allclose(one.quantiles([0.1, 0.9]), scaled.quantiles([0.1, 0.9]), rtol=1e-7)
    np.testing.assert_allclose(one.mean(), scaled.mean())
    np.testing.assert_allclose(one.mode(), scaled.mode())


def test_the_mode_is_what_greedy_decoding_gives() -> None:
    tokens = np.eye(9) * 50
    one = Multiples(
        mantissa=gaussian(9), factors=FACTORS, atoms=ATOMS, log_weights=tokens - 50, normalizer=NONE
    )
    expected = [0.25, 2.5, 25.0, 250.0, np.nan, np.nan, np.nan, np.inf, -np.inf]
    np.testing.assert_allclose(one.mode(), expected)


@each("normalizer", [NONE, AFFINE, LOG])
def test_the_mean_is_that_of_draws_whatever_the_normalisation(normalizer: FittedNormalizer) -> None:
    small = np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0, 0])
    one = replace(multiples(1, small), normalizer=normalizer)
    draws = one.sample(50_000, np.random.default_rng(2))[0]
    error = draws.std() / math.sqrt(len(draws))
    assert one.mean()[0] == pytest.approx(draws.mean(), abs=5 * error)
