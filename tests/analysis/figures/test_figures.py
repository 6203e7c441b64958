"""The values in figures: panels, axes and marks made of plain columns."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok import files
from numtok.analysis.figures import (
    _measures,
    bars,
    calibration,
    costs,
    curve,
    density,
    lines,
    truth,
)
from numtok.analysis.figures._measures import Pair, Point, measured, notes_of
from numtok.analysis.figures._reports import labels_of, metric_label, sources_of
from numtok.analysis.figures._settings import placed
from numtok.analysis.picture import (
    Axis,
    Band,
    BarMarks,
    ColumnMarks,
    LineMark,
    Mark,
    Points,
    Ticks,
    axis_of,
    drawn,
    some,
    undrawn,
)
from numtok.data.tables.table import Feature
from numtok.errors import UsageError
from numtok.evaluation.comparison.seeds import SeedStatistics
from numtok.evaluation.report_files import Evaluation, read
from numtok.metrics.base import METRICS, Predictions
from numtok.reports import PREDICTIONS_FILE, QUANTILES, Labels, quantile_column
from numtok.stages.figure import picture_of
from numtok.store.artifact import DATA, ENCODED, TABLE, Artifact, Parent
from numtok.store.store import Store
from tests.cases import case, check_examples
from tests.fakereports import Fake, make
from tests.forged import forged
from tests.messages import Says

NAN = float("nan")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


def evaluations(store: Store, *fakes: Fake) -> list[Evaluation]:
    return [read(make(store, fake, f"report-{index}")) for index, fake in enumerate(fakes)]


def refs_of(store: Store, *fakes: Fake) -> list[str]:
    return [one.ref for one in evaluations(store, *fakes)]


def known(
    value: float | None, low: float | None = None, high: float | None = None
) -> SeedStatistics:
    interval = None if low is None else "bootstrap"
    return SeedStatistics(
        value=value, low=low, high=high, deviation=None, interval=interval, seeds=1, n=10
    )


UNDEFINED = known(None)


def only(marks: Any, kind: type[Mark]) -> Any:
    [found] = [mark for mark in marks if isinstance(mark, kind)]
    return found


def test_the_examples_are_right() -> None:
    figures = ("_measures", "_reports", "_settings", "frequencies", "lines", "truth")
    modules = (f"analysis.figures.{name}" for name in figures)
    more = "analysis.picture", "evaluation.comparison.experiments"
    check_examples(*modules, *more, Feature=Feature)


# --- axes ----------------------------------------------------------------------------------------


@pytest.mark.integration
@given(
    st.sampled_from(["linear", "log", "signed-log"]),
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5),
    st.sampled_from([1e-3, 1.0, 100.0]),
)
def test_places_on_an_axis_lead_back_to_their_values(
    scale: str, sizes: list[float], linear_below: float
) -> None:
    axis = Axis(label="y", scale=scale, linear_below=linear_below)
    values = np.array(sizes if scale == "log" else [*sizes, 0.0, *(-size for size in sizes)])
    np.testing.assert_allclose(undrawn(axis, drawn(axis, values)), values, rtol=1e-9)


def test_a_signed_logarithm_is_linear_below_the_smallest_numbers() -> None:
    axis = axis_of("y", "signed-log", np.array([-1e6, 0.0, 0.02, 3.0, 1e6]), 0.0)
    assert axis.linear_below == 0.01
    assert axis.low == pytest.approx(-1e6)
    assert axis.high == pytest.approx(1e6)


@pytest.mark.parametrize(("value", "ends"), [(4.0, (2.0, 6.0)), (0.0, (-1.0, 1.0))])
def test_an_axis_of_one_value_has_room_around_it(value: float, ends: tuple[float, float]) -> None:
    axis = axis_of("y", "linear", np.array([value, value]), 0.1)
    assert (axis.low, axis.high) == ends


def test_a_logarithm_of_what_is_not_above_0_is_refused(says: Says) -> None:
    with pytest.raises(UsageError) as caught:
        axis_of("truth", "log", np.array([0.0, 1.0]), 0.1)
    says(caught, "--scale log", "'truth'", "0", "signed-log")


def test_some_of_many_are_always_the_same_ones_in_order() -> None:
    chosen = some(1000, 50)
    assert len(chosen) == 50
    assert (np.diff(chosen) > 0).all()
    assert (chosen == some(1000, 50)).all()
    assert chosen.max() > 800  # not the first ones


# --- true values ---------------------------------------------------------------------------------


def test_predictions_stand_over_their_truth_and_at_the_edge_where_they_lie_beyond() -> None:
    prediction = np.array([0.5, NAN, 1e30, -7.0, 9.0])
    panel, notes = truth.panel_of(
        "p10", np.array([0.0, 1.0, 2.0, 3.0, 10.0]), prediction, "linear", None
    )
    assert (panel.x.low, panel.x.high) == (panel.y.low, panel.y.high) == (-1.5, 11.5)
    assert (panel.x.label, panel.y.label) == ("true value", "prediction")
    inside, beyond = panel.marks
    assert isinstance(inside, Points) and isinstance(beyond, Points)
    assert (inside.x.tolist(), inside.y.tolist()) == ([0.0, 10.0], [0.5, 9.0])
    assert (beyond.x.tolist(), beyond.y.tolist()) == ([2.0, 3.0], [11.5, -1.5])
    assert (inside.at_edge, beyond.at_edge) == (False, True)
    assert notes == ["1 of 5 predictions are invalid."]


def test_what_a_logarithm_cannot_show_stands_at_its_lower_edge() -> None:
    panel, _ = truth.panel_of("p10", np.array([1.0, 100.0]), np.array([-5.0, 90.0]), "log", None)
    beyond = panel.marks[1]
    assert isinstance(beyond, Points)
    assert panel.y.low == pytest.approx(10**-0.3)
    assert beyond.y.tolist() == [panel.y.low]


def test_values_of_the_train_split_are_marked_where_the_axis_goes() -> None:
    seen = np.array([-100.0, 1.0, 2.0])
    panel, _ = truth.panel_of("p10", np.array([0.0, 4.0]), np.array([0.0, 4.0]), "linear", seen)
    assert only(panel.marks, Ticks).x.tolist() == [1.0, 2.0]


def test_very_many_predictions_are_drawn_in_part_and_that_is_said() -> None:
    values = np.arange(12_000.0)
    panel, notes = truth.panel_of("p10", values, values, "linear", None)
    assert len(only(panel.marks, Points).x) == 5000
    assert notes == ["5,000 of 12,000 are shown."]


def test_a_report_is_read_in_full_or_for_one_target(store: Store) -> None:
    ref = make(store, Fake(invalid=3), "one").ref
    picture = picture_of(truth.Truth(), [ref], store)
    assert picture.notes == ["3 of 200 predictions are invalid."]
    assert sum(len(mark.x) for mark in picture.panels[0].marks if isinstance(mark, Points)) == 197
    same = picture_of(truth.Truth(target="answer"), [ref], store)
    assert only(same.panels[0].marks, Points).x.tolist() == (
        only(picture.panels[0].marks, Points).x.tolist()
    )
    with pytest.raises(UsageError) as caught:
        picture_of(truth.Truth(target="anwser"), [ref], store)
    assert str(caught.value).endswith("Did you mean 'answer'? Known: answer")


def test_panels_are_named_by_what_differs_the_seed_and_the_data_too(store: Store) -> None:
    refs = refs_of(store, Fake(), Fake(seed=1), Fake("xval"))
    of_one = picture_of(truth.Truth(), refs[:2], store)
    assert [panel.title for panel in of_one.panels] == ["p1000, seed=0", "p1000, seed=1"]
    of_two = picture_of(truth.Truth(), refs[1:], store)
    titles = [panel.title for panel in of_two.panels]
    assert titles == ["p1000, arithmetic-p1000", "xval, arithmetic-xval"]


# --- curve and density ---------------------------------------------------------------------------


def test_a_curve_goes_from_left_to_right_with_its_band() -> None:
    x = np.array([3.0, 1.0, NAN, 2.0])
    answers = Predictions.of(
        [30, 10, 0, 20], [31, 11, 1, 21], quantiles=np.arange(20.0).reshape(4, 5)
    )
    answers = answers._replace(valid=np.array([True, True, True, False]))
    panel = curve.panel_of("t", (Axis(label="x"), "y"), [("ud", x, answers)], {"ud": 4}, "linear")
    points, line, band = (only(panel.marks, kind) for kind in (Points, LineMark, Band))
    assert (points.x.tolist(), points.y.tolist()) == ([1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
    assert line.x.tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_equal(line.y, [11.0, NAN, 31.0])  # an invalid prediction leaves a gap
    assert (band.low.tolist(), band.high.tolist()) == ([5.0, 15.0, 0.0], [9.0, 19.0, 4.0])
    assert (line.colour, band.colour, points.colour) == (4, 4, None)
    assert (panel.x.label, panel.y.label, panel.y.low, panel.y.high) == ("x", "y", 8.0, 32.0)


def test_a_report_without_quantiles_has_no_band() -> None:
    answers = Predictions.of([1, 2], [1, 2])
    columns = [("a", np.array([0.0, 1.0]), answers), ("b", np.array([0.0, 1.0]), answers)]
    panel = curve.panel_of("t", (Axis(label="x"), "y"), columns, {"a": 0, "b": 1}, "linear")
    assert [type(mark) for mark in panel.marks] == [Points, LineMark, LineMark]  # true values once


def test_draws_share_the_frame_of_the_truth_and_those_outside_are_counted() -> None:
    x, y = np.array([0.0, 1.0]), np.array([0.0, 10.0])
    draws = {"mdn:5": np.array([5.0, 99.0]), "ud": np.array([NAN, 1.0]), "nd": y}
    picture = density.picture_of((Axis(label="x"), "y"), (x, y), draws, "linear", "ring (test)")
    assert [panel.title for panel in picture.panels] == ["ring (test)", "mdn:5", "ud", "nd"]
    assert {(panel.y.low, panel.y.high) for panel in picture.panels} == {(-1.0, 11.0)}
    shown = [only(panel.marks, Points) for panel in picture.panels]
    assert [mark.x.tolist() for mark in shown] == [[0.0, 1.0], [0.0], [1.0], [0.0, 1.0]]
    assert picture.notes == [
        "mdn:5: 1 of 2 samples are outside the frame.",
        "ud: 1 of 2 samples are outside the frame.",
    ]


# --- lines ---------------------------------------------------------------------------------------


def test_lines_go_from_left_to_right_in_the_panel_of_their_data() -> None:
    points = [
        Point("airfoil", "mdn", 100.0, known(0.4, 0.3, 0.5)),
        Point("airfoil", "ud", 100.0, known(0.6)),
        Point("yacht", "ud", 10.0, known(0.1)),
        Point("airfoil", "mdn", 10.0, known(0.2, 0.1, 0.3)),
        Point("airfoil", "mdn", 1000.0, UNDEFINED),
    ]
    first, second = lines.panels_of(points, "rows", Axis(label="R²"))
    assert (first.title, second.title) == ("airfoil", "yacht")
    mdn, ud = first.marks
    assert isinstance(mdn, LineMark) and isinstance(ud, LineMark)
    assert (mdn.label, mdn.x.tolist(), mdn.y.tolist()) == ("mdn", [10.0, 100.0], [0.2, 0.4])
    assert (mdn.low is not None) and mdn.low.tolist() == [0.1, 0.3]
    np.testing.assert_equal(ud.high, [NAN])
    assert (
        [mark.colour for mark in second.marks if isinstance(mark, LineMark)] == [ud.colour] == [1]
    )
    assert first.x == second.x


def test_lines_without_points_or_with_two_in_one_place_are_refused(says: Says) -> None:
    for points, parts in [
        ([Point("a", "ud", 1.0, UNDEFINED)], ["'R²'", "there is nothing to draw: no report"]),
        (
            [Point("a", "ud", 1.0, known(1.0)), Point("a", "ud", 1.0, known(2.0))],
            ["'a'", "'ud'", "Pass one of them"],
        ),
    ]:
        with case(points, parts):
            with pytest.raises(UsageError) as caught:
                lines.panels_of(points, "rows", Axis(label="R²"))
            says(caught, *parts)


def test_a_logarithm_of_a_metric_is_refused_where_it_is_not_above_0() -> None:
    points = [Point("a", "ud", 1.0, known(0.5)), Point("a", "ud", 2.0, known(-3.0))]
    with pytest.raises(UsageError, match=r"'R²' is -3. Use --scale signed-log"):
        lines.panels_of(points, "rows", Axis(label="R²", scale="log"))
    [panel] = lines.panels_of(points, "rows", Axis(label="R²", scale="signed-log"))
    assert (panel.y.linear_below, panel.y.low, panel.y.high) == (0.1, None, None)


def test_the_axis_of_settings_is_logarithmic_where_they_are_wide_apart() -> None:
    for values, scale, ticks in [
        ([10.0, 100.0], "log", (10.0, 100.0)),
        ([2.0, 4.0, 8.0], "linear", (2.0, 4.0, 8.0)),
        ([0.0, 100.0], "linear", (0.0, 100.0)),
        ([float(value) for value in range(1, 12)], "log", ()),
    ]:
        with case(values, scale, ticks):
            axis = lines.x_axis_of("head.layers", np.array(values))
            assert (axis.label, axis.scale, axis.ticks) == ("head layers", scale, ticks)
            assert axis.low is not None and axis.high is not None
            assert axis.low < values[0] < values[-1] < axis.high


def test_a_setting_of_the_configuration_or_the_decoding_is_a_place(store: Store) -> None:
    fakes = [Fake(settings={"rows": rows, "lr": 0.1}, seed=rows) for rows in (10, 30)]
    places = placed("rows", evaluations(store, *fakes), store.resolve)
    assert [place.x for place in places] == [10.0, 30.0]
    assert places[0].settings == places[1].settings  # one line: neither rows nor seed
    assert {place.panel for place in places} == {"arithmetic-p1000"}
    one = evaluations(store, Fake(settings={"draws": "x"}))[0]
    drawing = replace(one, report=_with(one, decoding={"draws": 64, "point": "mean"}))
    [place] = placed("draws", [drawing], store.resolve)
    assert (place.x, place.settings["decoding.point"]) == (64.0, "mean")


def _with(evaluation: Evaluation, **changes: Any) -> Any:
    return msgspec.structs.replace(evaluation.report, **changes)


def test_settings_of_heads_are_places_and_no_part_of_the_line(store: Store) -> None:
    heads = ("decoder:nd,layers=3", "decoder:nd", "decoder:nd,base=2,layers=3")
    of_tables = []
    for one, head in zip(evaluations(store, *map(Fake, heads)), heads, strict=True):
        left = {key: value for key, value in one.report.configuration.items() if key != "head"}
        of_tables.append(replace(one, report=_with(one, scheme=head, configuration=left)))
    places = placed("head.layers", of_tables, store.resolve)
    assert [(place.x, place.scheme) for place in places] == [
        (3.0, "decoder:nd"),
        (1.0, "decoder:nd"),
        (3.0, "decoder:nd,base=2"),
    ]
    texts = evaluations(store, *[Fake(settings={"head": f"mdn:{k}"}, seed=k) for k in (2, 7)])
    places = placed("head.components", texts, store.resolve)
    assert [(one.x, one.scheme, one.settings["head"]) for one in places] == [
        (2.0, "p1000", "mdn"),
        (7.0, "p1000", "mdn"),
    ]


def test_settings_of_embedders_are_places_too(store: Store) -> None:
    specs = ("numgpt,sigma=0.1", "numgpt", "numgpt,dimensions=32,sigma=5")
    found = evaluations(
        store, *[Fake(settings={"embedder": one}, seed=k) for k, one in enumerate(specs)]
    )
    places = placed("embedder.sigma", found, store.resolve)
    assert [(one.x, one.settings["embedder"]) for one in places] == [
        (0.1, "numgpt"),
        (0.5, "numgpt"),
        (5.0, "numgpt,dimensions=32"),
    ]
    with pytest.raises(UsageError) as caught:
        placed("embedder.sigma", evaluations(store, Fake(seed=9)), store.resolve)
    assert str(caught.value).startswith(
        "--x embedder.sigma only applies to text models, but report-0@"
    )


def test_models_of_labels_have_no_head_to_stand_by(store: Store, says: Says) -> None:
    [one] = evaluations(store, Fake())
    labelled = _with(
        one,
        labels=Labels(classes=["no", "yes"], unseen=0, unlabelled=0, confusion=[], complete=True),
    )
    with pytest.raises(UsageError) as caught:
        placed("head.layers", [replace(one, report=labelled)], store.resolve)
    says(caught, "--x head.layers", one.ref, "another --x")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("step", "Did you mean 'steps'? Known: steps"),
        ("head", "head is 'token' in report-0@"),
        (
            "data.operands",
            "--x data.operands needs data made by `numtok gen`, which arithmetic-p1000@",
        ),
    ],
)
def test_what_is_no_place_is_refused(store: Store, x: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        placed(x, evaluations(store, Fake()), store.resolve)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# --- data ----------------------------------------------------------------------------------------


def published(
    store: Store, kind: str, name: str, settings: dict[str, Any], parents: list[Parent]
) -> Artifact:
    with store.draft(kind, name, settings, parents, ["numtok", "x"]) as draft:
        assert not isinstance(draft, Artifact)
        files.write_atomic(draft.path / "content", f"{name} {settings}".encode())
        return draft.publish({}, {})


def test_settings_of_the_task_are_places_and_what_else_it_had_a_panel(store: Store) -> None:
    of: list[Evaluation] = []
    for function, dimension in ((1, 2), (1, 4), (8, 2)):
        task = {"name": "bbob", "revision": 1, "function": function, "dimension": dimension}
        settings = {"stage": "gen", "task": task, "samples": 100}
        data = published(store, TABLE, f"bbob-{function}-{dimension}", settings, [])
        of += evaluations(store, Fake(data=data.ref))
    places = placed("data.dimension", of, store.resolve)
    assert [(place.x, place.panel) for place in places] == [
        (2.0, "bbob, function=1"),
        (4.0, "bbob, function=1"),
        (2.0, "bbob, function=8"),
    ]


def test_data_encoded_in_two_ways_are_one_data_set(store: Store) -> None:
    data = published(store, DATA, "sums", {}, [])
    other = published(store, DATA, "products", {}, [])
    of: list[Evaluation] = []
    for index, (scheme, parent) in enumerate((("p10", data), ("xval", data), ("p10", other))):
        settings = {"scheme": scheme}
        encoded = published(store, ENCODED, f"enc-{index}", settings, [parent.as_parent()])
        of += evaluations(store, Fake(scheme, data=encoded.ref))
    first, second, third = sources_of(of, store.resolve)
    assert (first.key, first.name) == (second.key, second.name)
    assert [source.name for source in (first, second, third)] == ["sums", "sums", "products"]
    # Two data sets with the same name get distinct names, whatever their encoding.
    larger = published(store, DATA, "sums", {"samples": 10}, [])
    encoded = published(store, ENCODED, "enc-3", {"scheme": "p10"}, [larger.as_parent()])
    of += evaluations(store, Fake(seed=3, data=encoded.ref))
    names = [one.name for one in sources_of(of, store.resolve)]
    assert names[0] == names[1] != names[3] and names[2] == "products"


# --- bars and measures ---------------------------------------------------------------------------


def test_bars_are_sorted_by_how_far_the_first_way_is_ahead() -> None:
    pairs = [
        Pair("a", known(0.5, 0.4, 0.6), known(0.6, 0.5, 0.7)),
        Pair("b", known(0.9, 0.8, 1.0), known(0.2, 0.1, 0.3)),
        Pair("c", UNDEFINED, known(0.2)),
        Pair("d", known(0.3), known(0.3)),
    ]
    panel = bars.panel_of(pairs, ["mdn", "ud"], METRICS.build("r2"))
    assert panel.y.names == ("b", "d", "a")
    first, second = panel.marks
    assert isinstance(first, BarMarks) and isinstance(second, BarMarks)
    assert first.lengths.tolist() == [0.9, 0.3, 0.5]
    assert second.lengths.tolist() == [0.2, 0.3, 0.6]
    np.testing.assert_equal(first.low, [0.8, NAN, 0.4])
    assert (first.places < second.places).all()
    lower = bars.panel_of(pairs, ["mdn", "ud"], METRICS.build("mse"))
    assert lower.y.names == ("a", "d", "b")
    with pytest.raises(UsageError, match="there is nothing to draw: 'R², higher is better' is"):
        bars.panel_of(pairs[2:3], ["x", "y"], METRICS.build("r2"))


@pytest.mark.parametrize(
    ("fakes", "parts"),
    [
        ([Fake("p10"), Fake("xval"), Fake("b1999")], ["1999", "xval", "figure lines for more"]),
        ([Fake("p10"), Fake("xval")], ["'xval'", "p10", "needs both experiments on each"]),
    ],
)
def test_bars_need_two_ways_on_each_data_set(
    store: Store, fakes: list[Fake], parts: list[str], says: Says
) -> None:
    with pytest.raises(UsageError) as caught:
        picture_of(bars.BarsFigure(), refs_of(store, *fakes), store)
    says(caught, *parts)


def test_one_seed_has_the_interval_of_its_report_and_several_have_that_of_their_mean(
    store: Store,
) -> None:
    metric = METRICS.build("mae")
    group = evaluations(store, Fake(seed=0), Fake(seed=1), Fake(seed=2))
    figures = [one.report.metrics["mae"] for one in group]
    alone = measured(group[:1], metric, "seeds")
    first = figures[0]
    assert (alone.value, alone.low, alone.high) == (first.value, first.low, first.high)
    together = measured(group, metric, "seeds")
    assert together.value == pytest.approx(np.mean([one.value for one in figures]))
    assert [alone.interval, together.interval] == ["bootstrap", "bootstrap"]
    assert together.low is not None and together.high is not None and together.value is not None
    assert together.low < together.value < together.high
    assert notes_of([alone, together, UNDEFINED]) == [
        "Error bars: 95% interval (bootstrap over test rows and seeds).",
        "1 of 3 values are undefined and left out.",
    ]


def test_a_metric_that_a_report_lacks_comes_from_its_predictions(store: Store) -> None:
    [one] = evaluations(store, Fake())
    assert "rmse" not in one.report.metrics
    found = measured([one], METRICS.build("rmse"), "seeds")
    assert found.value == pytest.approx((one.report.metrics["mse"].value or 0) ** 0.5)


def test_folds_have_their_mean_and_deviation(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_measures, "FOLD", "operands")  # the fakes have that group
    [one] = evaluations(store, Fake())
    values = [figures["mse"].value for figures in one.report.groups["operands"].values()]
    found = measured([one], METRICS.build("mse"), "folds")
    deviation = float(np.std(np.array(values, float), ddof=1))
    assert found.value == pytest.approx(np.mean(np.array(values, float)))
    assert found.low == pytest.approx((found.value or 0) - deviation)
    assert found.interval == "folds"


def test_folds_are_refused_where_there_are_none(store: Store) -> None:
    with pytest.raises(UsageError, match="--over folds needs reports of several folds, but repo"):
        measured(evaluations(store, Fake()), METRICS.build("mse"), "folds")


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        ("nll", "negative log-likelihood (nats), lower is better"),
        ("coverage", "coverage"),
        ("relative-error-over,limit=0.2", "relative error over, limit=0.2, lower is better"),
    ],
)
def test_metrics_are_named_in_words_with_what_is_better(spec: str, label: str) -> None:
    assert metric_label(METRICS.build(spec)) == label


def test_labels_name_only_what_sets_apart() -> None:
    settings = [{"lr": "1", "seed": "0"}, {"lr": "2", "seed": "0"}, {"lr": "1", "seed": "0"}]
    assert labels_of(["ud", "ud", "ud"], settings) == ["ud, lr=1", "ud, lr=2", "ud, lr=1"]


# --- calibration, learning and costs -------------------------------------------------------------


def test_calibration_has_a_line_and_a_histogram_for_each_report(store: Store) -> None:
    refs = refs_of(store, Fake("p10", later=True), Fake("xval", later=True))
    picture = picture_of(calibration.CalibrationFigure(), refs, store)
    assert [panel.title for panel in picture.panels] == ["all", "p10", "xval"]
    together, *alone = picture.panels
    assert [mark.label for mark in together.marks] == ["p10", "xval"]
    assert [only(panel.marks, ColumnMarks).colour for panel in alone] == [0, 1]
    # A report of an earlier version has no PIT; its quantiles give two levels.
    former = make(store, Fake(), "former").ref
    [panel] = picture_of(calibration.CalibrationFigure(), [former], store).panels
    assert only(panel.marks, LineMark).x.tolist() == [0.5, 0.9]


def test_what_has_no_distribution_has_no_calibration(store: Store, says: Says) -> None:
    report = make(store, Fake(), "one")
    path = report.path / PREDICTIONS_FILE
    table = pq.read_table(path)
    for level in QUANTILES:
        place = table.schema.get_field_index(quantile_column(level))
        nothing = pa.nulls(len(table), pa.float64())
        table = table.set_column(place, quantile_column(level), nothing)
    pq.write_table(table, path, write_page_checksum=True)
    forged(report)
    with pytest.raises(UsageError) as caught:
        picture_of(calibration.CalibrationFigure(), [report.ref], store)
    says(caught, report.ref, "no predictive distribution", "--num-samples N")


def test_costs_have_a_panel_for_each_data_set_and_the_seeds_in_one_dot(store: Store) -> None:
    other = Fake(data="other@0123456789abcdef")
    refs = refs_of(store, Fake(seed=0), Fake(seed=1), Fake("xval"), other)
    figure = costs.CostFigure(metric="mae", cost="train_seconds")
    picture = picture_of(figure, refs, store)
    dots = [only(panel.marks, LineMark) for panel in picture.panels]
    titles = [panel.title for panel in picture.panels]
    assert titles == ["arithmetic-p1000", "arithmetic-xval", "other"]
    assert [one.label for one in dots] == ["p1000", "xval", "p1000"]
    assert [one.x.tolist() for one in dots] == [[100.5], [100.0], [100.0]]  # the mean of two seeds
    assert any("bootstrap" in note for note in picture.notes)
