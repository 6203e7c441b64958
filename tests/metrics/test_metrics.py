"""Metrics, compared with slow exact definitions and with hand-computed rows; their contract."""

import doctest
import importlib
import math
import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from numtok.errors import UsageError
from numtok.metrics import kendall_tau
from numtok.metrics._contract import made_up, made_up_for
from numtok.metrics._literals import Numeral
from numtok.metrics.base import METRICS, MeanMetric, Predictions, figures, paired
from numtok.numerals.literals import plain_literal, round_literal
from numtok.reports import Figure
from tests.cases import each
from tests.messages import Says


def quiet_ratio(numerator: Fraction, denominator: Fraction) -> float:
    """Return the nearest float, infinity beyond all floats, or NaN for a division by 0."""
    if denominator == 0:
        return math.nan
    ratio = numerator / denominator
    try:
        return float(ratio)
    except OverflowError:
        return math.inf if ratio > 0 else -math.inf


def same(got: float, expected: float, scale: float = 0.0) -> None:
    """Check equality up to rounding (relative to ``scale``), or that both are not finite."""
    if math.isfinite(expected):
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-300 + 1e-12 * scale)
    else:
        assert not math.isfinite(got)


# --- every metric: a new file is tested without changes here ----------------------------------


@each("name", ["base", "_literals", "_squares", "_weighted"])
def test_the_examples_of_what_metrics_share_are_right(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"numtok.metrics.{name}"))
    assert found.attempted > 0
    assert not found.failed


@each("name", ["r2", "adjusted-r2", "signed-log-r2", "relative-mse", "kendall-tau"])
@each("value", [0.0, -2.5, 1e300, 5e-324])
@each("n", [1, 2, 5])
def test_equal_truths_leave_what_is_relative_to_them_undefined(
    name: str, value: float, n: int
) -> None:
    metric = METRICS.build(name)
    assert metric.why_undefined(made_up(1, n)._replace(truth=np.full(n, value))) == metric.undefined


def test_a_part_of_the_answers_is_taken_from_every_column() -> None:
    answers = made_up(3, 6)._replace(sample=np.arange(6))
    mask = np.array([True, False, True, False, False, True])
    for part in (answers.take(mask), answers.take(np.array([0, 2, 5]))):
        assert part.measures == "numbers"
        for column, whole in zip(part[:-1], answers[:-1], strict=True):
            assert whole is not None
            assert column is not None
            assert list(map(str, column)) == [str(whole[index]) for index in (0, 2, 5)]
    assert Predictions.of([1], [2]).take(mask[:1]).crps is None


# --- exact arithmetic --------------------------------------------------------------------------

# Values of any magnitude except subnormal ones, which have lost digits even when scaled.
numbers = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 10.0, 0.1, -0.1, 1000.0, 1e6, 1e6 + 1e-6]),
    st.floats(-1000, 1000, allow_subnormal=False),
    st.floats(-1e300, 1e300, allow_subnormal=False),
)
pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=10)
Pairs = Sequence[tuple[float, float]]


def exact(rows: Pairs) -> list[tuple[Fraction, Fraction]]:
    return [(Fraction(truth), Fraction(prediction)) for truth, prediction in rows]


def mean_square(rows: Pairs) -> Fraction:
    return sum(((p - t) ** 2 for t, p in exact(rows)), Fraction(0)) / len(rows)


def unexplained(rows: Pairs) -> float:
    truths = [t for t, _ in exact(rows)]
    centre = sum(truths, Fraction(0)) / len(truths)
    variance = sum(((t - centre) ** 2 for t in truths), Fraction(0)) / len(truths)
    return quiet_ratio(mean_square(rows), variance)


def root(square: Fraction) -> float:
    """Return the square root of a fraction that may exceed all floats."""
    shift = 4 ** max(0, 600 - square.numerator.bit_length() + square.denominator.bit_length())
    return float(Fraction(math.isqrt(int(square * shift)), math.isqrt(shift)))


def relative(rows: Pairs) -> list[Fraction | float]:
    return [
        abs(p - t) / abs(t) if t else (Fraction(0) if p == t else math.inf) for t, p in exact(rows)
    ]


def middle(rows: Pairs) -> float:
    ordered = sorted(relative(rows))
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if math.inf in (low, high):
        return math.inf
    return quiet_ratio(Fraction(low) + Fraction(high), Fraction(2))


def tau(rows: Pairs) -> float:
    def sign(a: float, b: float) -> int:
        return (a > b) - (a < b)

    concordance = untied_truth = untied_prediction = 0
    for i, (t, p) in enumerate(rows):
        for other_t, other_p in rows[:i]:
            concordance += sign(t, other_t) * sign(p, other_p)
            untied_truth += t != other_t
            untied_prediction += p != other_p
    untied = math.sqrt(untied_truth * untied_prediction)
    return concordance / untied if untied else math.nan


def sign_and_order(value: float) -> tuple[int, int]:
    """Return the sign, and floor(log10 |x|) by trying one power of ten after the other."""
    power = -330
    while power < 308 and abs(value) >= float(f"1e{power + 1}"):
        power += 1
    return (value > 0) - (value < 0), power


def logarithmic(rows: Pairs) -> float:
    distances = []
    for t, p in rows:
        if t == p:
            distances.append(0.0)
        elif t * (p / abs(p) if p else 0) > 0:
            distances.append(abs(math.log10(abs(t)) - math.log10(abs(p))))
        else:
            return math.nan
    return statistics.fmean(distances)


def signed_log(value: float) -> float:
    return math.copysign(math.log1p(abs(value)) / math.log(10), value)


DEFINITIONS: list[tuple[str, Callable[[Pairs], float]]] = [
    ("mse", lambda rows: quiet_ratio(mean_square(rows), Fraction(1))),
    ("rmse", lambda rows: root(mean_square(rows))),
    (
        "mae",
        lambda rows: float(sum((abs(p - t) for t, p in exact(rows)), Fraction(0)) / len(rows)),
    ),
    ("relative-mse", unexplained),
    ("median-relative-error", middle),
    ("relative-error-over", lambda rows: statistics.fmean(e > 0.1 for e in relative(rows))),
    (
        "relative-error-over,limit=0.5",
        lambda rows: statistics.fmean(e > 0.5 for e in relative(rows)),
    ),
    ("lmae", logarithmic),
    (
        "exponent-accuracy",
        lambda rows: statistics.fmean(sign_and_order(t) == sign_and_order(p) for t, p in rows),
    ),
    ("kendall-tau", tau),
]


@given(pairs)
@each(("spec", "definition"), DEFINITIONS)
def test_a_metric_is_what_its_definition_says(
    spec: str, definition: Callable[[Pairs], float], rows: Pairs
) -> None:
    same(METRICS.build(spec).plain(Predictions.of(*zip(*rows, strict=True))), definition(rows))


@given(pairs)
def test_r2_is_the_explained_share_of_the_variance(rows: Pairs) -> None:
    answers, rest = Predictions.of(*zip(*rows, strict=True)), unexplained(rows)
    same(METRICS.build("r2").plain(answers), 1 - rest, scale=1.0)
    for p in (1, 3):
        freedom = len(rows) - p - 1
        expected = 1 - rest * ((len(rows) - 1) / freedom) if freedom > 0 else math.nan
        same(METRICS.build(f"adjusted-r2,p={p}").plain(answers), expected, scale=1.0)


@given(pairs)
def test_signed_log_r2_is_r2_of_signed_logarithms(rows: Pairs) -> None:
    logs = [(signed_log(t), signed_log(p)) for t, p in rows]
    # True values that differ only in their last bit may have equal logarithms.
    spread = max(t for t, _ in logs) - min(t for t, _ in logs)
    assume(spread == 0 or spread > 1e-9)
    got = METRICS.build("signed-log-r2").plain(Predictions.of(*zip(*rows, strict=True)))
    same(got, 1 - unexplained(logs), scale=1.0)


@given(pairs, st.integers(0, 10**6))
def test_a_resample_without_the_largest_keeps_its_digits(rows: Pairs, seed: int) -> None:
    weights = np.random.default_rng(seed).multinomial(len(rows), [1 / len(rows)] * len(rows))
    drawn = [row for row, weight in zip(rows, weights, strict=True) for _ in range(weight)]
    answers = Predictions.of(*zip(*rows, strict=True))
    for spec in ("mse", "relative-mse"):
        got = METRICS.build(spec).compute(answers, weights[None].astype(np.float64))[0]
        same(float(got), dict(DEFINITIONS)[spec](drawn))


@each("outlier", [1e7 / 3, 1e10 / 3, 1e280])
def test_a_resample_without_the_one_outlier_keeps_its_digits(outlier: float) -> None:
    truth = np.array([outlier, 0.1, 0.2, 0.4])
    answers = Predictions.of(truth, truth + np.array([outlier / 7, 0.05, 0.05, 0.05]))
    got = METRICS.build("relative-mse").compute(answers, np.array([[0.0, 1.0, 1.0, 2.0]]))
    assert got[0] == pytest.approx(0.0025 / 0.016875, rel=1e-10)


def test_what_r2_leaves_of_one_is_right_when_it_is_tiny() -> None:
    generator = np.random.default_rng(0)
    truth = 1e6 + generator.random(2000)
    prediction = truth + 1e-5 * generator.normal(size=2000)
    rest = unexplained(list(zip(truth.tolist(), prediction.tolist(), strict=True)))
    assert rest < 2e-9
    assert 1 - METRICS.build("r2").plain(Predictions.of(truth, prediction)) == pytest.approx(
        rest, rel=1e-6
    )
    assert METRICS.build("relative-mse").plain(Predictions.of(truth, prediction)) == pytest.approx(
        rest, rel=1e-9
    )


@each("factor", [2.0**-1000, 2.0**-500, 2.0**500, 2.0**996])
@each("name", ["r2", "adjusted-r2", "relative-mse", "median-relative-error", "kendall-tau", "lmae"])
def test_units_do_not_matter_to_what_has_none(name: str, factor: float) -> None:
    truth, prediction = np.array([1.0, 2.0, 5.0, 9.0]), np.array([1.5, 2.0, 4.0, 10.0])
    metric = METRICS.build(name)
    scaled = metric.plain(Predictions.of(truth * factor, prediction * factor))
    assert scaled == pytest.approx(metric.plain(Predictions.of(truth, prediction)), rel=1e-10)


def test_what_float64_cannot_hold_is_undefined_and_not_wrong() -> None:
    answers = Predictions.of([1e300, -1e300], [-1e300, 1e300])
    assert "float64" in (METRICS.build("mse").why_undefined(answers) or "")
    assert METRICS.build("rmse").plain(answers) == pytest.approx(2e300)
    assert METRICS.build("r2").plain(answers) == pytest.approx(-3.0)
    largest = np.finfo(np.float64).max
    assert METRICS.build("mae").plain(Predictions.of([largest] * 3, [0.0] * 3)) == largest
    opposite = Predictions.of([largest], [-largest])
    assert METRICS.build("median-relative-error").plain(opposite) == 2.0
    assert "float64" in (METRICS.build("mae").why_undefined(opposite) or "")


# --- order -------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60))
def test_the_sums_by_bisection_are_those_over_all_pairs(rows: list[tuple[int, int]]) -> None:
    x, y = np.array(rows).T
    x, y = kendall_tau._ranks(x), kendall_tau._ranks(y)
    over_all = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    among = np.arange(len(x)) % 3 > 0
    found = kendall_tau._row_sums(x, y, among)
    assert found.tolist() == over_all[:, among].sum(axis=1).tolist()


def test_many_numbers_have_the_exact_tau_and_nearly_the_exact_replicates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(0)
    n, metric = 1500, METRICS.build("kendall-tau")
    truth = np.round(generator.normal(size=n), 1)  # with ties
    answers = Predictions.of(truth, np.round(truth + generator.normal(size=n), 1))
    weights = generator.multinomial(n, [1 / n] * n, size=50).astype(np.float64)
    plain, replicates = metric.plain(answers), metric.compute(answers, weights)
    monkeypatch.setattr(kendall_tau, "_ALL_PAIRS", n)
    in_full = metric.compute(answers, weights)
    assert plain == metric.plain(answers)
    assert (replicates - in_full).std() < 0.1 * in_full.std()


def test_replicates_of_few_clusters_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    sample = np.repeat([7, 3, 9, 4], 150)
    shift = 3 * generator.normal(size=(2, 10))[:, sample]
    truth, prediction = np.round(shift + generator.normal(size=(2, 600)), 1)
    answers = Predictions.of(truth, prediction)._replace(sample=sample)
    weights = generator.multinomial(4, [0.25] * 4, size=50).astype(np.float64)
    weights = np.repeat(weights, 150, axis=1)
    metric = METRICS.build("kendall-tau")
    found = metric.compute(answers, weights)
    monkeypatch.setattr(kendall_tau, "_ALL_PAIRS", 600)
    np.testing.assert_allclose(found, metric.compute(answers, weights), rtol=1e-12)


def test_a_perfect_order_of_many_is_one_in_every_resample() -> None:
    truth = np.arange(2000.0)
    weights = np.random.default_rng(0).multinomial(2000, [1 / 2000] * 2000, size=20)
    got = METRICS.build("kendall-tau").compute(
        Predictions.of(truth, truth**3), weights.astype(float)
    )
    assert got.tolist() == [1.0] * 20


def test_no_replicate_is_above_one() -> None:
    truth = np.arange(1000.0)
    prediction, weights = truth.copy(), np.ones((1, 1000))
    prediction[[500, 501]], weights[0, [500, 501]] = [501, 500], 0  # without the only wrong pair
    assert (
        METRICS.build("kendall-tau").compute(Predictions.of(truth, prediction), weights)[0] == 1.0
    )


# --- literals ----------------------------------------------------------------------------------

literals = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+", "\u2212"]),
    st.text("0123456789", min_size=1, max_size=12),
    st.one_of(st.just(""), st.text("0123456789", max_size=12).map(".{}".format)),
    st.one_of(st.just(""), st.integers(-30, 30).map("e{}".format)),
)


def value(literal: str) -> Fraction:
    return Fraction(plain_literal(literal))


def read(literal: str) -> Numeral:
    numeral = Numeral.read(literal)
    assert numeral is not None
    return numeral


def of_literals(truth: Sequence[str], prediction: Sequence[str | None]) -> Predictions:
    """Return answers of which only the literals matter."""
    valid = np.array([literal is not None for literal in prediction])
    zeros = np.zeros(len(truth))
    return Predictions(zeros, zeros, valid, truth, prediction)


def denoted(literal: str, digits: int = 0) -> Fraction:
    """Return the number that a literal denotes, as a fraction."""
    negative, kept, exponent = read(literal).exact(digits)
    return Fraction((-1) ** negative * int(kept or 0)) * Fraction(f"1e{exponent}")


@given(literals)
def test_a_literal_denotes_what_the_decimal_module_reads(literal: str) -> None:
    assert denoted(literal) == value(literal)


@given(literals, st.integers(1, 15))
def test_a_literal_is_rounded_as_schemes_round_it(literal: str, digits: int) -> None:
    negative, mantissa, exponent = round_literal(literal, digits)
    assert denoted(literal, digits) == (-1) ** negative * mantissa * Fraction(10) ** exponent


@given(literals, literals)
def test_equal_numbers_match_however_they_are_written(one: str, other: str) -> None:
    matches = METRICS.build("exact-match").plain(of_literals([one, one], [other, one]))
    assert matches == (1.0 if value(one) == value(other) else 0.5)


@given(literals, literals)
def test_another_notation_is_the_same_number(one: str, other: str) -> None:
    rewritten = read(one).written_like(read(other))
    assert (rewritten.exponent is None) == (read(other).exponent is None)
    if rewritten.decimals is not None:
        made = f"{rewritten.whole}.{rewritten.decimals}e{rewritten.exponent or 0}"
        assert abs(value(one)) == Fraction(made)


EXACT = [
    ("1.50", "1.5", True),
    ("15e-1", "1.5", True),
    ("1.5", "1.5000000000000000000001", False),
    ("-0.0", "0", True),
    ("-1", "1", False),
    ("0.30000000000000004", "0.3", False),
    ("1,234", "1234.0", True),
    ("23%", "0.23", True),
    ("\u22125", "-5", True),
    ("007", "7", True),
    ("1e400", "10e399", True),
    ("1e" + "9" * 5000, "1e" + "9" * 5000, True),
    ("9" * 100, "9" * 99 + "8", False),
    ("5", None, False),
    ("5", "inf", False),
    ("5", "five", False),
    ("5", ".", False),
]


@each(("truth", "prediction", "match"), EXACT)
def test_exact_match_compares_decimal_numbers(
    truth: str, prediction: str | None, match: bool
) -> None:
    assert METRICS.build("exact-match").plain(of_literals([truth], [prediction])) == match


@each(
    ("truth", "prediction", "digits", "match"),
    [
        ("-0.1435", "-0.144", 3, True),  # a tie, though the float is not
        ("-0.1445", "-0.144", 3, True),
        ("9.996", "10.0", 3, True),
        ("9.994", "10.0", 3, False),
        ("1287", "1290.0", 3, True),
        ("1287", "1290.0", 4, False),
        ("0.000", "0.0", 3, True),
    ],
)
def test_exact_match_to_few_digits_rounds_half_to_even(
    truth: str, prediction: str, digits: int, match: bool
) -> None:
    metric = METRICS.build(f"exact-match,digits={digits}")
    assert metric.plain(of_literals([truth], [prediction])) == match


@each(
    ("truth", "prediction", "places", "match"),
    [
        ("1302", "1301.98", 0, True),
        ("1302", "1302.5", 0, True),  # ties go to the even number
        ("1303", "1302.5", 0, False),
        ("0.1435", "0.144", 3, True),
        ("0.1445", "0.145", 3, False),
        ("1.30e3", "1300.4", 0, True),
        ("-0.4", "0.3", 0, True),
        ("5", None, 0, False),
    ],
)
def test_exact_match_to_so_many_decimals(
    truth: str, prediction: str | None, places: int, match: bool
) -> None:
    metric = METRICS.build(f"exact-match,places={places}")
    assert metric.plain(of_literals([truth], [prediction])) == match


def test_log_smape_is_a_share_of_fifteen_digits_or_of_six() -> None:
    truth = [1, 1, 1, -68.36, 3, 0, 5, 1e308]
    found = [1.1, 2, 1.0000001, -68.3, -3, 0, 0, 1e308]
    answers = Predictions.of(truth, found)
    metric, single = (METRICS.build(f"log-smape{more}") for more in ("", ",digits=6"))
    assert isinstance(metric, MeanMetric) and isinstance(single, MeanMetric)
    expected = [0.0881, 0.0318, 0.4867, 0.2238, 0, 1, 0, 1]
    assert metric.values(answers) == pytest.approx(expected, abs=5e-5)
    assert single.values(answers)[:2] == pytest.approx([0.2204, 0.0795], abs=5e-5)
    lost = answers._replace(valid=np.array([False] * 8))
    assert metric.plain(lost) == 0


ROUNDED = [
    ("1302", "1301.98", True),
    ("1302", "1301.4", False),
    ("1302", "1300", False),  # three digits are not enough
    ("1302", "1.302e3", True),
    ("1,302", "1301.98", True),
    ("1300", "1302", False),  # the zeros of 1300 are digits
    ("1.30e3", "1304.9", True),  # written to tens
    ("1.30e3", "1305", True),  # half to even
    ("1.31e3", "1305", False),
    ("1.3e+03", "1340.5", True),
    ("0.10", "0.104", True),
    ("0.10", "0.11", False),
    ("0.1", "0.11", True),
    ("5.", "5.4", True),
    (".5", "0.53", True),
    ("2", "2.5", True),
    ("3", "2.5", False),
    ("3", "2.50000000000000000000001", True),  # not a tie, although its float is
    ("0.3", "0.25", False),
    ("0.2", "0.25", True),
    ("1.00", "1.005", True),  # a tie, although its float is below
    ("1.01", "1.005", False),
    ("23%", "0.2349", True),
    ("23%", "23.4%", True),
    ("23%", "23", False),
    ("\u22125", "-5.2", True),
    ("+7", "7.1", True),
    ("-5", "5.2", False),
    ("0", "-0.4", True),
    ("0.00", "0.004", True),
    ("0.00", "0.006", False),
    ("-1", "-0.51", True),
    ("123456789012345678901", "123456789012345678900.6", True),
    ("123456789012345678901", "123456789012345678900.4", False),
    ("1e400", "9.6e399", True),
    ("1e-400", "0.6e-400", True),
    ("1e-400", "2e-400", False),
    ("1e" + "9" * 5000, "1e" + "9" * 5000, True),
    ("1e" + "9" * 5000, "1", False),
    ("5", "inf", False),
    ("5", "five", False),
    ("5", None, False),
]


@each(("truth", "prediction", "match"), ROUNDED)
def test_a_prediction_is_rounded_as_the_truth_is_written(
    truth: str, prediction: str | None, match: bool
) -> None:
    assert METRICS.build("rounded-match").plain(of_literals([truth], [prediction])) == match


def unit(literal: str) -> Fraction:
    """Return the power of ten of the last digit, by counting characters."""
    number, _, exponent = literal.partition("e")
    return Fraction(10) ** (int(exponent or 0) - len(number.partition(".")[2]))


near = st.one_of(
    st.sampled_from([Fraction(0), Fraction(1, 2), -Fraction(1, 2), Fraction(1)]),
    st.fractions(-1, 1, max_denominator=10**6),
)


@given(literals, st.one_of(literals, near), st.integers(0, 30))
def test_rounding_is_exact(truth: str, other: str | Fraction, places: int) -> None:
    """Values include fractions slightly off half a unit in the last place."""
    if isinstance(other, Fraction):
        made = value(truth) + unit(truth) * other
        scale = 10 ** (max(0, len(str(unit(truth).denominator)) - 1) + places + 1)
        whole = round(made * scale)
        other = f"{'-' if whole < 0 else ''}{abs(whole)}e-{len(str(scale)) - 1}"
    expected = round(value(other) / unit(truth)) == value(truth) / unit(truth)
    answers = of_literals([truth, truth], [other, truth])
    assert METRICS.build("rounded-match").plain(answers) == (1.0 if expected else 0.5)


def test_most_of_many_literals_are_rounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only literals that floats cannot decide are read one by one: ties and too many digits."""
    read_one_by_one: list[str | None] = []
    plainly = Numeral.read

    def noting(text: str | None) -> Numeral | None:
        read_one_by_one.append(text)
        return plainly(text)

    monkeypatch.setattr(Numeral, "read", noting)
    truths = [f"{n}.{n % 10}" for n in range(1000)] + ["3", "1,302", "9" * 20]
    predictions = [f"{n}.{n % 10}{4 + n % 3}" for n in range(1000)] + ["2.5", "1302.2", "9" * 20]
    expected = [n % 3 == 0 or (n % 3 == 1 and n % 2 == 0) for n in range(1000)] + [
        False,
        True,
        True,
    ]
    answers = of_literals(truths, predictions)
    assert METRICS.build("rounded-match").plain(answers) == pytest.approx(np.mean(expected))
    ties = [truths[n] for n in range(1, 1000, 3)]
    assert read_one_by_one[::2] == [*ties, "3", "9" * 20]


# Truth, prediction, digit match, d-length, d-length by parts; worked out by hand.
DIGITS = [
    ("1287", "1287", 1.0, 0, 0),
    ("1287", "1387", 0.75, 0, 0),
    ("1287", "287", 0.75, 1, 1),  # aligned at the units
    ("1287", "91287", 1.0, 1, 1),  # extra digits are not penalized
    ("1287", "128", 0.0, 1, 1),
    ("1287", "1287.0", 1.0, 0, 0),  # as decoded by a scheme that writes floats
    ("1287", "1.287e3", 1.0, 0, 0),
    ("-1287", "1287", 1.0, 0, 0),  # signs are not compared
    ("1287", None, 0.0, 4, 4),
    ("10.40", "10.4", 0.75, 1, 1),
    ("10.5", "0.15", 1 / 3, 0, 2),  # one digit fewer before the point, one more after it
    ("10.5", "110.55", 1.0, 2, 2),
    ("10.5", "10", 2 / 3, 1, 1),
    ("0.05", "5e-02", 1.0, 0, 0),
    ("0.05", "5e-400", 2 / 3, 398, 398),
    ("0.05", "5e-99999999", 2 / 3, 399, 399),  # zeros beyond float64 are left out
    ("1.23e4", "12300.0", 1.0, 0, 0),
    ("1.23e4", "1.23e5", 0.75, 0, 0),
    ("1.23e-4", "1.23e4", 1.0, 0, 0),
    ("1.23e4", "0.0", 0.0, 2, 2),
    ("1.23e12", "4.23e2", 0.6, 1, 1),
    ("23%", "0.23", 1.0, 0, 0),
    ("0%", "0.0", 1.0, 0, 0),
    ("1,234", "1234.0", 1.0, 0, 0),
    ("1e-5", "1e-05", 1.0, 0, 0),  # as Python writes it
    ("1e-05", "1e-5", 1.0, 0, 0),
    ("12.3e15", "1.23e+16", 1.0, 0, 0),
    ("12.3e15", "1e+16", 0.6, 1, 1),
    ("0.5e3", "500.0", 1.0, 0, 0),
    (".5", "0.5", 1.0, 0, 0),
    ("0.5", ".5", 1.0, 0, 0),
    ("0.10", "0.1", 2 / 3, 1, 1),  # a written zero is a digit
]


@each(("truth", "prediction", "match", "length", "by_parts"), DIGITS)
def test_digits_are_compared_at_their_places(
    truth: str, prediction: str | None, match: float, length: int, by_parts: int
) -> None:
    answers = of_literals([truth], [prediction])
    assert METRICS.build("digit-match").plain(answers) == pytest.approx(match)
    assert METRICS.build("d-length").plain(answers) == length
    assert METRICS.build("d-length,parts=yes").plain(answers) == by_parts


def places(number: str) -> dict[int, str]:
    """Return each digit of a number without exponent, by its power of ten."""
    whole, _, decimals = number.partition(".")
    before = {power: digit for power, digit in enumerate(reversed(whole))}
    return before | {-1 - index: digit for index, digit in enumerate(decimals)}


plain_numbers = st.from_regex(r"[0-9]{1,6}\.[0-9]{1,6}", fullmatch=True)


@given(st.lists(st.tuples(plain_numbers, plain_numbers), min_size=1, max_size=8))
def test_digit_match_is_the_mean_share_of_the_powers_of_ten_that_agree(
    rows: list[tuple[str, str]],
) -> None:
    shares, lengths = [], []
    for truth, prediction in rows:
        ours, theirs = places(truth), places(prediction)
        shares.append(sum(theirs.get(power) == digit for power, digit in ours.items()) / len(ours))
        lengths.append(abs(len(ours) - len(theirs)))
    answers = of_literals(*zip(*rows, strict=True))
    assert METRICS.build("digit-match").plain(answers) == pytest.approx(statistics.fmean(shares))
    assert METRICS.build("d-length").plain(answers) == pytest.approx(statistics.fmean(lengths))


def test_a_prediction_that_is_not_valid_never_matches() -> None:
    answers = of_literals(["12"], ["12"])._replace(valid=np.array([False]))
    assert METRICS.build("exact-match").plain(answers) == 0.0
    assert METRICS.build("rounded-match").plain(answers) == 0.0
    assert METRICS.build("digit-match").plain(answers) == 0.0
    assert METRICS.build("d-length").plain(answers) == 2.0


def test_a_truth_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a decimal number"):
        METRICS.build("exact-match").plain(of_literals(["nan"], ["1"]))
    with pytest.raises(ValueError, match="must be a decimal number"):
        METRICS.build("rounded-match").plain(of_literals(["nan"], ["1"]))


# --- by hand -----------------------------------------------------------------------------------


@each(
    ("spec", "truth", "prediction", "expected"),
    [
        ("r2", [1, 2, 3], [2, 2, 2], 0.0),  # the mean explains nothing
        ("r2", [1, 2, 3], [3, 2, 1], -3.0),
        ("adjusted-r2,p=2", [1, 3, 5, 7], [1, 3, 5, 8], 0.85),
        ("signed-log-r2", [-99, 99], [-9, 9], 0.75),
        ("median-relative-error", [0, 0, 4], [0, 1, 5], 0.25),
        ("median-relative-error", [2, 4], [3, 4], 0.25),
        ("relative-error-over", [10, 10, 0, 0], [11, 11.1, 0, 1e-9], 0.5),
        ("lmae", [0, 1000], [0, 1], 1.5),
        ("exponent-accuracy", [1000, 1e23, -1, 0, 5], [9999, 9.9e22, 1, 0, 0], 0.4),
        ("kendall-tau", [1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ("kendall-tau", [1, 1, 2], [1, 2, 2], 0.5),
        ("exponent-accuracy", [1e308, 1], [np.inf, 1], 0.5),
        ("slope", [1e15, 1e15 + 1, 1e15 + 2], [1e15, 1e15 + 1, 1e15 + 1], 0.5),
    ],
)
def test_figures_worked_out_by_hand(
    spec: str, truth: list[float], prediction: list[float], expected: float
) -> None:
    assert METRICS.build(spec).plain(Predictions.of(truth, prediction)) == pytest.approx(expected)


def test_a_missing_prediction_has_no_rank() -> None:
    metric = METRICS.build("kendall-tau")
    answers = Predictions.of([1, 2, 3], [1, 2, np.inf])
    assert metric.why_undefined(answers) == metric.undefined
    weights = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 0.0]])
    np.testing.assert_array_equal(metric.compute(answers, weights), [np.nan, 1.0])


@each(("truth", "prediction"), [([1.0, 2.0], [1.0, -2.0]), ([0.0], [1.0]), ([1.0], [0.0])])
def test_without_a_logarithm_lmae_says_why(truth: list[float], prediction: list[float]) -> None:
    why = METRICS.build("lmae").why_undefined(Predictions.of(truth, prediction))
    assert why == METRICS.build("lmae").undefined


def test_a_distribution_that_excludes_the_truth_leaves_nll_undefined() -> None:
    answers = Predictions.of([1, 2], [1, 2], log_density=[0.0, -np.inf])
    assert METRICS.build("nll").why_undefined(answers) == METRICS.build("nll").undefined


def test_truths_outside_the_train_range_are_left_out_of_the_likelihood_within_it() -> None:
    metric = METRICS.build("in-support-nll")
    columns = {"log_density": [-1.0, -np.inf, -3.0], "outside": [False, True, False]}
    answers = Predictions.of([1, 9, 2], [0, 0, 0], **columns)
    assert metric.plain(answers) == 2.0
    weights = np.array([[1.0, 5.0, 3.0], [0.0, 2.0, 0.0]])
    np.testing.assert_array_equal(metric.compute(answers, weights), [2.5, np.nan])
    assert METRICS.build("nll").why_undefined(answers) == METRICS.build("nll").undefined
    nowhere = answers._replace(outside=np.ones(3, np.bool_))
    assert metric.why_undefined(nowhere) == metric.undefined
    scaled = METRICS.build("range-nll")
    wide = answers._replace(log_range=np.full(3, np.log(4.0)))
    assert scaled.plain(wide) == pytest.approx(2.0 - np.log(4.0), rel=1e-15)
    assert scaled.why_undefined(nowhere._replace(log_range=np.zeros(3))) == scaled.undefined


@each(
    ("pit", "expected"),
    [
        ([0.5], 0.25),
        ([0.0], 0.5),
        ([1.0, 1.0], 0.5),
        ([0.0, 1.0], 0.25),
        ([0.25, 0.75], 0.125),  # the minimum for two values
        ([0.25] * 4, 0.25**2 / 2 + 0.75**2 / 2),
        ([0.1, 0.9], (0.1**2 + 0.4**2) / 2 * 2),
    ],
)
def test_the_distance_of_the_pit_is_that_of_a_histogram_moved_to_uniform(
    pit: list[float], expected: float
) -> None:
    answers = Predictions.of(np.zeros(len(pit)), np.zeros(len(pit)), pit=pit)
    assert METRICS.build("pit-distance").plain(answers) == pytest.approx(expected)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_the_distance_of_the_pit_is_the_area_between_two_distribution_functions(
    pit: list[float],
) -> None:
    answers = Predictions.of(np.zeros(len(pit)), np.zeros(len(pit)), pit=pit)
    edges = np.linspace(0, 1, 20001)
    middles = (edges[1:] + edges[:-1]) / 2
    steps = np.searchsorted(np.sort(pit), middles, "right") / len(pit)
    area = float(np.abs(steps - middles).mean())
    assert METRICS.build("pit-distance").plain(answers) == pytest.approx(area, abs=1e-4)


def test_what_chance_leaves_of_the_pit_is_as_much_as_is_said() -> None:
    rng = np.random.default_rng(0)
    draws = [rng.random(400) for _ in range(300)]
    metric, zeros = METRICS.build("pit-distance"), np.zeros(400)
    found = [metric.plain(Predictions.of(zeros, zeros, pit=pit)) for pit in draws]
    assert statistics.fmean(found) == pytest.approx(0.3 / math.sqrt(400), rel=0.1)


def test_coverage_counts_the_ends_and_refuses_unknown_quantiles() -> None:
    quantiles = np.array([[-2.0, -1.0, 0.0, 1.0, 2.0]] * 4)
    answers = Predictions.of([2.0, -2.0, 2.1, 1.0], [0.0] * 4, quantiles=quantiles)
    assert METRICS.build("coverage").plain(answers) == 0.75
    assert METRICS.build("coverage,level=0.5").plain(answers) == 0.25
    quantiles[0, 0] = np.nan
    assert METRICS.build("coverage").plain(answers) == pytest.approx(2 / 3)
    assert METRICS.build("coverage,level=0.5").plain(answers) == pytest.approx(1 / 3)
    quantiles[:, 2] = np.nan
    assert METRICS.build("coverage").why_undefined(answers) == "the predictions have no quantiles"


@each(
    ("name", "column"),
    [
        ("nll", "log_density"), ("tailed-nll", "log_density_tailed"), ("crps", "crps"),
        ("interval-nll", "log_interval"), ("token-nll", "token_nll"), ("pit-distance", "pit"),
    ],
)  # fmt: skip
def test_what_is_not_known_of_a_number_has_no_part_in_the_figure(name: str, column: str) -> None:
    """Missing values are left out of the value and of its interval."""
    known = np.array([0.2, 0.9, 0.4, 0.1])
    metric = METRICS.build(name)
    whole = Predictions.of(np.arange(4.0), np.zeros(4), **{column: known})
    with_gaps = Predictions.of(
        np.arange(6.0), np.zeros(6), **{column: np.insert(known, [1, 3], np.nan)}
    )
    assert metric.plain(with_gaps) == metric.plain(whole)
    weights = np.array([[1.0, 7.0, 2.0, 0.0, 3.0, 1.0], [0.0, 6.0, 0.0, 0.0, 0.0, 0.0]])
    expected = metric.compute(whole, np.array([[1.0, 2.0, 0.0, 1.0]]))
    found = metric.compute(with_gaps, weights)
    assert (found[0], np.isnan(found[1])) == (expected[0], True)
    assert figures([metric], with_gaps)[name].n == 4
    columns: dict[str, Any] = {column: np.full(6, np.nan)}
    nothing = with_gaps._replace(**columns)
    assert metric.why_undefined(nothing) == f"the predictions have no {column.replace('_', ' ')}"


# --- by field ------------------------------------------------------------------------------------


def of_fields(
    truth: Sequence[float],
    prediction: Sequence[float],
    field: Sequence[int],
    median: Sequence[float],
) -> Predictions:
    return Predictions.of(truth, prediction, field=field, field_median=median)


def test_field_skill_is_the_mean_over_fields_by_hand() -> None:
    """Errors are 1 and 1 versus 2 and 2, and 0 and 300 versus 100 and 100; a skill is at least -1.

    Numbers without a field median have no effect.
    """
    metric = METRICS.build("field-skill")
    made = of_fields(
        [1, 5, 100, 300, 7, 9],
        [2, 6, 100, 0, 70, 90],
        [0, 0, 4, 4, 2, 2],
        [3, 3, 200, 200, np.nan, np.nan],
    )
    assert metric.plain(made) == pytest.approx((0.5 - 0.5) / 2)
    assert metric.plain(made._replace(prediction=made.prediction - 900)) == -1
    found = figures([metric], made)["field-skill"]
    assert found.n == 4 and found.low is not None and found.high is not None
    only = made.take(np.array([4, 5]))
    assert metric.why_undefined(only) == "the predictions have no field median"


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), min_size=1, max_size=30))
def test_the_median_has_no_skill_and_the_truth_has_all_of_it(rows: list[tuple[int, int]]) -> None:
    """Units have no effect; a field whose numbers all equal its median is left out."""
    metric = METRICS.build("field-skill")
    truth = np.array([float(value) * 10**field for value, field in rows])
    field = np.array([field for _, field in rows])
    median = 10.0**field
    made = Predictions.of(truth, median, field=field, field_median=median)
    if (truth == median).all():
        assert metric.why_undefined(made) == metric.undefined
        return
    assert metric.plain(made) == 0
    assert metric.plain(made._replace(prediction=truth)) == 1
    assert metric.plain(made._replace(prediction=(median + truth) / 2)) == 0.5
    assert metric.plain(made._replace(prediction=median + 9 * (median - truth))) == -1


@each("name", ["in-support-nll", "range-nll"])
def test_a_pair_is_compared_where_both_have_the_truth_in_their_range(name: str) -> None:
    columns = {"log_density": -np.arange(10.0), "log_range": np.zeros(10)}
    made = Predictions.of(np.arange(10.0), np.zeros(10), **columns)
    one, other = (
        made._replace(outside=(np.arange(10) < low) | (np.arange(10) >= high))
        for low, high in ((0, 7), (3, 10))
    )
    metric = METRICS.build(name)
    found = figures([metric], one)[name]
    assert (found.value, found.n) == (3.0, 7)
    assert paired(metric, [one], [other]).figure == Figure(0.0, 0.0, 0.0, 4)
    apart = paired(metric, [one], [made._replace(outside=np.arange(10) < 7)]).figure
    assert apart.value is None


SPEC_ERRORS = [
    ("adjusted-r2,p=0", ("adjusted-r2: p ", "at least 1", "got 0")),
    (
        "relative-error-over,limit=-1",
        ("relative-error-over: limit ", "at least 0 and finite", "got -1"),
    ),
    (
        "relative-error-over,limit=nan",
        ("relative-error-over: limit ", "at least 0 and finite", "got nan"),
    ),
    ("exact-match,digits=3,places=0", ("digits=3,places=0", "Choose one")),
    ("exact-match,digits=-3", ("exact-match: digits ", "at least 0", "got -3")),
    ("coverage,level=0.8", ("level", "0.8", "0.5 or 0.9")),
    ("d-length,parts=maybe", ("d-length: parts ", "yes or no", "got 'maybe'")),
    ("mae,limit=1", ("'limit'", "known")),
]


@each(("spec", "parts"), SPEC_ERRORS)
def test_a_metric_that_cannot_be_used_is_refused(
    spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        METRICS.build(spec)


def test_an_unknown_metric_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        METRICS.build("kendal-tau")
    assert str(caught.value).startswith("unknown metric 'kendal-tau'. Did you mean 'kendall-tau'?")


def test_an_interval_of_everything_covers_every_truth() -> None:
    """Quantiles of an uncertain P1000 can be in its overflow, which lies at infinity."""
    quantiles = [[-np.inf, -1, 0, 1, np.inf], [-2, -1, 0, 1, 2]]
    answers = Predictions.of([1.5, 5], [0, 0], quantiles=quantiles)
    assert METRICS.build("coverage").plain(answers) == 0.5


# --- labels ------------------------------------------------------------------------------------


def some_labels(seed: int, n: int, labels: int) -> tuple[list[str], list[str]]:
    """Return true labels and predictions, half of them correct; some labels occur in only one."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, labels, n)
    guess = np.where(generator.random(n) < 0.5, truth, generator.integers(1, labels + 1, n))
    return [f"c{one}" for one in truth], [f"c{one}" for one in guess]


@each("labels", [1, 2, 8, 40])
@each("n", [1, 7, 60])
def test_metrics_of_labels_are_those_of_scikit_learn(n: int, labels: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    truth, guess = some_labels(n, n, labels)
    answers = Predictions.of_labels(truth, guess)
    expected = {
        "accuracy": sklearn.accuracy_score(truth, guess),
        "macro-f1": sklearn.f1_score(truth, guess, average="macro", zero_division=0.0),
        "micro-f1": sklearn.f1_score(truth, guess, average="micro", zero_division=0.0),
    }
    got = {name: METRICS.build(name).plain(answers) for name in expected}
    assert got == pytest.approx(expected, abs=1e-12)


def test_the_likelihood_of_labels_is_that_of_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(0)
    chances = generator.dirichlet(np.ones(4), 50)
    truth = generator.integers(0, 4, 50)
    log_probability = np.log(chances[np.arange(50), truth])
    names = list(map(str, truth))
    answers = Predictions.of_labels(names, names, log_probability=log_probability)
    expected = sklearn.log_loss(truth, chances, labels=range(4))
    assert METRICS.build("label-nll").plain(answers) == pytest.approx(expected)


def test_a_label_that_training_never_saw_has_no_part_in_the_likelihood() -> None:
    nll = METRICS.build("label-nll")
    truth = ["a", "b", "a", "c"] * 25
    answers = Predictions.of_labels(truth, truth, log_probability=[-0.5, -1.0, -0.3, np.nan] * 25)
    figure = figures([nll, METRICS.build("accuracy")], answers)
    assert (figure["label-nll"].n, figure["accuracy"].n) == (75, 100)
    assert figure["label-nll"].value == pytest.approx(0.6)
    low, high = figure["label-nll"].low, figure["label-nll"].high
    assert low is not None and high is not None and 0.5 < low < 0.6 < high < 0.7
    # Another model has probabilities for c but not for b, so only a is compared.
    other = answers._replace(log_probability=np.array([-0.7, np.nan, -0.7, -9.0] * 25))
    apart = paired(nll, [other], [answers]).figure
    assert apart.value == pytest.approx(0.3) and apart.n == 50
    unknown = answers._replace(log_probability=np.full(100, np.nan))
    assert nll.why_undefined(unknown) == "the predictions have no log probability"
    never = answers._replace(log_probability=np.full(100, -np.inf))
    assert nll.why_undefined(never) == "a true label has probability 0"
    assert paired(nll, [unknown], [answers]).figure.value is None


def test_the_number_of_a_true_label_does_not_depend_on_predictions() -> None:
    truth = ["b", "a", "c"]
    first = Predictions.of_labels(truth, ["aa", "b", "c"])
    second = Predictions.of_labels(truth, truth)
    assert first.truth.tolist() == second.truth.tolist()
    assert (first.prediction == first.truth).tolist() == [False, False, True]


@given(st.integers(0, 10**6), st.integers(1, 12))
@each("name", [name for name in METRICS.names() if METRICS.build(name).share])
def test_a_share_is_the_mean_of_a_0_or_1_for_each(name: str, seed: int, n: int) -> None:
    metric = METRICS.build(name)
    answers = made_up_for(metric, seed, n)
    counted = np.flatnonzero(metric.counted(answers))
    alone = [metric.plain(answers.take(counted[[index]])) for index in range(len(counted))]
    assert set(alone) <= {0.0, 1.0} and metric.bounds == (0.0, 1.0)
    if alone:
        assert metric.plain(answers) == pytest.approx(sum(alone) / len(alone))
