"""Predictive distributions: they integrate to 1, match hand-computed values, and are consistent.

Expected values come from plain integrals of the density and of (F(x) - 1{x >= y})^2, and from sums
worked out by hand.
"""

import doctest
import importlib
import math
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok.encoding.grammar import Grammar, Support
from numtok.encoding.grid import GridScheme
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
from numtok.encoding.schemes.base import SCHEMES, Scheme
from numtok.encoding.schemes.p1000 import P1000
from numtok.models.distributions import piecewise
from numtok.models.distributions.intervals import Intervals
from numtok.models.distributions.mixture import Mixture
from numtok.models.distributions.multiples import Multiples
from numtok.models.distributions.predictive import Predictive
from numtok.models.distributions.samples import Empirical, harrell_davis
from numtok.models.distributions.tailed import Tailed
from numtok.numerals.column import Numerals
from numtok.numerals.literals import resolution
from numtok.plugins import add_plugin_folders
from tests.cases import each

ROOT = Path(__file__).resolve().parents[3]
Floats = NDArray[np.float64]

NORMALIZATIONS = {
    "none": FittedNormalizer(NORMALIZERS.build("none"), {}),
    "scale": FittedNormalizer(NORMALIZERS.build("scale:5"), {"factor": 0.05}),
    "affine": FittedNormalizer(NORMALIZERS.build("affine"), {"mean": 281.5, "deviation": 7.25}),
    "signed-log": FittedNormalizer(NORMALIZERS.build("signed-log"), {}),
}
TOKEN_SCHEMES = ["p1000", "p10", "b1999", "fp15"]
SMALL = "p10,digits=2,exponents=-1..0"


def logits_of(scheme: Scheme, rows: int, scale: float, seed: int = 0) -> NDArray[np.float32]:
    """Return random logits of fixed-width numbers."""
    shape = rows, scheme.tokens_per_number or 0, len(scheme.vocabulary())
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


@cache
def support_of(scheme: Scheme) -> Support:
    """Return the support of a scheme, cached because listing it is slow."""
    return Support.of(Grammar(scheme))


@cache
def ends_of(scheme: Scheme) -> Floats:
    """Return all finite interval ends of a scheme, computed one token sequence at a time."""
    assert isinstance(scheme, GridScheme)
    slots = [ids.tolist() for ids in scheme.ids]
    extras = range(scheme.paper_vocabulary_size, len(scheme.vocabulary()))
    paths = [*product(*slots), *((token,) * len(slots) for token in extras)]
    ends = {end for path in paths for end in scheme.interval(path) if math.isfinite(end)}
    return np.array(sorted(ends))


def predicted(
    scheme: Scheme, normalization: str, logits: NDArray[np.float32]
) -> tuple[Support, Intervals]:
    """Return the support in raw units, and the distributions that the logits define on it."""
    support = support_of(scheme).raw(NORMALIZATIONS[normalization])
    masses = support.log_probabilities(logits)
    return support, Intervals(
        low=support.low, high=support.high, values=support.values, log_mass=masses
    )


def first_row(many: Intervals, values: Floats) -> Floats:
    """Return the log-densities of the first row at many values."""
    masses = np.broadcast_to(many.log_mass[:1], (len(values), many.log_mass.shape[1]))
    return Intervals(low=many.low, high=many.high, values=many.values, log_mass=masses).log_density(
        values
    )


def of_masses(low: list[float], high: list[float], mass: list[float]) -> Intervals:
    """Return one distribution whose intervals have their midpoints as values."""
    lows, highs = np.array(low), np.array(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Intervals(
            low=lows, high=highs, values=(lows + highs) / 2, log_mass=np.log(np.array([mass]))
        )


# --- token probabilities are a density and atoms -----------------------------------------------


def total_probability(scheme: Scheme, normalization: str, one: Intervals, seed: int) -> float:
    """Return the density integrated over the raw line, plus the masses of the special values.

    The edges between which the density is constant come from the scheme, not from a support.
    """
    inverse = NORMALIZATIONS[normalization].inverse
    edges = inverse(ends_of(scheme))
    edges = np.unique(edges[np.isfinite(edges)])
    low, high = edges[:-1], edges[1:]
    inside = low + (high - low) * np.random.default_rng(seed).uniform(0.1, 0.9, len(low))
    inside = np.clip(inside, np.nextafter(low, high), np.nextafter(high, low))
    density = float(np.exp(first_row(one, inside) + np.log(high - low)).sum())
    beyond = np.array([-1.7e308, 1.7e308])  # overflow is one atom
    special = np.array([*inverse(np.zeros(1)), np.nan, np.inf, -np.inf, *beyond])
    return density + float(np.exp(first_row(one, special)).sum())


#: Each scheme except the largest runs with one normalization; slow tests cover all combinations.
SCALES = (("none", 1e4), ("affine", 10.0), ("signed-log", 1.0))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "normalization", "scale"),
    [
        pytest.param(name, *scale, marks=[pytest.mark.slow] * (place % 3 != turn or name == "fp15"))
        for place, name in enumerate(TOKEN_SCHEMES)
        for turn, scale in enumerate(SCALES)
    ],
)
def test_density_and_atoms_of_token_probabilities_integrate_to_one(
    name: str, normalization: str, scale: float
) -> None:
    scheme = SCHEMES.build(name)
    _, one = predicted(scheme, normalization, logits_of(scheme, 1, scale))
    total = total_probability(scheme, normalization, one, 1)
    assert total == pytest.approx(1.0, abs=1e-6)


def by_hand(scheme: Scheme, chances: list[dict[str, float]]) -> NDArray[np.float32]:
    """Return logits ln(weight) of the named tokens; all other logits are 0 (weight 1)."""
    logits = np.zeros((1, len(chances), len(scheme.vocabulary())), np.float32)
    for position, weights in enumerate(chances):
        for token, weight in weights.items():
            logits[0, position, scheme.vocabulary().index(token)] = math.log(weight)
    return logits


# Weights in p1000, 1 unless stated:
#   first    "-" has weight 6, "+" and 8 extras have 1 each:  P(-) = 6 / 15 = 0.4
#   second   "602" has 101, among 900 mantissas:              P(602) = 101 / 1000 = 0.101
#   third    "E-1" has 5, among 16 exponents:                 P(E-1) = 5 / 20 = 0.25
# Tokens with huge weights are not allowed at their positions. -60.2 is - 602 E-1 and covers values
# from -60.25 to -60.15: a probability of 0.4 * 0.101 * 0.25 = 0.0101 over a width of 0.1, so
#   density = 0.101    NLL = -ln 0.101 = 2.2926
HAND = [{"-": 6.0, "E-1": 1e9}, {"602": 101.0, "+": 1e9}, {"E-1": 5.0, "ZERO": 1e9}]


@each(
    ("normalization", "value", "width"),
    [
        ("none", -60.2, 0.1),
        ("scale", -60.2 / 0.05, 0.1 / 0.05),
        ("affine", -60.2 * 7.25 + 281.5, 0.1 * 7.25),
        # -(10^60.2 - 1); 60.15 and 60.25 in normalized units are 10^60.15 and 10^60.25 in raw units
        ("signed-log", -(10**60.2), 10**60.25 - 10**60.15),
    ],
)
def test_the_nll_of_p1000_is_that_worked_out_by_hand(
    normalization: str, value: float, width: float
) -> None:
    _, one = predicted(P1000(), normalization, by_hand(P1000(), HAND))
    nll = -one.log_density(np.array([value]))[0]
    assert nll == pytest.approx(-math.log(0.0101 / width), rel=1e-6)
    if normalization == "none":
        assert nll == pytest.approx(2.2926347621)


def test_the_nll_of_special_values_is_that_of_their_masses() -> None:
    _, one = predicted(P1000(), "none", by_hand(P1000(), HAND))
    special = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e300, -1e300, 9.996e9]
    # Each extra has probability 1/15 and determines the remaining tokens.
    np.testing.assert_allclose(np.exp(first_row(one, np.array(special))), 1 / 15)
    # Underflow lies between 0 and the smallest number that rounds to 1e-6 (9.995e-7).
    under = first_row(one, np.array([1e-9, -9e-7]))
    np.testing.assert_allclose(np.exp(under), 1 / 15 / 9.995e-7)


@each(
    ("name", "chances", "mass"),
    [
        # One token has weight 8; 28,799 others and 8 extras have 1 each: 8 / (8 + 28807).
        ("fp15", [{"-602E-1": 8.0}], 8 / 28815),
        # 7 / (7 + 1799 + 8), then 4 / (4 + 15)
        ("b1999", [{"-602": 7.0}, {"E-1": 4.0}], 7 / 1814 * 4 / 19),
        # 2 / (2 + 9); 3 / (3 + 8), no leading zero; 1 / 10; 4 / (4 + 9); 5 / (5 + 15)
        (
            "p10",
            [{"-": 2.0}, {"6": 3.0, "0": 1e9}, {}, {"2": 4.0}, {"E-1": 5.0}],
            2 / 11 * 3 / 11 * 1 / 10 * 4 / 13 * 5 / 20,
        ),
    ],
)
def test_the_nll_of_other_schemes_is_that_worked_out_by_hand(
    name: str, chances: list[dict[str, float]], mass: float
) -> None:
    scheme = SCHEMES.build(name)
    _, one = predicted(scheme, "none", by_hand(scheme, chances))
    assert one.log_density(np.array([-60.21]))[0] == pytest.approx(math.log(mass / 0.1))
    assert one.mode()[0] == -60.2 or name != "fp15"


def test_a_scheme_from_outside_the_package_has_a_density_too(plugins: Path) -> None:
    add_plugin_folders([ROOT / "tests" / "plugins"])
    scheme = SCHEMES.build("logarithm")
    _, one = predicted(scheme, "scale", np.zeros((1, 1, len(scheme.vocabulary())), np.float32))
    # 2 * 1601 steps and 8 extras, all equal. -60.2 is in 10^1.775 to 10^1.785, divided by 0.05.
    width = (10**1.785 - 10**1.775) / 0.05
    found = first_row(one, np.array([-60.2 / 0.05, 0.0, np.inf, 1e300]))
    np.testing.assert_allclose(np.exp(found), [1 / 3210 / width, *[1 / 3210] * 3])
    tokens = scheme.encode(Numerals(np.array([-60.2]))).tokens
    assert scheme.vocabulary()[tokens[0]] == "-10^1.78"


# --- intervals ---------------------------------------------------------------------------------

# -inf | overflow | interval | interval next to 0 | 0 | interval next to 0 | overflow | inf | NaN
LOW = [-math.inf, -math.inf, -4.0, -1.0, 0.0, 0.0, 2.0, math.inf, math.nan]
HIGH = [-math.inf, -4.0, -1.0, 0.0, 0.0, 2.0, math.inf, math.inf, math.nan]
MASS = [0.01, 0.04, 0.3, 0.1, 0.05, 0.2, 0.15, 0.05, 0.1]


def test_each_kind_of_value_has_its_density_or_mass() -> None:
    one = of_masses(LOW, HIGH, MASS)
    expected = {
        -math.inf: 0.01,
        -1e9: 0.04,
        -4.0: 0.1,  # the end of an interval, next to the overflow
        -2.0: 0.1,
        -1.0: 0.1,  # two intervals of equal density meet
        0.0: 0.05,
        1.5: 0.1,
        2.0: 0.1,
        3.0: 0.15,
        math.inf: 0.05,
        math.nan: 0.1,
    }
    found = np.exp(first_row(one, np.array(list(expected))))
    np.testing.assert_allclose(found, list(expected.values()))


def test_where_two_intervals_meet_is_the_mean_of_their_densities() -> None:
    one = of_masses([0.0, 1.0], [1.0, 3.0], [0.8, 0.2])
    np.testing.assert_allclose(np.exp(first_row(one, np.array([1.0]))), (0.8 + 0.1) / 2)


def test_outside_all_intervals_the_density_is_zero() -> None:
    one = of_masses([0.0], [1.0], [1.0])
    odd = np.array([-0.5, 1.5, math.inf, math.nan])
    np.testing.assert_array_equal(first_row(one, odd), -math.inf)


@each(
    ("low", "high", "expected"),
    [
        (-4.0, -1.0, 0.3),
        (-2.5, 1.0, 0.3 / 2 + 0.1 + 0.05 + 0.2 / 2),
        (-0.5, 0.0, 0.1 / 2 + 0.05),  # atoms count at the upper end,
        (0.0, 0.5, 0.2 / 4),  # but not at the lower end
        (-math.inf, math.inf, 0.3 + 0.1 + 0.05 + 0.2 + 0.15 + 0.05),
        (2.0, 1e300, 0.0),  # overflow lies at infinity
        (2.0, math.inf, 0.2),
        (1.0, 1.0, 0.0),
        (1.0, 0.5, 0.0),
        (math.nan, 1.0, math.nan),
        (1.0, math.nan, math.nan),
    ],
)
def test_the_probability_of_an_interval_is_a_sum_of_masses(
    low: float, high: float, expected: float
) -> None:
    one = of_masses(LOW, HIGH, MASS)
    found = np.exp(one.log_interval(np.array([low]), np.array([high])))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_probability_of_an_interval_keeps_its_digits_where_it_is_tiny() -> None:
    logs = np.array([[0.0, -5000.0, -5000.0 + math.log(3)]])
    low, high = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    one = Intervals(low=low, high=high, values=np.zeros(3), log_mass=logs)
    found = one.log_interval(np.array([1.5]), np.array([3.0]))[0]
    assert found == pytest.approx(-5000 + math.log(1 / 2 + 3), rel=1e-15)
    never = Intervals(
        low=low, high=high, values=np.zeros(3), log_mass=np.array([[0.0, -np.inf, -np.inf]])
    )
    assert never.log_interval(np.array([1.5]), np.array([3.0]))[0] == -math.inf


@each(
    "literal", ["0.30000000000000004", "287.61453247070312", "12345678901234567890", "287.614532"]
)
def test_what_was_recorded_finer_than_float64_is_as_wide_as_two_spacings(literal: str) -> None:
    value = np.array([float(literal)])
    one = Mixture.single(value, abs(value) / 10, NORMALIZATIONS["none"])
    half = resolution(literal) / 2
    wide = 2 * max(half, float(np.spacing(value[0])))
    expected = one.log_density(value)[0] + math.log(wide)
    assert one.log_recorded(value, half)[0] == pytest.approx(expected, abs=1e-6)


@each(
    ("scaling", "value", "half"),
    [
        (FittedNormalizer(NORMALIZERS.build("unit"), {"low": -1e9, "width": 2e9}), 1e-5, 1e-12),
        (NORMALIZATIONS["scale"], 1e300, 1e270),
        (NORMALIZATIONS["signed-log"], 1e300, 1e280),
    ],
)
def test_an_interval_that_normalised_values_do_not_tell_apart_has_its_probability(
    scaling: FittedNormalizer, value: float, half: float
) -> None:
    at = np.array([value])
    center, deviation = scaling.forward(at), 0.1 * np.abs(scaling.forward(at))
    one = Mixture.single(center, deviation, scaling)
    found = one.log_recorded(at, np.array([half]))[0]
    expected = one.log_density(at)[0] + math.log(2 * max(half, np.spacing(value)))
    assert found == pytest.approx(expected, abs=1e-5)


def test_what_was_recorded_at_no_known_resolution_has_no_probability() -> None:
    one = Mixture.single(np.zeros(1), 1.0, NORMALIZATIONS["none"])
    assert np.isnan(one.log_recorded(np.zeros(1), np.array([math.nan]))).all()


def test_an_interval_as_narrow_as_rounding_is_an_atom() -> None:
    one = of_masses([0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0], [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(np.exp(first_row(one, np.array([1.0]))), 0.5)
    assert one.cdf(np.array([1.0]))[0] == pytest.approx(0.6)
    assert one.quantiles([0.3]).item() == 1.0


def test_cdf_and_quantiles_are_given_that_it_is_a_number() -> None:
    one = of_masses(LOW, HIGH, MASS)
    values = [-math.inf, -1e300, -4.0, -2.5, -1.0, -1e-9, 0.0, 1.0, 2.0, 1e300, math.inf]
    below = [0.05, 0.05, 0.05, 0.2, 0.35, 0.45, 0.5, 0.6, 0.7, 0.7, 0.9]
    found = [one.cdf(np.array([value]))[0] for value in values]
    np.testing.assert_allclose(found, np.array(below) / 0.9, rtol=1e-8)
    assert np.isnan(one.cdf(np.array([math.nan]))[0])
    levels = np.array([0.04, 0.05, 0.2, 0.45, 0.475, 0.5, 0.6, 0.701]) / 0.9
    places = [-math.inf, -math.inf, -2.5, 0.0, 0.0, 0.0, 1.0, math.inf]
    np.testing.assert_allclose(one.quantiles(levels.tolist())[0], places, atol=1e-12)
    assert one.median()[0] == 0.0


def test_the_mean_is_given_that_it_is_finite_and_the_mode_is_the_likeliest_value() -> None:
    one = of_masses(LOW, HIGH, MASS)
    assert one.mean()[0] == pytest.approx((0.3 * -2.5 + 0.1 * -0.5 + 0.2 * 1.0) / 0.65)
    assert one.mode()[0] == -2.5
    likely_nan = of_masses(LOW, HIGH, [*MASS[:-1], 0.9])
    assert np.isnan(likely_nan.mode()[0])


def test_extreme_masses_leave_what_is_given_exact() -> None:
    logs = np.array([[0.0, -5000.0, -5000.0 + math.log(3), -10000.0, 0.0]])
    low = np.array([-math.inf, 0.0, 1.0, 2.0, math.nan])
    high = np.array([0.0, 1.0, 2.0, math.inf, math.nan])
    one = Intervals(low=low, high=high, values=np.zeros(5), log_mass=logs)
    assert one.mean()[0] == pytest.approx((0.5 + 3 * 1.5) / 4)
    # Uniform on each interval: F^2 integrates to 1/48 below 1, (1 - F)^2 to 9/16 * 1/3 above.
    assert one.crps(np.array([1.0]))[0] == pytest.approx(1 / 48 + 9 / 48)
    assert one.quantiles([0.5]).item() == -math.inf


def test_intervals_that_do_not_ascend_are_refused() -> None:
    for low, high in [([1.0, 0.0], [2.0, 1.0]), ([math.nan, 0.0], [math.nan, 1.0])]:
        with pytest.raises(ValueError, match=r"^the intervals of a distribution must ascend, with"):
            of_masses(low, high, [0.5, 0.5])


@each("normalization", list(NORMALIZATIONS))
@each("name", ["p1000", SMALL])
def test_a_quantile_undoes_the_cdf(name: str, normalization: str) -> None:
    scheme = SCHEMES.build(name)
    _, many = predicted(scheme, normalization, logits_of(scheme, 30, 1.0))
    values = NORMALIZATIONS[normalization].inverse(np.random.default_rng(5).uniform(-9.0, 9.0, 30))
    levels = many.cdf(values)
    again = [many.quantiles([level])[row, 0] for row, level in enumerate(levels.tolist())]
    np.testing.assert_allclose(again, values, rtol=1e-7, atol=1e-7)
    ladder = many.quantiles([0.01, 0.2, 0.5, 0.8, 0.99])
    assert (ladder[:, 1:] >= ladder[:, :-1]).all()


@each("normalization", ["none", "scale", "signed-log"])
@each("name", ["p1000", "fp15", SMALL])
def test_draws_agree_with_the_cdf(name: str, normalization: str) -> None:
    scheme = SCHEMES.build(name)
    _, one = predicted(scheme, normalization, logits_of(scheme, 1, 1.0))
    draws = np.sort(one.sample(4000, np.random.default_rng(6))[0])  # NaN last
    numbers = draws[~np.isnan(draws)]
    shares = np.searchsorted(numbers, numbers, "right") / len(numbers)
    cdf = [one.cdf(np.array([number]))[0] for number in numbers]
    # Kolmogorov-Smirnov: correct code fails for 1 seed in 1,000.
    assert np.abs(cdf - shares).max() < 1.95 / math.sqrt(len(numbers))
    chance = np.exp(one.log_mass[0, -1])
    spread = math.sqrt(chance * (1 - chance) / len(draws))
    assert abs(np.isnan(draws).mean() - chance) < 3.3 * spread


# --- crps --------------------------------------------------------------------------------------


def integrated(cdf: Callable[[Floats], Floats], values: Floats, ends: Floats) -> list[float]:
    """Return for each value the integral of (F(x) - 1{x >= value})^2 by the midpoint rule."""
    edges = np.union1d(ends, values)
    middles = (edges[1:] + edges[:-1]) / 2
    below, widths = cdf(middles), np.diff(edges)
    return [float(np.square(below - (middles >= value)) @ widths) for value in values.tolist()]


def finite_cdf(one: Intervals) -> Callable[[Floats], Floats]:
    """Return F conditional on finite numbers, by definition: a sum over the intervals."""
    finite = np.isfinite(one.low) & np.isfinite(one.high)
    low, high, mass = one.low[finite], one.high[finite], np.exp(one.log_mass[0, finite])

    def cdf(x: Floats) -> Floats:
        width = np.where(high > low, high - low, 1.0)
        share = np.where(high > low, np.clip((x[:, None] - low) / width, 0, 1), x[:, None] >= low)
        return np.asarray(share @ (mass / mass.sum()), np.float64)

    return cdf


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.lists(st.integers(1, 9), min_size=6, max_size=6),
    st.floats(-5.0, 20.0),
)
@settings(max_examples=12)
def test_the_crps_of_intervals_is_the_integral_of_its_definition(
    widths: list[int], masses: list[int], value: float
) -> None:
    ends = np.cumsum([0.0, *widths]) - 2.0  # a width of 0 is an atom
    mass = np.array(masses[: len(widths)], np.float64)
    log_mass = np.log(mass / mass.sum())[None]
    one = Intervals(low=ends[:-1], high=ends[1:], values=ends[1:], log_mass=log_mass)
    at = np.array([value])
    expected = integrated(finite_cdf(one), at, np.linspace(-6, 21, 27 * 300 + 1))
    assert one.crps(at) == pytest.approx(expected, abs=2e-3)


def test_the_crps_leaves_out_what_is_not_finite() -> None:
    one, values = of_masses(LOW, HIGH, MASS), np.array([-6.0, -4.0, -1.3, 0.0, 0.7, 2.0, 5.0])
    expected = integrated(finite_cdf(one), values, np.linspace(-7, 6, 40001))
    found = [one.crps(np.array([value]))[0] for value in values]
    assert found == pytest.approx(expected, abs=1e-4)


def test_the_crps_of_a_wide_scheme_keeps_its_digits() -> None:
    # Nearly all mass is within 1e-3 of the target; terms up to 1e10 cancel.
    chances = [{"+": 1e12}, {"150": 1e12}, {"E-5": 1e12}]
    _, one = predicted(P1000(), "none", by_hand(P1000(), chances))
    # All but 1e-9 of the mass is uniform over 1.495e-3 to 1.505e-3, which scores 1/12 of the width.
    score = one.crps(np.array([1.5e-3]))[0]
    assert score == pytest.approx(1e-5 / 12, rel=1e-4)


def test_the_crps_of_a_single_value_is_the_distance() -> None:
    one = of_masses([2.0], [2.0], [1.0])
    for value in (-1.0, 2.0, 5.5):
        assert one.crps(np.array([value]))[0] == abs(value - 2.0)


def test_a_corner_of_a_line_is_no_special_case() -> None:
    x, f = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 0.25, 0.75, 1.0])
    for value in (0.0, 1.0, 2.0):
        near = [piecewise.crps(x, f, value + step) for step in (-1e-9, 1e-9)]
        assert piecewise.crps(x, f, value) == pytest.approx(sum(near) / 2, abs=1e-8)


# --- gaussian ----------------------------------------------------------------------------------


def gaussian(normalization: str, center: float, deviation: float) -> Mixture:
    """Return one Gaussian in normalized units."""
    return Mixture.single(np.array([center]), deviation, NORMALIZATIONS[normalization])


@each("normalization", list(NORMALIZATIONS))
def test_the_density_of_a_gaussian_is_the_slope_of_its_cdf(normalization: str) -> None:
    fitted = NORMALIZATIONS[normalization]
    rng = np.random.default_rng(7)
    many = Mixture.single(rng.normal(size=50), rng.uniform(0.5, 2, 50), fitted)
    values = fitted.inverse(rng.normal(size=50))
    step = 1e-5 * (1 + np.abs(values))
    slope = (many.cdf(values + step) - many.cdf(values - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(many.log_density(values)), slope, rtol=1e-5)


def test_the_density_of_a_gaussian_is_that_worked_out_by_hand() -> None:
    # The normalized value 0.05 * 30 = 1.5 is one standard deviation (0.5) above 1:
    # e^(-1/2) / (0.5 sqrt(2 pi)) per normalized unit, and 0.05 normalized units per raw unit.
    found = gaussian("scale", 1.0, 0.5).log_density(np.array([30.0]))[0]
    assert found == pytest.approx(math.log(math.exp(-0.5) / (0.5 * math.sqrt(2 * math.pi)) * 0.05))


def test_the_mean_under_signed_log_is_that_of_a_lognormal() -> None:
    # Far from zero the inverse is 10^z - 1, whose mean is 10^center * e^((s ln 10)^2 / 2) - 1.
    found = gaussian("signed-log", 8.0, 0.5).mean()[0]
    assert found == pytest.approx(1e8 * math.exp((0.5 * math.log(10)) ** 2 / 2) - 1, rel=1e-4)


def test_a_gaussian_too_wide_for_float64_has_no_finite_mean() -> None:
    one = gaussian("signed-log", 0.0, 100.0)
    assert not np.isfinite(one.mean()[0])
    assert not np.isfinite(one.crps(np.array([1.0]))[0])


# --- samples -----------------------------------------------------------------------------------

DRAWS = np.array(
    [[3.0, 1.0, 2.0, 2.0], [np.nan, 1.0, -np.inf, 5.0], [np.nan, np.nan, np.nan, np.nan]]
)


def test_samples_answer_from_their_draws() -> None:
    drawn = Empirical(DRAWS)
    np.testing.assert_array_equal(drawn.mean(), [2.0, 3.0, np.nan])
    np.testing.assert_array_equal(drawn.median(), [2.0, 1.0, np.nan])
    np.testing.assert_array_equal(drawn.mode(), [2.0, -np.inf, np.nan])
    np.testing.assert_array_equal(drawn.cdf(np.array([2.0, 1.0, 0.0])), [0.75, 2 / 3, np.nan])
    np.testing.assert_array_equal(drawn.cdf(np.array([0.0, np.nan, 0.0])), [0, np.nan, np.nan])
    hundred = Empirical(np.arange(1.0, 101.0)[None])
    levels = [0.07, 0.14, 0.28, 0.55, 0.56]  # times 100, some are slightly above an integer
    assert hundred.quantiles(levels).tolist() == [[7, 14, 28, 55, 56]]
    np.testing.assert_array_equal(
        drawn.quantiles([0.25, 0.26, 0.99]), [[1, 2, 3], [-np.inf, -np.inf, 5], [np.nan] * 3]
    )


def test_draws_of_samples_are_among_them() -> None:
    again = Empirical(DRAWS).sample(400, np.random.default_rng(10))
    assert again.shape == (3, 400)
    assert [set(row) for row in np.nan_to_num(again, nan=9.0, neginf=-9.0).tolist()] == [
        {1.0, 2.0, 3.0},
        {9.0, 1.0, -9.0, 5.0},
        {9.0},
    ]


@each("value", [-0.5, 0.0, 0.3, 1.0, 2.0])
@each("count", [2, 3, 5])
def test_the_crps_of_samples_is_on_average_that_of_what_they_are_drawn_from(
    value: float, count: int
) -> None:
    # Samples are 1 with probability 1/2, else 0: all 2^count sets are equally likely.
    every = np.array(np.meshgrid(*[[0.0, 1.0]] * count)).reshape(count, -1).T
    scores = Empirical(every).crps(np.full(len(every), value))
    exact = of_masses([0.0, 1.0], [0.0, 1.0], [0.5, 0.5]).crps(np.array([value]))[0]
    assert scores.mean() == pytest.approx(exact)


def test_the_crps_of_samples_is_of_the_finite_draws() -> None:
    # |1 - 2| and |5 - 2| average 2; the pair differs by 4, divided by 2 * 1.
    np.testing.assert_array_equal(Empirical(DRAWS).crps(np.array([2.0, 2.0, 2.0]))[1:], [0, np.nan])
    lone = Empirical(np.array([[1.0, np.nan]]))
    assert np.isnan(lone.crps(np.array([1.0]))[0])


def test_samples_have_no_density() -> None:
    drawn = Empirical(DRAWS)
    assert np.isnan(drawn.log_density(np.zeros(3))).all()
    assert np.isnan(drawn.log_interval(np.zeros(3), np.ones(3))).all()
    assert np.isnan(drawn.log_recorded(np.zeros(3), 0.5)).all()


# --- all kinds of distributions ----------------------------------------------------------------

MODULES = [
    *("bits", "digits", "decoder_cells", "mixture", "multiples", "normal", "piecewise"),
    *("prefix_tree", "samples", "scientific", "tailed"),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_are_right(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"numtok.models.distributions.{name}"))
    assert found.attempted > 0 and not found.failed


def every_kind(n: int) -> list[Predictive]:
    """Return one distribution of each kind, the same in each of ``n`` rows."""
    none = NORMALIZATIONS["none"]
    low, high = np.array([0.0, 1.0]), np.array([1.0, 3.0])
    tokens = Intervals(
        low=np.array(LOW),
        high=np.array(HIGH),
        values=np.array(LOW),
        log_mass=np.tile(np.log(MASS), (n, 1)),
    )
    bins = Intervals(low=low, high=high, values=high, log_mass=np.tile(np.log([0.4, 0.6]), (n, 1)))
    normal = Mixture.single(np.full(n, 1.0), 1.0, none)
    three = np.tile([-1.0, 0.5, 2.0], (n, 1))
    multiples = Multiples(
        mantissa=normal,
        factors=np.array([1.0, 10.0]),
        atoms=np.full(2, np.nan),
        log_weights=np.tile(np.log([0.3, 0.7]), (n, 1)),
        normalizer=none,
    )
    return [
        *(tokens, Tailed(bins, 0.0, 3.0, 0.1), normal, Mixture(three, three, three**2, none)),
        Mixture.single(np.full(n, 1.0), 1.0, NORMALIZATIONS["signed-log"]),
        *(Empirical(np.tile([1.0, 2.0], (n, 1))), multiples),
    ]


def test_the_crps_of_what_is_not_finite_is_not_finite_and_gaussians_have_none_of_it() -> None:
    values = np.array([math.nan, math.inf, -math.inf])
    for one in every_kind(3):
        np.testing.assert_array_equal(one.crps(values), np.abs(values))
        if isinstance(one, Mixture):
            np.testing.assert_array_equal(one.log_density(values), -math.inf)


@each("levels", [[0.0], [1.0], [0.5, math.nan], [-0.1]])
def test_levels_that_are_none_are_refused(levels: list[float]) -> None:
    for one in every_kind(1):
        with pytest.raises(ValueError, match="between 0 and 1") as found:
            one.quantiles(levels)
        assert str(levels) in str(found.value)
    with pytest.raises(ValueError, match="between 0 and 1"):
        harrell_davis(np.zeros((1, 3)), levels[-1])


def test_no_numbers_have_no_answers() -> None:
    none = np.empty(0)
    for one in every_kind(0)[:-1]:
        assert one.cdf(none).shape == one.crps(none).shape == one.mean().shape == (0,)
        assert one.quantiles([0.001, 0.5]).shape == (0, 2)
        assert one.sample(3, np.random.default_rng(0)).shape == (0, 3)
        assert one.mode().shape == one.median().shape == (0,)
        assert one.log_density(none).shape == one.log_interval(none, none).shape == (0,)
