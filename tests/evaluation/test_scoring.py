"""Scoring of predictions of which some lack a predictive distribution."""

import numpy as np
import pyarrow as pa
import pytest

from numtok.evaluation.report_files import TrainMeans
from numtok.evaluation.scoring import Scores, score
from numtok.metrics.base import METRICS
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
