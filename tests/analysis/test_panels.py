"""The values in figures and on pages."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from numtok import files
from numtok.analysis.panels.costs import CostPoint, cost_panel, pareto_front
from numtok.analysis.panels.learning import LearningCurve, learning_curves, learning_panel
from numtok.analysis.panels.numbers import side_by_side_panel, size_panel
from numtok.analysis.picture import BarMarks, LineMark
from numtok.errors import StoreError
from numtok.evaluation.report_files import Evaluation, read
from numtok.metrics.base import Predictions
from numtok.reports import Figure
from numtok.store.artifact import MODEL, Artifact
from numtok.store.store import Store
from numtok.training.log import LOG_FILE
from tests.cases import check_examples
from tests.fakereports import Fake, make


def test_the_examples_are_right() -> None:
    panels = (f"analysis.panels.{name}" for name in ("costs", "numbers", "rows"))
    check_examples(*panels, Predictions=Predictions)


# --- errors by magnitude and by field -------------------------------------------------------------


def test_magnitudes_are_binned_once_for_all_predictions() -> None:
    truth = np.arange(1.0, 101)
    first, second = Predictions.of(truth, truth * 1.1), Predictions.of(truth, truth * 1.2)
    second = second._replace(valid=truth > 20)  # no prediction in the first bin is valid
    found = size_panel({"a": first, "b": second}, {"a": 0, "b": 1}, kind="x-size")
    assert found is not None
    one, other = found.panel.marks
    assert isinstance(one, LineMark) and isinstance(other, LineMark)
    assert (len(one.x), len(other.x)) == (5, 4)
    np.testing.assert_allclose(one.y, 0.1)
    np.testing.assert_allclose(other.y, 0.2)
    assert other.picks == one.picks[1:] == tuple(f"x-size:{k}" for k in range(1, 5))
    assert found.ranges[1] == ("x-size:1", 21.0, 40.0)
    assert found.bins.tolist() == [k // 20 for k in range(100)]


def test_of_zeros_there_are_no_magnitudes() -> None:
    nothing = Predictions.of(np.zeros(3), np.ones(3))
    assert size_panel({"a": nothing}, {"a": 0}) is None


def test_fields_of_several_experiments_stand_beside_each_other() -> None:
    def known(value: float | None) -> Figure:
        return Figure(value, None if value is None else value - 1, None, 5)

    figures = {"a": {"x": known(1), "y": known(2)}, "b": {"y": known(3), "z": known(None)}}
    panel = side_by_side_panel(figures, "mae", {"a": 0, "b": 1})
    assert panel is not None and panel.y.names == ("x", "y", "z")
    one, other = panel.marks
    assert isinstance(one, BarMarks) and isinstance(other, BarMarks)
    assert (one.lengths.tolist(), other.lengths.tolist()) == ([1, 2], [3])
    assert (other.low.tolist(), other.high.tolist()) == ([2], [3])  # a missing end is the value
    assert one.places[1] < 1 < other.places[0]
    assert other.picks == ("label:b",)
    assert side_by_side_panel({"a": {"x": known(None)}}, "mae", {"a": 0}) is None


# --- costs ---------------------------------------------------------------------------------------


def test_the_front_has_what_nobody_beats_in_both() -> None:
    every = [("a", 1.0, 0.2), ("b", 2.0, 0.1), ("c", 3.0, 0.9), ("d", 3.0, 0.5), ("e", 9.0, 0.9)]
    points = [CostPoint(*one, None, None) for one in every]
    assert [one.label for one in pareto_front(points)] == ["a", "c"]
    assert [one.label for one in pareto_front(points, higher=False)] == ["a", "b"]
    assert pareto_front(points, higher=None) == []
    panel = cost_panel(points, ("seconds", "r2"), {one.label: k for k, one in enumerate(points)})
    assert panel is not None
    front, *dots = panel.marks
    assert isinstance(front, LineMark) and front.x.tolist() == [1.0, 3.0]
    assert len(dots) == 5
    assert panel.x.scale == "log"  # the most expensive costs 9 times the cheapest


# --- learning ------------------------------------------------------------------------------------


def logged(store: Store, lines: list[dict[str, object]], name: str = "model") -> Evaluation:
    """Return a report of a model with this log; the model read 64,000 rows in 100 seconds."""
    with store.draft(MODEL, name, {"log": str(lines)}, [], ["numtok", "train"]) as draft:
        assert not isinstance(draft, Artifact)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        files.write_atomic(draft.path / LOG_FILE, text.encode())
        model = draft.publish({}, {})
    one = read(make(store, Fake(), f"of-{name}"))
    return replace(one, report=msgspec.structs.replace(one.report, model=model.ref))


def test_what_models_of_texts_logged_is_drawn_over_seconds_and_rows(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one = logged(
        store,
        [
            {"step": step, "tokens": 1280 * step, "split": split, "loss": loss}
            for step, loss in ((500, 2.0), (1000, 1.0))
            for split in ("train", "validation")
        ],
    )
    curves = learning_curves([("p10", [one])], store.resolve)
    assert [curve.split for curve in curves] == ["train", "validation"]
    assert curves[1].samples.tolist() == [32_000, 64_000]
    assert curves[1].seconds is not None and curves[1].seconds.tolist() == [50.0, 100.0]
    panel = learning_panel(curves, {"p10": 3}, "seconds")
    assert panel is not None
    [line] = panel.marks  # only the validation split
    assert isinstance(line, LineMark)
    assert (line.y.tolist(), line.colour) == ([2.0, 1.0], 3)
    assert "validation" in panel.y.label


def test_what_models_of_tables_logged_is_drawn_too_each_fold_a_line(tmp_path: Path) -> None:
    store = Store(tmp_path)
    lines: list[dict[str, object]] = [
        {"fold": fold, "epoch": epoch, "train": 1 / epoch, "validation": None}
        for fold in (0, 1)
        for epoch in (1, 2)
    ]
    curves = learning_curves([("mdn", [logged(store, lines)])], store.resolve)
    assert [(one.split, one.samples.tolist()) for one in curves] == [
        ("train", [16_000, 32_000])
    ] * 2  # validation has no loss, and each fold has half of the rows
    with pytest.raises(StoreError, match="line 1"):
        broken: list[dict[str, object]] = [{"fold": "a", "epoch": 1}]
        learning_curves([("mdn", [logged(store, broken, "broken")])], store.resolve)


def test_what_nobody_looked_at_twice_is_not_drawn() -> None:
    one = np.ones(1)
    curve = LearningCurve(
        label="a", split="validation", samples=one, tokens=one, seconds=None, loss=one
    )
    for over in ("seconds", "samples"):
        assert learning_panel([curve], {"a": 0}, over) is None


def test_a_model_that_is_gone_has_no_curve(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert learning_curves([("p10", [read(make(store, Fake()))])], store.resolve) == []
