"""The values in figures of probes, and of errors by the size of the true value."""

import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from numtok.analysis.figures import embedding, error, pca, vary
from numtok.analysis.figures.error import Error
from numtok.analysis.picture import Band, Levels, LineMark, Mark, Panel, Points
from numtok.analysis.probing.probe_records import (
    MAY_LACK,
    PROBE,
    Along,
    Embedding,
    LoadedProbe,
    Probe,
    Saturation,
    TokenComponents,
    Top,
    points_schema,
    publish,
    read,
)
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import DataError, StoreError, UsageError
from numtok.metrics.base import Predictions
from numtok.reports import Configuration, Figure
from numtok.stages.figure import picture_of
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.fakereports import Fake, make
from tests.messages import Says
from tests.shell import Shell

NONE = Figure(None, None, None, 0)
SVG = "{http://www.w3.org/2000/svg}"


def along(**options: Any) -> Along:
    plain: dict[str, Any] = {
        "data": "d@0",
        "split": "ood",
        "target": "dt",
        "row": None,
        "number": None,
        "low": 0.0,
        "high": 1.0,
        "rows": 3,
        "invalid": NONE,
        "distinct": 2,
        "distinct_rounded": 2,
        "digits": 3,
        "jump": None,
        "slope": NONE,
        "saturation": Saturation(None, None, 0.0, 0.0),
        "repeated": None,
        "seen": 2,
        "errors": {},
        "top": [],
        "top_of": "",
    }
    return Along(**plain | options)


def probed(
    found: Along | Embedding | TokenComponents,
    columns: dict[str, Any],
    *,
    scheme: str = "p1000",
    seen: list[float] | None = None,
) -> LoadedProbe:
    form = found.__struct_config__.tag
    assert isinstance(form, str)
    if isinstance(found, Along) and found.number is not None:
        form = "vary"
    usual = SCHEMES[scheme].defaults
    own = {"embedder": usual.embedder, "head": usual.head}
    configuration: Configuration = {"scheme": scheme, **own, "objective": "mlm:targets"}
    made = Probe(
        model="m@0",
        name="m",
        scheme=scheme,
        configuration=configuration,
        seed=0,
        form=form,
        found=found,
        notes=[],
    )
    values = None if seen is None else pa.table({"value": pa.array(seen, pa.float64())})
    return LoadedProbe("probe@0", made, whole(points_schema(found), columns), values)


def whole(schema: pa.Schema, columns: dict[str, Any]) -> pa.Table:
    """Return a table with the columns of a probe, filling those that a test does not need."""
    rows = len(next(iter(columns.values())))
    others = {
        field.name: [None if field.name in MAY_LACK else "0" if field.type == pa.string() else 0.0]
        for field in schema
    }
    return pa.table(
        {name: columns.get(name, others[name] * rows) for name in schema.names}, schema=schema
    )


def keep(store: Store, of: LoadedProbe, name: str) -> Artifact:
    with store.draft(PROBE, name, {"of": repr(of)}, [], ["numtok", "probe"]) as draft:
        assert not isinstance(draft, Artifact)
        return publish(draft, of.probe, of.points, of.seen, {"seconds": 0.0})


def line(y: list[float | None], **more: Any) -> dict[str, Any]:
    nothing = pa.nulls(len(y), pa.float64())
    return {"x": [0.0, 0.5, 1.0], "prediction": y, "q05": nothing, "q95": nothing} | more


def of_kind(panel: Panel, kind: type[Mark]) -> list[Any]:
    return [mark for mark in panel.marks if isinstance(mark, kind)]


TOP = [Top("0.2", 0.2, 0.5), Top("0.3", 0.3, 0.4)]
LOGS = {"log_p_0": [-0.5, -1.0, -50.0], "log_p_1": [-1.0, -0.5, -2.0]}
SAMPLES = probed(along(top=TOP), line([0.2, None, 0.3], **LOGS), seen=[0.2, 0.3])
SWEPT = probed(
    along(row="7", number=2, top=TOP), line([0.2, 0.2, 0.3], **LOGS), seen=[0.2, 0.3, 0.4]
)
SMOOTH = probed(
    along(row="7", number=2),
    line([0.2, 0.25, 0.3], q05=[0.1, 0.2, 0.2], q95=[0.4, 0.4, 0.4]),
    scheme="xval",
)


def test_predictions_over_samples_are_dots_with_the_seen_values_dashed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    picture = picture_of(vary.SweepFigure(), [keep(store, SAMPLES, "samples").ref], store)
    panel, tops = picture.panels
    assert panel.diagonal == "prediction = true value"
    assert (panel.x.label, panel.y.label) == ("true value of dt", "prediction of dt")
    [dots] = of_kind(panel, Points)
    assert (dots.x.tolist(), dots.y.tolist()) == ([0.0, 1.0], [0.2, 0.3])
    [levels] = of_kind(panel, Levels)
    assert (levels.of, levels.values.tolist()) == ("y", [0.2, 0.3])
    [across] = of_kind(tops, Levels)
    assert across.of == "x"
    assert [mark.label for mark in of_kind(tops, Points)] == ["P(0.2)", "P(0.3)"]
    assert list(picture.notes) == [
        "p1000: 1 of 3 predictions are invalid.",
        "Log-probabilities below -12 nats are not drawn.",
    ]


def test_models_along_one_number_share_a_panel(tmp_path: Path) -> None:
    store = Store(tmp_path)
    refs = [keep(store, SWEPT, "swept").ref, keep(store, SMOOTH, "smooth").ref]
    picture = picture_of(vary.SweepFigure(), refs, store)
    panel, tops = picture.panels
    assert (panel.title, tops.title) == ("dt, ood, row 7", "dt, ood, row 7: p1000")
    assert panel.diagonal is None
    assert [(mark.label, mark.colour) for mark in of_kind(panel, LineMark)] == [
        ("p1000", 0),
        ("xval", 1),
    ]
    [band] = of_kind(panel, Band)
    assert (band.label, band.low.tolist()) == ("xval", [0.1, 0.2, 0.2])
    [levels] = of_kind(panel, Levels)
    assert levels.values.tolist() == [0.2, 0.3, 0.4]
    first, _ = of_kind(tops, LineMark)
    np.testing.assert_array_equal(first.y, [-0.5, -1.0, np.nan])


def test_many_seen_values_are_told_and_not_drawn() -> None:
    many = probed(along(), line([0.2, 0.2, 0.3]), seen=np.linspace(0, 1, 50).tolist())
    found = many.probe.found
    assert isinstance(found, Along)
    panel, notes = vary.predictions("dt, ood", [("p1000", many, found)], {"p1000": 0})
    assert not of_kind(panel, Levels)
    assert notes == ["dt, ood: the 50 values in the train split are not drawn."]


def bent(formula: str | None) -> tuple[LoadedProbe, Embedding]:
    found = Embedding(
        direction="the vector of [NUM]", positions=4, low=-1.0, high=1.0, formula=formula, half=None
    )
    x = [-1.0, 0.0, 1.0]
    columns = {"x": x, "mean": x, "low": [-2.0, -1.0, 0.0], "high": [0.0, 1.0, 2.0]}
    curve = x if formula else pa.nulls(3, pa.float64())
    return probed(found, columns | {"formula": curve}, scheme="xval"), found


def test_an_embedding_has_a_band_over_positions_and_its_formula() -> None:
    picture = embedding.picture_of([("xval", *bent("x / r")), ("other", *bent(None))])
    [panel] = picture.panels
    assert [(mark.label, mark.colour) for mark in of_kind(panel, LineMark)] == [
        ("xval", 0),
        ("formula", None),
        ("other", 1),
    ]
    assert [mark.high.tolist() for mark in of_kind(panel, Band)] == [[0.0, 1.0, 2.0]] * 2
    assert picture.notes[1] == "Formula: x / r."


def test_components_are_shown_beside_each_other_and_over_the_value() -> None:
    values = np.arange(8.0)
    found = TokenComponents(
        tokens=8,
        explained=[0.7, 0.2, 0.1],
        by_value=[1.0, 0.0, 0.0],
        by_size=[1.0, 0.0, 0.0],
        neighbours=0.1,
    )
    columns = {"value": values, "pc1": values, "pc2": -values, "pc3": values * 0}
    plane, over = pca.panels_of("p10", probed(found, columns), found)
    assert [mark.label for mark in plane.marks] == ["0 to 1", "2 to 3", "4 to 5", "6 to 7"]
    first = of_kind(plane, Points)[0]
    assert (first.x.tolist(), first.y.tolist()) == ([0.0, 1.0], [0.0, -1.0])
    assert (plane.x.label, plane.y.label) == ("component 1 (70%)", "component 2 (20%)")
    assert [mark.y.tolist() for mark in of_kind(over, Points)][1] == (-values).tolist()


def test_a_probe_of_another_form_is_refused_with_the_figure_that_draws_it(
    tmp_path: Path, says: Says
) -> None:
    store = Store(tmp_path)
    ref = keep(store, SWEPT, "swept").ref
    with pytest.raises(UsageError) as caught:
        picture_of(pca.Pca(), [ref], store)
    says(caught, "figure pca", ref, "figure vary")


def test_a_damaged_probe_says_so(tmp_path: Path) -> None:
    artifact = keep(Store(tmp_path), SWEPT, "swept")
    (artifact.path / "points.parquet").write_bytes(b"none")
    with pytest.raises(StoreError, match=r"points\.parquet cannot be read"):
        read(artifact)


# --- errors by the size of the true value --------------------------------------------------------


def test_errors_are_medians_with_quartiles_in_bins_of_as_many() -> None:
    random = np.random.default_rng(0)
    truth = 10.0 ** random.uniform(-2, 4, 2000)
    answers = Predictions.of(-truth, -truth * 1.25)
    panel, notes = error.panel_of("sums", [("p10", answers)], {"p10": 0}, relative=True)
    [found] = of_kind(panel, LineMark)
    assert len(found.x) == 20
    np.testing.assert_allclose(found.y, 0.25)
    np.testing.assert_allclose([found.low, found.high], 0.25)
    assert (np.diff(np.log10(found.x)) > 0).all()
    assert (panel.x.scale, panel.y.scale) == ("log", "log")
    assert panel.y.label == "|error| / |true value|"
    absolute, _ = error.panel_of("sums", [("p10", answers)], {"p10": 0}, relative=False)
    [found] = of_kind(absolute, LineMark)
    np.testing.assert_allclose(found.y, 0.25 * found.x)
    assert notes == []


def test_what_has_no_place_is_told(says: Says) -> None:
    truth = np.array([0.0, 1.0, 2.0, 4.0])
    answers = Predictions.of(truth, truth)._replace(valid=np.array([True, False, True, True]))
    panel, notes = error.panel_of("sums", [("p10", answers)], {"p10": 0}, relative=False)
    [found] = of_kind(panel, LineMark)
    assert (found.x.tolist(), found.y.tolist()) == ([3.0], [0.0])
    assert panel.y.scale == "signed-log"  # includes 0, the error of an exact model
    assert notes == [
        "p10: 1 invalid predictions are left out.",
        "p10: 1 true values of 0 are left out.",
    ]
    with pytest.raises(DataError) as caught:
        error.panel_of("sums", [("p10", answers.take(truth == 0))], {"p10": 0}, relative=False)
    says(caught, "sums, p10")


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.integration
def test_the_command_draws_them_all_and_the_same_bytes_again(
    numtok: Shell, tmp_path: Path, says: Says
) -> None:
    pytest.importorskip("vl_convert")
    store = Store(tmp_path / "artifacts")
    columns = {"value": [1.0, 2.0, 3.0], "pc1": [0.0, 1.0, 2.0], "pc2": [0.0] * 3, "pc3": [0.0] * 3}
    found = TokenComponents(
        tokens=3,
        explained=[1.0, 0.0, 0.0],
        by_value=[1.0, None, None],
        by_size=[1.0, None, None],
        neighbours=0.5,
    )
    keep(store, SAMPLES, "samples")
    keep(store, SWEPT, "swept")
    keep(store, bent("x / r")[0], "bent")
    keep(store, probed(found, columns), "components")
    make(store, Fake("p10"), "report")
    drawn = {
        "vary samples swept": {"in the train split", "P(0.2)", "prediction of dt"},
        "embedding bent": {"formula"},
        "pca components": {"component 1 (100%)"},
        "error report --relative --target answer": {"|true value|"},
    }
    for words, expected in drawn.items():
        ran = numtok("figure", *shlex.split(words), "--out", "a.svg")
        assert (ran.code, ran.out) == (0, "a.svg\n"), ran.err
        root = ElementTree.parse(tmp_path / "a.svg")
        texts = {"".join(one.itertext()).strip() for one in root.iter(f"{SVG}text")}
        assert expected <= texts
    before = (tmp_path / "a.svg").read_bytes()
    numtok("figure", *shlex.split(words), "--out", "a.svg")
    assert (tmp_path / "a.svg").read_bytes() == before
    ran = numtok("figure", "vary", "swept", "--seen", "--out", "a.svg")
    says(ran.err, "numtok: unknown option --seen", "`numtok figure vary --help`")
    assert numtok("figure", "error", "report", "--target", "no", "--out", "a.svg").code == 2


def test_errors_on_different_rows_have_a_panel_each(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    sums = "sums@0123456789abcdef"
    other = Fake("p1000", split="validation", count=300, shift=1000, data=sums)
    fakes = {"a": Fake("p10", data=sums), "b": other, "c": Fake("xval", data=sums)}
    reports = [make(store, fake, name) for name, fake in fakes.items()]
    picture = Error().picture(reports, store.resolve)
    assert [panel.title for panel in picture.panels] == ["sums, test", "sums, validation"]
    assert [len(panel.marks) for panel in picture.panels] == [2, 1]
