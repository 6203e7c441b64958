"""Metrics with intervals and paired differences: coverage, pairing, and undefined values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok.errors import UsageError
from numtok.metrics import _bootstrap, base
from numtok.metrics._bootstrap import interval, resample
from numtok.metrics._contract import made_up
from numtok.metrics.base import (
    METRICS,
    Metric,
    PairedDifference,
    Predictions,
    ends,
    figures,
)
from numtok.reports import Figure
from tests.cases import each
from tests.messages import Says

MAE = METRICS.build("mae")


def metrics(*specs: str) -> list[Metric]:
    return [METRICS.build(spec) for spec in specs]


def noisy(seed: int, n: int = 200, noise: float = 1.0) -> Predictions:
    """Return predictions with normal noise; the true values are the same for every seed."""
    truth = np.random.default_rng(12345).normal(size=n)
    return Predictions.of(truth, truth + noise * np.random.default_rng(seed).normal(size=n))


def paired(
    metric: Metric, first: Predictions, second: Predictions, **more: Any
) -> PairedDifference:
    """Return the paired difference of two models with one seed each."""
    return base.paired(metric, [first], [second], **more)


def ends_of(figure: Figure) -> tuple[float, float]:
    """Return the interval of a metric that has one."""
    assert figure.low is not None and figure.high is not None
    return figure.low, figure.high


# --- resampling --------------------------------------------------------------------------------


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 1000))
def test_a_resample_draws_as_many_numbers_as_there_are(n: int, resamples: int, seed: int) -> None:
    weights = np.concatenate(list(resample(n, None, resamples, seed)))
    assert weights.shape == (resamples, n)
    assert weights.sum(axis=1).tolist() == [n] * resamples
    assert weights.min() >= 0


def test_numbers_are_drawn_evenly_and_independently() -> None:
    weights = np.concatenate(list(resample(10, None, 20_000, 0)))
    assert np.abs(weights.mean(axis=0) - 1).max() < 0.03
    covariance = np.cov(weights.T)  # of a multinomial: 1 - 1/n, and -1/n
    assert np.abs(covariance - (np.eye(10) - 0.1)).max() < 0.04


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.integers(0, 1000))
def test_a_sample_is_drawn_with_all_its_numbers(members: list[int], seed: int) -> None:
    sample = np.array(members)
    weights = np.concatenate(list(resample(len(sample), sample, 5, seed)))
    drawn = np.zeros(5)
    for one in np.unique(sample):
        rows = weights[:, sample == one]
        assert (rows == rows[:, :1]).all()
        drawn += rows[:, 0]
    assert drawn.tolist() == [len(np.unique(sample))] * 5


@pytest.mark.parametrize("chunk", [1, 999, 1 << 14])
def test_figures_do_not_depend_on_how_many_weights_are_held_at_a_time(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    specs = [name for name in METRICS if not METRICS[name].needs]
    expected = figures(metrics(*specs), noisy(0, 60), resamples=50)
    monkeypatch.setattr(_bootstrap, "_CHUNK", chunk)
    assert figures(metrics(*specs), noisy(0, 60), resamples=50) == expected


# --- intervals ---------------------------------------------------------------------------------


def test_the_interval_covers_the_expected_value_about_as_often_as_it_says() -> None:
    """A percentile interval of 60 numbers is a little too narrow."""
    expected = np.sqrt(2 / np.pi)  # the mean of |noise|
    covered = 0
    for seed in range(800):
        low, high = ends_of(figures([MAE], noisy(seed, 60), resamples=200)["mae"])
        covered += low <= expected <= high
    assert 0.91 < covered / 800 < 0.96


def test_the_interval_of_a_share_is_about_that_of_the_binomial() -> None:
    answers = noisy(0, 1000)._replace(valid=np.arange(1000) < 800)
    [found] = figures(metrics("number-generation-ratio"), answers).values()
    half = 1.96 * np.sqrt(0.16 / 1000)
    assert found.value == 0.8
    assert ends_of(found) == pytest.approx((0.8 - half, 0.8 + half), abs=0.004)


def test_more_numbers_give_narrower_intervals() -> None:
    def width(n: int) -> float:
        low, high = ends_of(figures([MAE], noisy(0, n))["mae"])
        return high - low

    assert width(4000) < 0.4 * width(250)


def test_numbers_that_repeat_each_other_are_no_evidence() -> None:
    once = noisy(0, 50)
    often = once.take(np.repeat(np.arange(50), 20))
    apart = figures(metrics("mae"), often)["mae"]
    together = figures(metrics("mae"), often._replace(sample=np.repeat(np.arange(50), 20)))["mae"]
    single = figures(metrics("mae"), once)["mae"]
    assert ends_of(together) == pytest.approx(ends_of(single), rel=1e-12)
    assert ends_of(apart)[0] > ends_of(together)[0]


def test_an_interval_has_ends_that_occurred() -> None:
    values = np.arange(1.0, 101.0)
    assert interval(values) == (3.0, 98.0)
    assert interval(np.array([1.0, np.inf])) == (1.0, None)
    assert interval(np.array([-np.inf, 1.0])) == (None, 1.0)
    assert interval(np.empty(0)) == (None, None)


def test_figures_and_intervals_are_the_same_each_time() -> None:
    one, again = (figures(metrics("mae"), noisy(0)) for _ in range(2))
    assert one == again


def test_every_metric_sees_the_same_resamples_whichever_others_are_asked_for() -> None:
    together = figures(metrics("mae", "r2", "rmse"), noisy(0))
    assert list(together) == ["mae", "r2", "rmse"]
    for name, figure in together.items():
        assert figures(metrics(name), noisy(0)) == {name: figure}


def test_figures_are_named_by_the_shortest_spec() -> None:
    asked = metrics("relative-error-over,limit=0.1", "relative-error-over,limit=0.5")
    assert list(figures(asked, noisy(0))) == [
        "relative-error-over",
        "relative-error-over,limit=0.5",
    ]


# --- undefined metrics -------------------------------------------------------------------------


def test_without_numbers_nothing_is_defined() -> None:
    nothing = noisy(0).take(np.arange(0))
    assert set(figures(metrics(*METRICS), nothing).values()) == {Figure(None, None, None, 0)}


def test_one_number_or_one_sample_has_figures_and_no_interval() -> None:
    one = Predictions.of([2.0], [3.0])
    assert figures(metrics("mae", "r2"), one) == {
        "mae": Figure(1.0, None, None, 1),
        "r2": Figure(None, None, None, 1),
    }
    sample = np.zeros(3, np.int64)
    three = Predictions.of([1, 2, 3], [1, 2, 6])._replace(sample=sample)
    assert figures(metrics("mae"), three) == {"mae": Figure(1.0, None, None, 3)}


def test_a_metric_that_counts_one_number_or_one_sample_has_no_interval() -> None:
    log_density = np.full(4, np.nan)
    log_density[2] = -3.0
    answers = noisy(0, 4)._replace(log_density=log_density)
    assert figures(metrics("nll"), answers)["nll"] == Figure(3.0, None, None, 1)
    log_density[3] = -4.0
    found = figures(metrics("nll"), answers)["nll"]
    assert (found.low, found.high, found.n) == (3.0, 4.0, 2)
    together = answers._replace(sample=np.array([0, 1, 2, 2]))
    assert figures(metrics("nll"), together)["nll"] == Figure(3.5, None, None, 2)


def test_a_metric_without_its_columns_stands_beside_those_that_have_theirs() -> None:
    found = figures(metrics("nll", "mae"), noisy(0, 20))
    assert found["nll"] == Figure(None, None, None, 20)
    assert found["mae"].value is not None


def test_resamples_that_leave_a_metric_undefined_are_left_out() -> None:
    answers = Predictions.of([1.0, 2.0], [1.0, 2.5])  # half of the resamples repeat one true value
    assert figures(metrics("r2"), answers)["r2"] == Figure(0.5, 0.5, 0.5, 2)


def test_an_error_without_bound_leaves_that_end_open() -> None:
    answers = Predictions.of([1.0, 1.0, 0.0], [1.1, 1.3, 1.0])
    found = figures(metrics("median-relative-error"), answers)["median-relative-error"]
    assert found.value == pytest.approx(0.3)
    assert found.low == pytest.approx(0.1)
    assert found.high is None


def test_a_bootstrap_without_resamples_is_refused(says: Says) -> None:
    with says.raises(UsageError, "got 0"):
        figures(metrics("mae"), noisy(0), resamples=0)
    with says.raises(UsageError, "got 0"):
        paired(MAE, noisy(0), noisy(1), resamples=0)


# --- paired ------------------------------------------------------------------------------------


def full(seed: int, n: int = 30) -> Predictions:
    """Return predictions with every column, all positive."""
    truth, prediction = (np.exp(column) for column in noisy(seed, n)[:2])
    return made_up(seed, n)._replace(
        truth=truth,
        prediction=prediction,
        valid=np.ones(n, np.bool_),
        truth_literal=list(map(repr, truth.tolist())),
        prediction_literal=list(map(repr, np.round(prediction, 1).tolist())),
        field=np.arange(n) % 3,
    )


def full_for(name: str, seed: int, n: int = 30) -> Predictions:
    """Return :func:`full` with what the metric measures: three labels, whole answers or numbers."""
    answers = full(seed, n)
    measures = METRICS.build(name).measures
    if measures != "labels":
        return answers._replace(measures=measures)
    guess = np.random.default_rng(seed).integers(0, 3, n).astype(np.float64)
    return answers._replace(truth=np.resize(np.arange(3.0), n), prediction=guess, measures="labels")


@each("name", METRICS.names())
def test_equal_answers_differ_by_exactly_nothing(name: str) -> None:
    metric, first, second = METRICS.build(name), full_for(name, 0), full_for(name, 0)
    found = paired(metric, first, second, resamples=100)
    assert found.figure == Figure(0.0, 0.0, 0.0, int(metric.counted(first).sum()))
    neither = metric.better == "neither"
    assert found.share_better == (None if neither else 0.5)


@each("name", METRICS.names())
def test_a_difference_is_that_of_the_two_figures_and_changes_sign_with_them(name: str) -> None:
    metric, first, second = METRICS.build(name), full_for(name, 0), full_for(name, 1)
    found = paired(metric, first, second, resamples=100)
    other = paired(metric, second, first, resamples=100)
    both = metric.counted(first) & metric.counted(second)
    one, two = (metric.plain(answers.take(both)) for answers in (first, second))
    assert found.figure.value == pytest.approx(one - two)
    assert found.figure.value == -(other.figure.value or 0.0)
    if found.share_better is not None:
        assert other.share_better == pytest.approx(1 - found.share_better)


def test_pairing_sees_a_difference_that_separate_intervals_hide() -> None:
    better = noisy(0, 400)
    worse = better._replace(prediction=better.truth + 1.05 * (better.prediction - better.truth))
    [a], [b] = (figures(metrics("mae"), one).values() for one in (better, worse))
    assert ends_of(a)[1] > ends_of(b)[0]
    found = paired(MAE, better, worse)
    assert ends_of(found.figure)[1] < 0
    assert found.share_better == 1.0


@each("name", ["mae", "r2"])
def test_the_better_one_is_better_whichever_way_the_metric_points(name: str) -> None:
    better, worse = noisy(0, noise=0.1), noisy(1, noise=1.0)
    assert paired(METRICS.build(name), better, worse).share_better == 1.0
    assert paired(METRICS.build(name), worse, better).share_better == 0.0


def test_equally_good_predictions_have_an_interval_around_zero() -> None:
    found = paired(MAE, noisy(2, 500), noisy(3, 500))
    low, high = ends_of(found.figure)
    assert low < 0 < high
    assert found.share_better is not None and 0 < found.share_better < 1


def test_over_seeds_the_means_of_the_metric_are_compared() -> None:
    first, second = [noisy(1), noisy(2), noisy(3)], [noisy(4), noisy(5)]
    metric = METRICS.build("r2")

    def mean(side: Sequence[Predictions]) -> float:
        return float(np.mean([metric.plain(one) for one in side]))

    found = base.paired(metric, first, second)
    assert found.figure.value == pytest.approx(mean(first) - mean(second))
    single = base.paired(metric, first[:1], second[:1])
    assert single == paired(metric, first[0], second[0])


def test_a_difference_of_what_is_undefined_is_undefined() -> None:
    nothing = noisy(0).take(np.arange(0))
    assert paired(MAE, nothing, nothing) == (Figure(None, None, None, 0), None)
    without_density = paired(METRICS.build("nll"), noisy(0), noisy(1))
    assert without_density == (Figure(None, None, None, 200), None)
    constant = Predictions.of([1.0, 1.0], [1.0, 2.0])
    assert paired(METRICS.build("r2"), constant, constant) == (Figure(None, None, None, 2), None)


def test_answers_to_other_questions_are_not_paired() -> None:
    with pytest.raises(ValueError, match="the same true values in the same order"):
        paired(MAE, Predictions.of([1, 2], [1, 2]), Predictions.of([2, 1], [1, 2]))


def test_samples_are_drawn_whole_in_pairs_too() -> None:
    rows = np.repeat(np.arange(30), 10)
    first, second = (full(seed).take(rows)._replace(sample=rows) for seed in (0, 1))
    once, whole = paired(MAE, full(0), full(1)), paired(MAE, first, second)
    assert ends_of(whole.figure) == pytest.approx(ends_of(once.figure))


def test_differences_smaller_than_those_between_seeds_are_not_significant() -> None:
    truth = np.zeros(200)
    noise = np.random.default_rng(0).normal(0, 0.01, 200)

    def seeds(*errors: float) -> list[Predictions]:
        return [Predictions.of(truth, error + noise) for error in errors]

    first, second = seeds(1.0, 3.0, 5.0), seeds(1.5, 3.5, 5.5)
    difference = base.paired(MAE, first, second).figure
    assert difference.value == pytest.approx(-0.5)
    low, high = ends_of(difference)
    assert low < 0 < high
    assert difference == base.paired(MAE, first, second).figure
    # A difference of two models is exact for every row, as is that of nine equal seeds.
    for count in (1, 9):
        alike = base.paired(MAE, first[:1] * count, second[:1] * count).figure
        assert ends_of(alike) == pytest.approx((-0.5, -0.5))


# --- fractions of 0 and 1 ------------------------------------------------------------------------


@each(("off", "value"), [(0.0, 0.0), (5.0, 1.0)])
def test_a_share_of_0_or_1_has_wilsons_interval(off: float, value: float) -> None:
    truth = np.arange(1.0, 41.0)
    over, mae = METRICS.build("relative-error-over"), METRICS.build("mae")
    found = figures([over, mae], Predictions.of(truth, truth * (1 + off)))
    share = found["relative-error-over"]
    assert (share.value, share.low, share.high) == (value, *ends(value, 40))
    assert share.low != share.high and share.n == 40
    # A mean of equal errors is not a fraction.
    if not off:
        assert (found["mae"].low, found["mae"].high) == (0.0, 0.0)


@each(("off", "value"), [(0.001, 1.0), (0.5, 0.0)])
def test_a_share_of_matches_that_is_0_or_1_has_wilsons_interval(off: float, value: float) -> None:
    truth = np.arange(1.0, 41.0)
    literals = {
        "truth_literal": [f"{one:g}" for one in truth],
        "prediction_literal": [f"{one + off * 1.1:.4f}" for one in truth],
    }
    answers = Predictions.of(truth, truth + off * 1.1, **literals)
    match = figures(metrics("rounded-match"), answers)["rounded-match"]
    assert (match.value, match.low, match.high) == (value, *ends(value, 40))


def test_a_share_of_0_or_1_is_as_sure_as_there_are_samples() -> None:
    truth = np.arange(1.0, 41.0)
    over = METRICS.build("relative-error-over")

    def high(sample: Sequence[int]) -> float | None:
        answers = Predictions.of(truth, truth, sample=np.array(sample))
        return figures([over], answers)["relative-error-over"].high

    assert high([*range(40)]) == ends(0.0, 40)[1]
    assert high([number // 4 for number in range(40)]) == ends(0.0, 10)[1]
    assert high([7] * 40) is None  # one sample gives no interval


def test_a_share_between_has_the_interval_of_the_bootstrap() -> None:
    truth = np.arange(1.0, 41.0)
    predicted = np.where(truth < 3, 0.0, truth)
    found = figures(metrics("relative-error-over"), Predictions.of(truth, predicted))
    share = found["relative-error-over"]
    assert share.low is not None and share.low * 40 == pytest.approx(round(share.low * 40))
