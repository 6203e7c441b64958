"""Independent digits and bits, compared with sums over all numbers."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.models.distributions import piecewise, scientific
from numtok.models.distributions.bits import IndependentBits, bits_of, values_of
from numtok.models.distributions.digits import IndependentDigits, digits_of, numbers_of
from numtok.models.distributions.floating import FloatingPlaces
from numtok.models.distributions.prefix_tree import PrefixTree
from numtok.models.distributions.scientific import IndependentScientific
from numtok.models.heads.fone import FoneHead

Floats = NDArray[np.float64]
N, PLACES, UNIT = 4, 3, 0.1
VALUES = (0.0, 0.03, -0.02, 17.5, 17.53, -42.0, 99.9, 150.0, -200.0, 0.05, -0.05, 99.95)
LEVELS = (0.01, 0.2, 0.5, 0.77, 0.999)


class Corners(NamedTuple):
    """A piecewise linear distribution function: its points and their heights."""

    x: Floats
    f: Floats


@pytest.fixture(scope="module")
def digits() -> IndependentDigits:
    rng = np.random.default_rng(0)
    log_digits = np.log(rng.dirichlet(np.full(10, 0.3), (N, PLACES)) + 1e-12)
    log_digits -= np.logaddexp.reduce(log_digits, axis=2, keepdims=True)
    return IndependentDigits(log_digits, 1, np.log(rng.dirichlet([1, 1], N)))


def every_number(of: IndependentDigits, row: int) -> tuple[Floats, Floats, Corners]:
    """Return all values, their masses, and the distribution function."""
    sizes = np.arange(10**PLACES)
    mass = np.exp(of.log_digits[row, np.arange(PLACES), digits_of(sizes, PLACES)].sum(axis=1))
    positive, negative = np.exp(of.log_signs[row])
    values = np.concatenate([-sizes[:0:-1], sizes]) * UNIT
    masses = np.concatenate([negative * mass[:0:-1], mass[:1], positive * mass[1:]])
    f = np.concatenate([[0], np.cumsum(masses)])
    return values, masses, Corners(np.append(values[0] - UNIT / 2, values + UNIT / 2), f / f[-1])


def test_digits_answer_as_a_list_of_all_numbers_does(digits: IndependentDigits) -> None:
    found = {value: np.full(N, value) for value in VALUES}
    crps = {value: digits.crps(many) for value, many in found.items()}
    cdf = {value: digits.cdf(many) for value, many in found.items()}
    density = {value: np.exp(digits.log_density(many)) for value, many in found.items()}
    near = {v: np.exp(digits.log_interval(many - 0.33, many + 0.71)) for v, many in found.items()}
    quantiles, mean = digits.quantiles(LEVELS), digits.mean()
    for row in range(N):
        values, masses, (x, f) = every_number(digits, row)
        assert mean[row] == pytest.approx((values * masses).sum())
        assert quantiles[row] == pytest.approx(np.interp(LEVELS, f, x), abs=1e-7)
        for value in VALUES:
            assert cdf[value][row] == pytest.approx(np.interp(value, x, f, 0, 1), abs=1e-12)
            assert crps[value][row] == pytest.approx(piecewise.crps(x, f, value))
            ends = np.interp([value - 0.33, value + 0.71], x, f, 0, 1)
            assert near[value][row] == pytest.approx(ends[1] - ends[0], abs=1e-12)
            if abs(abs(value / UNIT) % 1 - 0.5) > 1e-6:  # not on the edge of a cell
                cell = np.searchsorted(x, value, "right") - 1
                there = masses[cell] / UNIT if 0 <= cell < len(masses) else 0
                assert density[value][row] == pytest.approx(there)


def test_what_is_no_finite_number_has_no_part_in_digits(digits: IndependentDigits) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e300])
    assert np.exp(digits.log_density(values)).tolist() == [0, 0, 0, 0]
    assert np.isnan(digits.cdf(values)).tolist() == [True, False, False, False]
    assert digits.cdf(values)[1:] == pytest.approx([1, 0, 1])
    assert digits.crps(values)[:3] == pytest.approx([np.nan, np.inf, np.inf], nan_ok=True)


def test_drawn_digits_follow_their_distribution(digits: IndependentDigits) -> None:
    drawn = np.sort(digits.sample(600, np.random.default_rng(1)), axis=1)
    found = np.stack([digits.cdf(column) for column in drawn.T])
    assert np.abs(found.T - (np.arange(600) + 0.5) / 600).max() < 0.08


def test_a_tiny_probability_of_digits_keeps_its_digits() -> None:
    log_digits = np.log(np.where(np.arange(10) == 9, 1 - 9e-30, 1e-30))
    one = IndependentDigits(np.tile(log_digits, (1, 15, 1)), 5, np.log([[0.5, 0.5]]))
    [log] = one.log_interval(np.array([1.499995]), np.array([1.500005]))
    assert log == pytest.approx(15 * np.log(1e-30) + np.log(0.5))


def test_digits_and_numbers_are_inverses() -> None:
    numbers = np.random.default_rng(0).integers(0, 10**15, 1000)
    assert numbers_of(digits_of(numbers, 15)).tolist() == numbers.tolist()


def test_ties_have_the_density_of_the_number_that_is_trained() -> None:
    head, ties = FoneHead(whole=3, decimals=2), np.array([543.625, 543.615, -0.375])
    classes = head.targets(ties)
    log_digits = np.log(np.where(classes[:, 1:, None] == np.arange(10), 0.991, 0.001))
    log_signs = np.log(np.where(classes[:, :1] == np.arange(2), 0.99, 0.01))
    density = IndependentDigits(log_digits, 2, log_signs).log_density(ties)
    assert density == pytest.approx(5 * np.log(0.991) + np.log(0.99) + np.log(100))


# --- bits --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bits() -> IndependentBits:
    """Return bits of numbers with exponents from -2 to 1 and both signs."""
    logits = np.random.default_rng(0).normal(size=(3, 64)) * 1.5
    logits[:, 1] = -2000
    logits[:, 2:10] = 2000
    return IndependentBits(np.stack([-np.logaddexp(0, logits), -np.logaddexp(0, -logits)], axis=2))


def test_the_crps_of_nan_is_nan(bits: IndependentBits) -> None:
    assert np.isnan(bits.crps(np.array([np.nan, 1.0, np.nan]))).tolist() == [True, False, True]


def answers_as_drawn(
    one: FloatingPlaces, points: tuple[float, ...], below: float, above: float
) -> None:
    """Compare answers with those of many samples; intervals reach from -below to +above."""
    drawn = one.sample(6000, np.random.default_rng(2))
    assert (drawn < 0).any()
    shuffled = np.random.default_rng(3).permuted(drawn, axis=1)
    spread = np.abs(drawn - shuffled).mean(axis=1) / 2
    scale = max(1.0, np.abs(drawn).mean())
    assert one.mean() == pytest.approx(drawn.mean(axis=1), abs=0.05 * scale)
    for value in points:
        many = np.full(3, value)
        assert one.cdf(many) == pytest.approx((drawn <= value).mean(axis=1), abs=0.05)
        own = np.abs(drawn - value).mean(axis=1)
        assert one.crps(many) == pytest.approx(own - spread, abs=0.05 * scale)
        inside = ((drawn > value - below) & (drawn <= value + above)).mean(axis=1)
        found = np.exp(one.log_interval(many - below, many + above))
        assert found == pytest.approx(inside, abs=0.05)


def test_bits_answer_as_what_is_drawn_of_them_does(bits: IndependentBits) -> None:
    answers_as_drawn(bits, (0.0, -1.3, 2.7, 1e-5, 0.3), 0.3, 0.5)


def test_quantiles_of_bits_are_numbers_that_have_them(bits: IndependentBits) -> None:
    rng = np.random.default_rng(4)
    logits = np.concatenate([rng.normal(size=(20, 64)), rng.normal(size=(20, 64)) * 100])
    for one in (
        bits,
        IndependentBits(np.stack([-np.logaddexp(0, logits), -np.logaddexp(0, -logits)], axis=2)),
    ):
        for level in LEVELS:
            quantile = one.quantiles([level])[:, 0]
            assert (one.cdf(quantile) >= level - 1e-12).all(), level
            assert (one.cdf(np.nextafter(quantile, -np.inf)) <= level + 1e-12).all(), level


def test_the_exponent_of_ones_is_infinity_and_nan() -> None:
    log_bits = np.log(np.full((1, 64, 2), 0.5))
    one = IndependentBits(log_bits)
    nan, infinite = np.exp(one.log_density(np.array([np.nan]))), one.log_density(np.array([np.inf]))
    assert nan == pytest.approx([2**-11])
    assert infinite == pytest.approx([64 * np.log(0.5)])
    assert one.cdf(np.array([np.inf])).tolist() == [1]
    assert one.log_interval(np.array([-np.inf]), np.array([np.inf])) == pytest.approx(
        [np.log1p(-(2**-11))]
    )
    log_bits[0, 1:12] = -800.0, 0.0
    assert not np.isfinite(IndependentBits(log_bits).mode()).any()


@pytest.mark.parametrize("times", [1, pytest.param(100, marks=pytest.mark.slow)])
def test_every_bit_of_a_number_comes_back(times: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(times):
        patterns = rng.integers(0, 2**64, 100_000, np.uint64, endpoint=False)
        again = values_of(bits_of(patterns.view(np.float64))).view(np.uint64)
        assert np.array_equal(again, patterns)


def test_bits_are_those_of_the_papers_numbers() -> None:
    """Golden bits of arXiv 2510.06824: sign, exponent, significand, highest bit first."""
    golden = {
        -60.2: "1 10000000100 1110000110011001100110011001100110011001100110011010",
        17.5: f"0 10000000011 0001100000{'0' * 42}",
        0.0: "0" * 64,
        np.inf: "0" + "1" * 11 + "0" * 52,
    }
    for value, written in (*golden.items(), (-0.0, "1" + "0" * 63)):
        got = "".join(map(str, bits_of(np.array([value]))[0].tolist()))
        assert got == written.replace(" ", ""), value


def test_a_point_divides_the_areas_of_a_tree() -> None:
    """The tree of the doctest, whose cells have the masses 1/8, 3/8, 1/8 and 3/8."""
    tree = PrefixTree(np.log([[[0.5, 0.5], [0.25, 0.75]]]))
    x, f = np.linspace(0, 1, 5), np.array([0, 1, 4, 5, 8]) / 8
    for cell, into in ((0, 0.0), (1, 0.5), (3, 1.0), (2, 0.25)):
        point = (cell + into) / 4
        areas = tree.areas(np.array([[cell // 2, cell % 2]]), np.array([into]))
        fine = np.linspace(0, 1, 400_001)
        g = np.interp(fine, x, f)
        left = fine <= point
        wanted = [
            np.trapezoid(np.where(left, g, 0), fine), np.trapezoid(np.where(left, g**2, 0), fine),
            np.trapezoid(np.where(left, 0, 1 - g), fine),
            np.trapezoid(np.where(left, 0, (1 - g) ** 2), fine),
        ]  # fmt: skip
        assert np.ravel(areas) == pytest.approx(wanted, abs=1e-5)


# --- scientific notation -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def notation() -> IndependentScientific:
    """Return digits of numbers with exponents from 0 to 2, both signs, and zero."""
    logits = np.random.default_rng(0).normal(size=(3, 20, 10)) * 1.5
    logits[:, :3] = -2000
    logits[:, [0, 1], [5, 0]] = 0
    logits[:, 2, :3] = 0
    log_digits = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    return IndependentScientific(np.log([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]), log_digits)


def test_scientific_notation_answers_as_what_is_drawn_of_it_does(
    notation: IndependentScientific,
) -> None:
    answers_as_drawn(notation, (0.0, -1.3, 2.7, 170.0, -43.0, 1e-3), 9, 5)
    for level in LEVELS:
        quantile = notation.quantiles([level])[:, 0]
        # Several numbers of seventeen digits round to the same float.
        above, below = (np.nextafter(quantile, end) for end in (np.inf, -np.inf))
        assert (notation.cdf(above) >= level - 1e-12).all(), level
        assert (notation.cdf(below) <= level + 1e-12).all(), level


def test_seventeen_digits_give_every_float_back() -> None:
    patterns = np.random.default_rng(0).integers(0, 2**64, 20_000, np.uint64, endpoint=False)
    values = np.abs(patterns.view(np.float64))
    values = np.append(values[values < 1e308], [0.0, 5e-324, 9.99e307, 0.1])
    assert np.array_equal(scientific.sizes_of(scientific.digits_of(values)), values)


def test_zero_and_infinity_in_scientific_notation(notation: IndependentScientific) -> None:
    zeros = np.zeros(3)
    at_zero = notation.log_density(zeros) + np.log(5e-324)
    assert at_zero == pytest.approx(notation.log_digits[:, 3, 0])
    logits = np.zeros((1, 20, 10))
    flat = IndependentScientific(np.log([[0.5, 0.5]]), logits - np.log(10))
    infinite = np.exp(flat.log_density(np.array([np.inf])))
    assert infinite == pytest.approx([0.5 * 0.9 * (1 - 0.808)])
    assert flat.cdf(np.array([np.inf])).tolist() == [1]
    # Numbers too small for float64 become the smallest float above 0.
    assert flat.cdf(np.zeros(1)) == pytest.approx([0.5 * 0.9 + 0.1])
    assert scientific.sizes_of(np.array([[*(int(one) for one in "100" + "1" * 17)]])) == [5e-324]
    drawn = flat.sample(20_000, np.random.default_rng(0))
    assert (drawn <= 0).mean() == pytest.approx(0.55, abs=0.02)
