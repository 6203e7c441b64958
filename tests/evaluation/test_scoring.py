"""Scoring of predictions, some without a predictive distribution."""

import numpy as np
import pyarrow as pa
import pytest

from numtok.evaluation.prediction_table import TrainMeans
from numtok.evaluation.scoring import Scores, baseline_scores, number_baselines, score
from numtok.metrics.base import METRICS, paired
from numtok.reports import BestBaseline
from tests.fakereports import Fake


def scored(table: pa.Table, *metrics: str) -> Scores:
    defaults = [METRICS.build(name) for name in metrics]
    return score(
        table,
        TrainMeans(0.0),
        defaults=defaults,
        few=defaults[:1],
        more=[],
        ref="a report",
        progress=lambda *progress: None,
    )


def test_a_number_without_a_distribution_takes_no_figure_from_the_others() -> None:
    table = Fake(later=True).table()
    metrics = ("mae", "crps", "pit-distance", "nll", "coverage")
    whole = scored(table, *metrics)
    assert whole.notes == [] and np.isfinite(whole.metrics["coverage"].value or np.nan)
    values = [None if row == 3 else row / 200 for row in range(200)]
    for name in ("crps", "pit"):
        column = pa.array(values, pa.float64())
        table = table.set_column(table.column_names.index(name), name, column)
    scores = scored(table, *metrics)
    counts = {name: figure.n for name, figure in scores.metrics.items()}
    assert counts == {"mae": 200, "crps": 199, "pit-distance": 199, "coverage": 200}
    assert scores.metrics["crps"].value == pytest.approx((sum(range(200)) - 3) / 200 / 199)
    [note] = scores.notes
    assert "199 of 200 numbers" in note and "crps, pit-distance" in note


def test_a_group_of_many_values_is_told_of() -> None:
    table = Fake(count=70).table()
    many = pa.array([f"{row}" for row in range(70)])
    table = table.set_column(table.column_names.index("group_operands"), "group_operands", many)
    scores = scored(table, "mae")
    assert "operands" not in scores.groups and "operator" in scores.groups
    [note] = scores.notes
    assert all(part in note for part in ("by operands", "70 values", "64", "predictions.parquet"))


# --- the best baseline ---------------------------------------------------------------------------


def best_of(
    scores: Scores, partial: tuple[str, ...] = (), **errors: float
) -> dict[str, BestBaseline]:
    """Return the best of baselines whose predictions are off by the given errors."""
    baselines = [
        (name, scores.answers.truth + error * np.resize([1, -1], len(scores.answers.truth)))
        for name, error in errors.items()
    ]
    for name, values in baselines:
        if name in partial:
            values[:3] = np.nan
    few = [METRICS.build("mae")]
    answers = number_baselines(scores, baselines, partial)
    return baseline_scores(few, [], scores=scores, baselines=answers).best_baselines


def test_the_best_baseline_is_paired_with_the_model() -> None:
    scores = scored(Fake(noise=5).table(), "mae")
    best = best_of(scores, mean=9, tfidf=2, linear=3)[""]
    assert (best.name, best.metric, best.better) == ("tfidf", "mae", "baseline")
    assert best.value == pytest.approx(2)
    baseline = scores.answers._replace(prediction=scores.answers.truth + 2)
    expected = paired(METRICS.build("mae"), [scores.answers], [baseline]).figure
    assert best.difference.value == pytest.approx(expected.value)
    assert best.difference.low == pytest.approx(expected.low)
    assert best_of(scores, mean=9, linear=30)[""].better == "model"
    near = scores.metrics["mae"].value
    assert near is not None and best_of(scores, mean=near)[""].better is None


def test_a_baseline_that_knows_the_truth_or_not_every_row_is_not_the_best() -> None:
    scores = scored(Fake(noise=5).table(), "mae")
    best = best_of(scores, ("persistence",), mean=9, quantization=0, nearest=1, persistence=2)
    assert best[""].name == "mean"
    assert best_of(scores, quantization=0, nearest=1) == {}


def test_each_of_several_targets_has_a_best_baseline() -> None:
    scores = scored(Fake(others=("second",)).table(), "mae")
    best = best_of(scores, mean=9, linear=3)
    assert list(best) == list(scores.by_target) and len(best) == 2
    assert {each.difference.n for each in best.values()} == {len(scores.answers.truth) // 2}
