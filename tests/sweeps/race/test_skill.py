"""Skill: what a race is decided by, on predictions made up here."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from numtok.evaluation.report_files import ReportPredictions
from numtok.metrics.base import Predictions
from numtok.store.store import Store
from numtok.sweeps.race.skill import PredictionSlots, SkillOver, medians, score, slot_of
from tests.cases import each


def predictions(
    targets: list[str], positions: list[int], truth: list[float], said: list[float]
) -> ReportPredictions:
    table = pa.table({"id": ["a"] * len(targets), "target": targets, "position": positions})
    return ReportPredictions("some@report", table, Predictions.of(truth, said))


@each(
    ("target", "position", "slot"),
    [
        ("area", 5, "area"),
        ("number", 0, "number 1"),
        ("number", 15, "number 16"),
        ("number", 16, "number 17 and later"),
        ("number", 99, "number 17 and later"),
    ],
)
def test_slots_are_targets_or_places(target: str, position: int, slot: str) -> None:
    assert slot_of(target, position) == slot


def test_skill_is_the_mean_over_slots_whatever_their_scales() -> None:
    found = predictions(["x", "x", "y", "y"], [0] * 4, [1, 3, 1000, 3000], [1, 2, 1000, 2000])
    # x: errors 0 and 1 for 1 and 1 of the median; y the same, a thousand times larger.
    assert score(found, {"": 0.0, "x": 2.0, "y": 2000.0}) == pytest.approx(0.5)
    perfect = found.answers._replace(prediction=found.answers.truth)
    exact = ReportPredictions(found.ref, found.table, perfect)
    assert score(exact, {"": 0.0, "x": 2.0, "y": 2000.0}) == 1.0


def test_no_slot_counts_worse_than_minus_one() -> None:
    found = predictions(["x", "y"], [0, 0], [1, 1], [1, 1e300])
    assert score(found, {"": 0.0, "x": 2.0, "y": 2.0}) == 0.0


@each(("said", "skill"), [(5.0, 0.0), (6.0, -1.0)])
def test_a_slot_that_is_always_the_same_is_known_or_not(said: float, skill: float) -> None:
    assert score(predictions(["x"], [0], [5.0], [said]), {"": 5.0}) == skill


def test_a_resample_without_a_slot_is_as_good_as_the_reference() -> None:
    found = predictions(["x", "y"], [0, 0], [1, 1], [1, 1])
    metric = SkillOver(PredictionSlots.of(found), np.array([1.0, 1.0]))
    weights = np.array([[1.0, 1.0], [2.0, 0.0]])
    assert metric.compute(found.answers, weights).tolist() == [1.0, 0.5]


def test_a_number_of_an_unknown_slot_is_guessed_as_any_number() -> None:
    slots = PredictionSlots.of(predictions(["new", "x"], [0, 0], [0, 0], [0, 0]))
    assert slots.of_each({"": 7.0, "x": 1.0}).tolist() == [7.0, 1.0]


def test_medians_of_a_table_are_of_its_train_split(tmp_path: Path) -> None:
    from numtok.stages import table

    rows = [(x, "train" if x < 5 else "test") for x in range(10)]
    path = tmp_path / "rows.csv"
    path.write_text("x,y,split\n" + "".join(f"{x},{x * x},{split}\n" for x, split in rows))
    made = table.run(table.Config(str(path), "y"), Store(tmp_path / "artifacts")).artifact
    assert medians(made) == {"": 4.0, "y": 4.0}
