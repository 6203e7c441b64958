"""Conformal intervals: their coverage for data of any kind."""

from math import inf
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from numtok.arrays import Floats, Ints
from numtok.evaluation.conformal import Calibrated, Forecasts, calibrate, least, quantile
from numtok.reports import QUANTILES

NORMAL = np.array([-1.645, -0.674, 0.0, 0.674, 1.645])  # quantiles at the levels QUANTILES


def forecasts(point: Floats, spread: Floats | None = None, strata: Any = None) -> Forecasts:
    """Return normal distributions with the given standard deviations, or points without any."""
    quantiles = None if spread is None else point[:, None] + spread[:, None] * NORMAL
    names = np.full(len(point), "y", object) if strata is None else np.array(strata, object)
    return Forecasts(point=point, quantiles=quantiles, strata=names)


def hits(calibrated: Calibrated, truth: Floats, predicted: Forecasts) -> Any:
    low, high = calibrated.intervals(predicted)
    return (low <= truth) & (truth <= high)


def simulated(seed: int, n: int, noise: str) -> tuple[Floats, Forecasts]:
    """Return true values and overconfident forecasts; noise grows with the scale of the row."""
    random = np.random.default_rng(seed)
    scale = random.uniform(0.2, 3, n)
    errors = random.normal(size=n) if noise == "normal" else random.standard_cauchy(size=n)
    center = random.normal(size=n)
    return center + scale * errors, forecasts(center + 0.3, 0.6 * scale)


def within(fraction: float, n: int, level: float) -> bool:
    """Return whether ``level`` is in the 99.9% interval of a fraction of n independent rows."""
    low, high = binomtest(round(fraction * n), n).proportion_ci(0.999)
    return bool(low <= level <= high)


@pytest.mark.parametrize("noise", ["normal", "cauchy"])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("points", [False, True])
def test_coverage_is_the_level_for_rows_of_one_kind(noise: str, level: float, points: bool) -> None:
    """With 99 calibration rows the expected coverage is exactly the level (no rounding)."""
    covered = []
    for seed in range(2000):
        truth, predicted = simulated(seed, 100, noise)
        if points:
            predicted = forecasts(predicted.point)
        rows = [forecasts_at(predicted, part) for part in (slice(0, 99), slice(99, 100))]
        calibrated = calibrate(truth[:99], rows[0], np.arange(99), level)
        covered.append(hits(calibrated, truth[99:], rows[1])[0])
    assert within(float(np.mean(covered)), len(covered), level)


def forecasts_at(predicted: Forecasts, rows: Any) -> Forecasts:
    quantiles = None if predicted.quantiles is None else predicted.quantiles[rows]
    return Forecasts(
        point=predicted.point[rows], quantiles=quantiles, strata=predicted.strata[rows]
    )


def clusters(random: np.random.Generator, count: int) -> tuple[Floats, Ints]:
    """Return values that depend on their clusters; large clusters have large values."""
    sizes = random.choice([1, 40], count)
    units = np.repeat(np.arange(count), sizes)
    shift = random.normal(size=count) * np.where(sizes > 1, 5, 1)
    return shift[units] + 0.1 * random.normal(size=len(units)), units


def test_coverage_holds_for_new_clusters_but_not_if_rows_count_alike() -> None:
    by_cluster: list[float] = []
    by_row: list[float] = []
    for seed in range(2000):
        values, units = clusters(np.random.default_rng(seed), 20)
        known = units < 19
        new = forecasts(np.zeros(int((~known).sum())))
        for found, each in ((by_cluster, units[known]), (by_row, np.arange(int(known.sum())))):
            calibrated = calibrate(values[known], forecasts(np.zeros(known.sum())), each, 0.9)
            found.append(hits(calibrated, values[~known], new).mean())
    low, _ = binomtest(int(np.sum(by_cluster)), len(by_cluster)).proportion_ci(0.999)
    assert low <= 0.96 and np.mean(by_cluster) > 0.89
    assert abs(np.mean(by_row) - 0.9) > abs(np.mean(by_cluster) - 0.9)


def test_rows_of_one_cluster_share_the_weight_of_one_row() -> None:
    scores, units = np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4)
    copied = quantile(np.repeat(scores, 7), np.repeat(units, 7), 0.75)
    assert copied == quantile(scores, units, 0.75) == 4.0


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_are_infinite_if_there_are_too_few_rows(level: float) -> None:
    enough = least(level)
    scores = np.arange(float(enough))
    assert quantile(scores, np.arange(enough), level) == enough - 1
    assert quantile(scores[1:], np.arange(enough - 1), level) == inf
    assert quantile(np.empty(0), np.empty(0, np.int64), level) == inf
    few = forecasts(np.zeros(enough - 1))
    low, high = calibrate(np.ones(enough - 1), few, np.arange(enough - 1), level).intervals(few)
    assert (low == -inf).all() and (high == inf).all()


def test_quantiles_give_narrower_intervals_than_residuals_if_the_noise_varies() -> None:
    random = np.random.default_rng(0)
    scale = np.exp(random.normal(0, 1.2, 4000))
    truth, point = scale * random.normal(size=4000), np.zeros(4000)
    widths = []
    for spread in (scale, None):
        known, new = (
            forecasts(point[rows], None if spread is None else spread[rows])
            for rows in (slice(0, 2000), slice(2000, None))
        )
        calibrated = calibrate(truth[:2000], known, np.arange(2000), 0.9)
        assert hits(calibrated, truth[2000:], new).mean() == pytest.approx(0.9, abs=0.02)
        low, high = calibrated.intervals(new)
        widths.append((high - low).mean())
    assert widths[0] < 0.9 * widths[1]


def test_strata_are_calibrated_apart_and_unknown_ones_together() -> None:
    random = np.random.default_rng(0)
    names = np.repeat(["small", "large"], 500)
    truth = random.normal(size=1000) * np.where(names == "small", 1, 100)
    known = forecasts(np.zeros(1000), strata=names)
    calibrated = calibrate(truth, known, np.arange(1000), 0.9)
    new = forecasts(np.zeros(3), strata=["small", "large", "other"])
    low, high = calibrated.intervals(new)
    assert (low == -high).all()
    assert high[0] == pytest.approx(1.645, rel=0.15) and high[1] == pytest.approx(164.5, rel=0.15)
    assert high[0] < high[2] < high[1]


def test_intervals_that_are_too_wide_are_narrowed_and_never_inverted() -> None:
    random = np.random.default_rng(1)
    truth, wide = random.normal(size=500), forecasts(np.zeros(500), np.full(500, 50.0))
    low, high = calibrate(truth, wide, np.arange(500), 0.9).intervals(wide)
    assert high[0] == pytest.approx(1.645, rel=0.2) and (low <= high).all()
    exact = forecasts(truth, np.full(500, 1.0))
    low, high = calibrate(truth, exact, np.arange(500), 0.9).intervals(exact)
    assert (low <= high).all() and low == pytest.approx(truth)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_contain_the_point_wherever_it_is(level: float) -> None:
    """A mode can lie outside the quantiles. The other end stays where calibration put it."""
    truth, predicted = simulated(0, 400, "normal")
    modes = predicted.point + np.where(np.arange(400) % 2, 1, -1) * np.linspace(0, 50, 400)
    distant = Forecasts(point=modes, quantiles=predicted.quantiles, strata=predicted.strata)
    low, high = calibrate(truth, distant, np.arange(400), level).intervals(distant)
    usual = calibrate(truth, predicted, np.arange(400), level).intervals(predicted)
    assert (low == np.minimum(usual.low, modes)).all() and (low < usual.low).any()
    assert (high == np.maximum(usual.high, modes)).all() and (high > usual.high).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_without_finite_quantiles_have_intervals_around_their_point(bad: float) -> None:
    truth, predicted = simulated(0, 400, "normal")
    assert predicted.quantiles is not None
    predicted.quantiles[::2, -1] = bad
    calibrated = calibrate(truth, predicted, np.arange(400), 0.9)
    low, high = calibrated.intervals(predicted)
    assert np.isfinite(high - low).all()
    assert hits(calibrated, truth, predicted).mean() == pytest.approx(0.9, abs=0.01)
    assert low[::2] + high[::2] == pytest.approx(2 * predicted.point[::2])


def test_the_levels_of_quantiles_are_those_that_intervals_use() -> None:
    assert len(NORMAL) == len(QUANTILES)
    _, predicted = simulated(0, 50, "normal")
    assert predicted.quantiles is not None
    for level, index in ((0.95, 0), (0.75, 0), (0.6, 1), (0.1, 1)):
        low, high = predicted.interval(level)
        assert (low == predicted.quantiles[:, index]).all()
        assert (high == predicted.quantiles[:, -1 - index]).all()


@pytest.mark.parametrize("points", [False, True])
def test_intervals_of_nonnegative_targets_end_at_zero_without_losing_coverage(
    points: bool,
) -> None:
    random, covered, narrower = np.random.default_rng(0), [], []
    for _ in range(2000):
        truth = random.exponential(size=100)
        predicted = forecasts(np.full(100, 0.7), None if points else np.full(100, 0.3))
        rows = [forecasts_at(predicted, part) for part in (slice(0, 99), slice(99, 100))]
        units = np.arange(99)
        usual = calibrate(truth[:99], rows[0], units, 0.9)
        clipped = calibrate(truth[:99], rows[0], units, 0.9, nonnegative=["y"])
        assert hits(clipped, truth[99:], rows[1])[0] == hits(usual, truth[99:], rows[1])[0]
        covered.append(hits(clipped, truth[99:], rows[1])[0])
        low, high = clipped.intervals(rows[1])
        assert low[0] == 0 and high[0] == usual.intervals(rows[1]).high[0]
        narrower.append(usual.intervals(rows[1]).low[0] < 0)
    assert within(float(np.mean(covered)), len(covered), 0.9) and all(narrower)


def test_intervals_are_clipped_only_where_no_value_is_negative() -> None:
    truth, predicted = np.arange(-1.0, 99), forecasts(np.zeros(100))
    low, _ = calibrate(truth, predicted, np.arange(100), 0.9, nonnegative=["y"]).intervals(
        predicted
    )
    assert (low < 0).all()  # a calibration value is negative
    few = forecasts(np.zeros(3))
    low, _ = calibrate(truth[1:4], few, np.arange(3), 0.9, nonnegative=["y"]).intervals(few)
    assert (low == -inf).all()  # too few rows to calibrate
    negative = forecasts(np.full(50, -2.0))
    calibrated = calibrate(truth[1:51], negative, np.arange(50), 0.9, nonnegative=["y"])
    low, high = calibrated.intervals(negative)
    assert (low == -2).all() and (high > 0).all()  # the prediction is in its interval
    assert (calibrated.intervals(forecasts(np.ones(2), strata=["y", None])).low == 0).all()
    both = forecasts(np.zeros(50), strata=["y", "z"] * 25)
    calibrated = calibrate(truth[1:51], both, np.arange(50), 0.9, nonnegative=["y"])
    low, _ = calibrated.intervals(forecasts(np.ones(3), strata=["y", "z", None]))
    assert (low >= 0).tolist() == [True, False, False]


def test_rows_of_an_unknown_stratum_without_quantiles_are_covered() -> None:
    """Without a name, the spread of a number is unknown, so its interval is based on residuals."""
    covered = []
    for seed in range(1000):
        random = np.random.default_rng(seed)
        names = random.choice(["small", "large"], 100)
        spread = np.where(names == "small", 1.0, 100.0)
        truth = spread * random.normal(size=100)
        known = forecasts(np.zeros(99), spread[:99], names[:99])
        calibrated = calibrate(truth[:99], known, np.arange(99), 0.9)
        new = Forecasts(
            point=np.zeros(1), quantiles=np.full((1, 5), np.nan), strata=np.array([None], object)
        )
        covered.append(hits(calibrated, truth[99:], new)[0])
    assert within(float(np.mean(covered)), len(covered), 0.9)
