"""Confidence of models in a text along one of its numbers: compared with texts read one by one, the
variation of made-up curves, and the printed and drawn results."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from numtok.analysis.figures import confidence as figure
from numtok.analysis.picture import LineMark
from numtok.analysis.probing.continuity import variation
from numtok.analysis.probing.probe_records import Confidence, read
from numtok.analysis.probing.probes.base import PROBES, ProbeResult
from numtok.analysis.probing.probes.confidence import ConfidenceProbe
from numtok.analysis.probing.swept_row import geometric
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
from numtok.encoding.schemes.base import splits_numbers
from numtok.errors import NumtokError, UsageError
from numtok.models.likelihood import log_likelihoods
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.training_batch import masked_batch, row_end_batch
from numtok.seeds import generator
from numtok.stages.figure import picture_of
from numtok.store.artifact import Artifact
from numtok.training.model_files import LoadedModel
from tests import fakemodels
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_eval import World

one_thread = fakemodels.one_thread
CLASSES = ("correct", "incorrect")
TEXT = "How heavy are 2 eggs? 80 g"


def loaded(scheme: str, objective: str, **options: Any) -> LoadedModel:
    model = fakemodels.model(scheme, objective, **options)
    if (options.get("head") or "").startswith("riemann"):
        model.scaling = FittedNormalizer(NORMALIZERS.build("unit"), {"low": -50.0, "width": 200.0})
    artifact = Artifact(Path(), "model", "fake", "0" * 16)
    trained = fakemodels.trained(calibration={"deviation": 0.1}, calibrated_on="train")
    return LoadedModel(
        artifact=artifact, model=model, codec=fakemodels.codec(scheme), trained=trained
    )


def asked(one: LoadedModel, text: str = TEXT, **options: Any) -> ProbeResult:
    plain: dict[str, Any] = {"from_": 60.0, "to": 110.0, "points": 7}
    return ConfidenceProbe(text=text, **plain | options).run(fakemodels.probe_inputs(one))


def summary(probed: ProbeResult) -> Confidence:
    assert isinstance(probed.found, Confidence)
    return probed.found


def columns(found: ProbeResult) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = (np.array(found.points.column(name).to_pylist()) for name in ("x", "confidence"))
    return x, y


# --- measurements --------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.parametrize(
    ("scheme", "objective"), [("digits", "classify,causal=yes"), ("numgpt", "classify")]
)
def test_of_labels_it_is_the_probability_of_one(scheme: str, objective: str) -> None:
    one = loaded(scheme, objective, classes=CLASSES, spread=0.1)
    x, y = columns(asked(one))
    other = asked(one, label="incorrect")
    assert len(x) == 7 and len(np.unique(y)) == 7
    np.testing.assert_allclose(y + columns(other)[1], 1.0, atol=1e-6)
    assert (summary(other).label, summary(other).measures) == (
        "incorrect",
        "probability of label incorrect",
    )
    for value, found in zip(x.tolist(), y.tolist(), strict=True):
        alone = fakemodels.batch(scheme, [TEXT.replace("80", f"{value:.0f}")])
        with torch.no_grad():
            logs = one.model.class_log_probabilities(
                row_end_batch(alone, one.model.objective.causal)
            )
        assert found == pytest.approx(float(logs[0, 0].exp()), abs=1e-5)


LIKELIHOODS = [
    ("digits", None),
    ("p1000", None),
    ("numgpt", None),
    ("numgpt", "mdn:3"),
    ("dice", None),
    ("xval", "mdn:3"),
    ("xval", "riemann:16"),
]


def per_number(one: LoadedModel, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log factor to the density of the number: log 10^-e for a mantissa, or the slope of
    the scaling for a number scaled to the range of the train split."""
    splits = splits_numbers(one.codec.scheme)
    by_mantissa = -np.floor(np.log10(x)) * np.log(10) if splits else 0 * x
    scaled = one.model.value_head is not None and not splits
    return by_mantissa + one.model.scaling.log_slope(x) if scaled else by_mantissa


@pytest.mark.parametrize(("scheme", "head"), LIKELIHOODS)
@pytest.mark.parametrize("loss", ["ar", "ar:answer"])
def test_from_left_to_right_it_is_the_likelihood_of_the_text_but_for_a_constant(
    scheme: str, head: str | None, loss: str
) -> None:
    one = loaded(scheme, loss, head=head)
    x, y = columns(asked(one))
    whole = [
        log_likelihoods(
            one.model,
            OBJECTIVES.build("ar").example(
                fakemodels.batch(scheme, [TEXT.replace("80", f"{value:.0f}")]), generator(0)
            ),
        )[0]
        for value in x.tolist()
    ]
    expected = np.array(whole) + per_number(one, x)
    np.testing.assert_allclose(y - y[0], expected - expected[0], atol=1e-3)
    assert (y >= expected - 1e-3).all()  # given the words before the number


@pytest.mark.parametrize(("scheme", "head"), LIKELIHOODS)
def test_of_a_masked_model_it_is_the_likelihood_of_the_number(
    scheme: str, head: str | None
) -> None:
    one = loaded(scheme, "mlm", head=head)
    probed = asked(one, number=0, from_=1.0, to=9.0)
    x, y = columns(probed)
    expected = []
    for value in x.tolist():
        alone = fakemodels.batch(scheme, [TEXT.replace("2", f"{value:.0f}")])
        example = masked_batch(alone, alone.number_tokens(np.array([True, False])))
        expected.append(log_likelihoods(one.model, example)[0])
    np.testing.assert_allclose(y, np.array(expected) + per_number(one, x), atol=1e-3)
    what = "probability" if one.model.value_head is None else "density"
    assert summary(probed).measures == f"log-{what} of the number, masked (nats)"
    lengths = ["The number of masks reveals the length of each answer to the model."]
    assert [note for note in probed.notes if "masks" in note] == lengths * (scheme == "digits")


def test_the_summary_follows_from_the_points() -> None:
    one = loaded("digits", "classify", classes=CLASSES, spread=0.1)
    probed = asked(one, from_=None, to=None, points=40)
    found, notes = summary(probed), probed.notes
    x, y = columns(probed)
    assert (found.low, found.high, found.number) == (1.0, 8000.0, 1)
    assert (x == np.round(x)).all() and len(x) == found.values < 40
    assert notes == [f"x is rounded to 0 decimals: {len(x)} distinct values."]
    assert (found.least, found.most, found.at) == (y.min(), y.max(), x[np.argmax(y)])
    steps = sum(abs(b - a) for a, b in pairwise(y.tolist()))
    assert found.variation == pytest.approx(steps / (y.max() - y.min()))


X = np.linspace(0, 1, 101)


def test_variation_counts_rises_and_falls() -> None:
    for curve, expected in [
        (X**3, 1.0),
        (-np.exp(X), 1.0),
        (np.exp(-((X - 0.5) ** 2) / 0.01), 2.0),
        (np.exp(-((X - 1.0) ** 2) / 0.01), 1.0),
        (np.abs((10 * X) % 2 - 1), 10.0),
        (np.sin(2 * np.pi * 3 * X), 6.0),
    ]:
        with case(curve, expected):
            assert variation(curve) == pytest.approx(expected, rel=0.02)
            assert variation(7 - 3 * curve) == pytest.approx(variation(curve))


def test_a_flat_curve_has_no_variation() -> None:
    assert variation(np.ones(5)) is None


def test_values_are_spaced_by_their_logarithms_above_0_alone() -> None:
    assert geometric(0.5, 50.0, 3, 1).tolist() == [0.5, 5.0, 50.0]
    assert geometric(0.0, 50.0, 3, 1).tolist() == [0.0, 25.0, 50.0]
    assert geometric(1.0, 3.0, 50, 0).tolist() == [1.0, 2.0, 3.0]


def test_a_number_with_decimals_is_replaced_by_such_numbers() -> None:
    one = loaded("digits", "classify", classes=CLASSES, spread=0.1)
    x, _ = columns(asked(one, "it is 0.5 m", from_=None, to=None, points=9))
    assert (x[0], x[-1]) == (0.1, 50.0)
    x, _ = columns(asked(one, "it is 5 m", from_=0.25, to=4.0, points=5))
    assert x.tolist() == [0.25, 0.5, 1.0, 2.0, 4.0]


# --- errors --------------------------------------------------------------------------------------


def test_what_cannot_be_asked_is_refused(says: Says) -> None:
    one = loaded("digits", "classify", classes=CLASSES)
    cases: list[tuple[str, dict[str, Any], list[str]]] = [
        ("no", {}, ["no has no number", "Pass a text with a number"]),
        (TEXT, {"number": 2}, ["--number must be 0 to 1 (got 2)", f"{TEXT} has 2 numbers"]),
        (TEXT, {"label": "corect"}, ["'corect'", "'correct'?", "correct, incorrect"]),
        ("it is -5", {"from_": None}, ["--from and --to are required", "is -5"]),
        (TEXT, {"from_": 200.0}, ["--from must be less than --to", "200 and 110"]),
        (TEXT, {"from_": 80.0, "to": 81.0}, ["--from 80 --to 81", "2 values", "at least 3"]),
    ]
    for text, options, parts in cases:
        with case(text, options), says.raises(UsageError, *parts):
            asked(one, text, **options)


def test_labels_are_for_models_of_labels_and_likelihoods_for_heads_with_a_density(
    says: Says,
) -> None:
    with says.raises(
        NumtokError, "--label 'correct'", "fake@0000000000000000", "only applies to label models"
    ):
        asked(loaded("digits", "ar"), label="correct")
    with says.raises(NumtokError, "scalar", "no likelihood of rows", "--head", "mdn:5"):
        asked(loaded("xval", "ar"), label=None)


def test_it_is_of_a_text_or_of_data(says: Says) -> None:
    for option, value in (("split", "ood"), ("row", "7")):
        with says.raises(UsageError, "--text", f"--{option}", repr(value)):
            PROBES.build("confidence", {"text": TEXT, option: value})
    data = Artifact(Path(), "encoded", "data", "0" * 16)
    with says.raises(UsageError, "needs encoded data", "--text"):
        ConfidenceProbe(text=None).check(data, None)
    with says.raises(UsageError, "--text", "encoded data", "'data@0000000000000000'"):
        ConfidenceProbe(text=TEXT).check(data, data)


# --- the command and the figure ------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("confidence"))
    rows = [
        {
            "id": f"{split}-{k}",
            "text": f"How heavy are {k % 5 + 2} eggs? {7 * k + 9} g",
            "label": CLASSES[k % 2],
            "split": split,
        }
        for split in ("train", "test")
        for k in range(8)
    ]
    made.write("eggs", rows)
    return made


@pytest.mark.integration
def test_a_text_or_a_row_is_asked_of_any_model_and_drawn(numtok: Shell, world: World) -> None:
    store = "--store", str(world.store.root)
    refs, found = [], []
    for scheme, objective in (("digits", "classify"), ("numgpt", "classify"), ("numgpt", "ar")):
        path = str(world.root / "eggs.jsonl")
        data = world.encoded(scheme, path, name=f"eggs-{scheme}")
        model = world.model(data, objective, steps=2)
        for words in (("--text", TEXT), (data.ref, "--row", "test-3")):
            ran = numtok(
                *store,
                "probe",
                "confidence",
                model.ref,
                *words,
                "--points",
                "30",
                "--device",
                "cpu",
            )
            assert ran.code == 0, ran.err
            assert ran.out.count("\n") == 1
            assert max(map(len, ran.err.splitlines())) <= 80
            assert "variation / range" in ran.err
            artifact = world.store.resolve(ran.out.strip())
            assert numtok(*store, *artifact.manifest.command[1:]).out == ran.out
            refs.append(artifact.ref)
            found.append(read(artifact).probe.found)
    assert all(isinstance(one, Confidence) for one in found)
    titles = [TEXT, "row 'test-3' of split 'test'"]
    assert [one.asked for one in found if isinstance(one, Confidence)] == titles * 3

    picture = picture_of(figure.ConfidenceFigure(), refs, world.store)
    assert [panel.title for panel in picture.panels] == titles * 2
    assert [len(panel.marks) for panel in picture.panels] == [2, 2, 1, 1]
    assert [panel.x.scale for panel in picture.panels] == ["log"] * 4
    (curve,) = picture.panels[2].marks
    assert isinstance(curve, LineMark) and curve.y.max() == 0.0
    assert sum("variation / range" in note for note in picture.notes) == 6
    pytest.importorskip("vl_convert")
    ran = numtok(*store, "figure", "confidence", *refs, "--out", "a.svg")
    assert (ran.code, ran.out) == (0, "a.svg\n"), ran.err
    ran = numtok(*store, "figure", "sweep", refs[0], "--out", "a.svg")
    assert ran.code == 2 and "figure confidence" in ran.err
