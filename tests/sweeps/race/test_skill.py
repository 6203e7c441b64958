"""Skill, the score that decides a race, on invented predictions."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from numtok.errors import DataError
from numtok.evaluation.report_files import ReportPredictions
from numtok.metrics.base import Predictions
from numtok.store.store import Store
from numtok.sweeps.race.skill import field_rows, in_fields, medians, score, skill_apart


def predictions(targets: list[str], truth: list[float], said: list[float]) -> ReportPredictions:
    count = len(targets)
    columns = {"id": ["a"] * count, "target": targets, "position": list(range(count))}
    return ReportPredictions("some@report", pa.table(columns), Predictions.of(truth, said))


def of_fields(fields: list[str], usual: list[float]) -> ReportPredictions:
    """Return predictions of numbers that are not targets, in fields with these medians."""
    plain = predictions(["number"] * len(fields), list(range(len(fields))), [0.0] * len(fields))
    answers = plain.answers._replace(
        field=np.unique(fields, return_inverse=True)[1], field_median=np.array(usual)
    )
    table = plain.table.append_column("field", pa.array(fields))
    return ReportPredictions(plain.ref, table, answers)


def test_skill_is_the_mean_over_targets_whatever_their_scales() -> None:
    found = predictions(["x", "x", "y", "y"], [1, 3, 1000, 3000], [1, 2, 1000, 2000])
    # x: errors 0 and 1, versus 1 and 1 for the median. y: the same, a thousand times larger.
    assert score(found, {"": 0.0, "x": 2.0, "y": 2000.0}) == pytest.approx(0.5)
    perfect = found.answers._replace(prediction=found.answers.truth)
    exact = ReportPredictions(found.ref, found.table, perfect)
    assert score(exact, {"": 0.0, "x": 2.0, "y": 2000.0}) == 1.0


def test_fields_of_a_report_count_before_targets() -> None:
    found = of_fields(["age", "weight", "age", "(others)"], [2.0, 3.0, 2.0, np.nan])
    answers = in_fields(found, {"": 100.0})
    assert answers is found.answers
    rows = {name: some.tolist() for name, some in field_rows(found, answers).items()}
    assert rows == {"age": [0, 2], "weight": [1]}
    # age: errors 0 and 2, versus 2 and 0 for the median. weight: 1 versus 2.
    assert score(found, {"": 100.0}) == pytest.approx((0.0 + 0.5) / 2)


def test_no_field_counts_worse_than_minus_one() -> None:
    assert score(predictions(["x", "y"], [1, 1], [1, 1e300]), {"": 0.0, "x": 2.0, "y": 2.0}) == 0.0


def test_a_field_that_is_always_its_median_has_no_part_and_is_refused_alone() -> None:
    both = predictions(["x", "y"], [5, 1], [9, 1])
    assert score(both, {"": 5.0, "y": 0.0}) == 1.0
    with pytest.raises(DataError, match="some@report"):
        score(predictions(["x"], [5.0], [6.0]), {"": 5.0})


def test_skill_over_anything_is_of_the_fields_in_which_that_has_an_error() -> None:
    found = predictions(["x", "x", "y", "y"], [1, 3, 10, 30], [1, 3, 11, 31])
    answers = in_fields(found, {"": 0.0, "x": 2.0, "y": 20.0})
    exact_in_x = answers._replace(prediction=np.array([1.0, 3.0, 14.0, 34.0]))
    over = skill_apart([answers], [exact_in_x], exact_in_x)
    assert over.value == pytest.approx(0.75) and over.low is not None
    truth = answers._replace(prediction=answers.truth)
    assert skill_apart([answers], [truth], truth).value is None


def test_a_number_of_an_unknown_target_is_guessed_as_any_number() -> None:
    answers = in_fields(predictions(["new", "x"], [0, 0], [0, 0]), {"": 7.0, "x": 1.0})
    assert answers.field_median is not None and answers.field_median.tolist() == [7.0, 1.0]


def test_medians_of_a_table_are_of_its_train_split(tmp_path: Path) -> None:
    from numtok.stages import table

    rows = [(x, "train" if x < 5 else "test") for x in range(10)]
    path = tmp_path / "rows.csv"
    path.write_text("x,y,split\n" + "".join(f"{x},{x * x},{split}\n" for x, split in rows))
    made = table.run(table.Config(str(path), target="y"), Store(tmp_path / "artifacts")).artifact
    assert medians(made) == {"": 4.0, "y": 4.0}
