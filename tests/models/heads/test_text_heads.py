"""Heads that predict whole numbers at the number positions of a text."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from numtok.encoding.splits import learnt_values, read_split, splits
from numtok.encoding.stored_codec import read_codec
from numtok.errors import UsageError
from numtok.models.common_heads import HistogramReader, PointReader
from numtok.models.heads.fone import FoneHead
from numtok.stages import eval as evaluation
from numtok.stages import train as training
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.stages.gen import Config as GenConfig
from numtok.stages.gen import run as gen
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_files import read_model
from tests import fakeheads
from tests.messages import Says
from tests.shell import Shell
from tests.stages import test_train

pytestmark = pytest.mark.integration

EXACT = "fone,whole=3,decimals=1"
TINY = "nano,layers=1,width=32,heads=2"
HEADS = ("scalar", "pointwise,sigmoid=yes", "mdn:5", "riemann:256", "decoder:nd", "decoder:ud")
OF_THE_UNIT_INTERVAL = {"pointwise,sigmoid=yes", "riemann:256", "decoder:nd"}


one_thread = test_train.one_thread


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with sums and products, encoded by several schemes."""
    root = tmp_path_factory.mktemp("data") / "artifacts"
    store = Store(root)
    gen(GenConfig("arithmetic,operands=2", samples=400), store, lambda *_: None)
    for scheme in ("xval", "p1000", "numgpt", "dice"):
        encode(EncodeConfig(("arithmetic",), scheme=scheme), store, lambda *_: None)
    return root


@pytest.fixture
def store(data: Path, tmp_path: Path) -> Store:
    shutil.copytree(data, tmp_path / "artifacts")
    return Store(tmp_path / "artifacts")


def train(store: Store, head: str | None, scheme: str = "xval", **options: Any) -> Artifact:
    chosen: dict[str, Any] = {"preset": TINY, "batch": 64, "steps": 12, "head": head} | options
    config = training.Config(f"arithmetic-{scheme}", **chosen)
    return training.run(config, store, lambda update: None).artifact


def evaluate(store: Store, model: Artifact, scheme: str = "xval", **options: Any) -> Artifact:
    config = evaluation.Config(model.ref, f"arithmetic-{scheme}", **options)
    return evaluation.run(config, store, lambda *told: None).artifact


@pytest.mark.parametrize(
    ("head", "objective"),
    [
        *((head, "mlm:targets") for head in HEADS),
        *((head, "ar:answer") for head in ("scalar", "mdn:5", "decoder:ud")),
    ],
)
def test_every_head_trains_and_evaluates_at_the_numbers_of_a_text(
    store: Store, head: str, objective: str
) -> None:
    model = train(store, head, objective=objective)
    report = evaluate(store, model)
    found = json.loads((report.path / "report.json").read_bytes())
    assert found["configuration"]["head"] == head
    for metric in ("r2", "nll", "crps", "coverage", "pit-distance"):
        figure = found["metrics"][metric]
        assert figure["n"] == 40
        # A head of the train range assigns no density outside that range.
        assert figure["value"] is not None or metric == "nll", metric
    predictions = pq.read_table(report.path / "predictions.parquet")
    assert predictions.column("valid").to_pylist() == [True] * 40

    scaling = read_model(model, torch.device("cpu")).model.scaling
    if head in OF_THE_UNIT_INTERVAL:  # trained on the range of the encoded numbers
        encoded = store.resolve("arithmetic-xval")
        samples = read_split(encoded, "train")
        values = learnt_values(samples, read_codec(encoded))(np.arange(len(samples.numbers)))
        scaled = scaling.forward(values.astype(np.float64))
        assert (scaled.min(), scaled.max()) == pytest.approx((0, 1), abs=1e-12)
    else:  # trained on the encoded numbers as they are
        plain = np.array([-3.5, 0.0, 1e6])
        assert scaling.forward(plain).tolist() == plain.tolist()


@pytest.mark.parametrize(
    ("head", "normalize"),
    # Squared errors of thousands would leave no gradient for the token.
    [("scalar", "signed-log"), ("mdn:5", "none"), ("riemann:64", "none"), ("decoder:nd", "none")],
)
def test_heads_go_with_fourier_features(store: Store, head: str, normalize: str) -> None:
    config = EncodeConfig(
        ("arithmetic",), scheme="xval", normalize=normalize, name="arithmetic-raw"
    )
    encoded = encode(config, store, lambda *_: None).artifact
    assert encoded is not None
    assert np.abs(read_split(encoded, "train").numbers).max() > 1000
    options = {"embedder": "fourier", "preset": f"{TINY},positions=rotary", "learning_rate": 1e-2}
    model = train(store, head, "raw", steps=40, **options)
    lines = (model.path / "metrics.jsonl").read_text().splitlines()
    losses = [one["value_loss"] for one in map(json.loads, lines) if one["split"] == "train"]
    assert losses[-1] < losses[0]
    report = evaluate(store, model, "raw")
    found = json.loads((report.path / "report.json").read_bytes())
    assert found["configuration"]["embedder"] == "fourier"
    predictions = pq.read_table(report.path / "predictions.parquet")
    assert predictions.column("valid").to_pylist() == [True] * 40


@pytest.mark.parametrize("head", ["riemann:16", "decoder:nd,base=2,length=4"])
def test_what_a_bounded_head_gives_nothing_has_stated_tails(store: Store, head: str) -> None:
    """Numbers ten times as large as the training data have the density of the tails.

    Inside its range, a head's density is reduced by the mass of the tails.
    """
    larger = "arithmetic,operands=2,low=100,high=999,figures=3"
    gen(GenConfig(larger, samples=20, name="larger"), store, lambda *_: None)
    like = EncodeConfig(("larger",), like="arithmetic-xval", name="larger-xval")
    encode(like, store, lambda *_: None)
    model = train(store, head)
    learnt = read_split(store.resolve("arithmetic-xval"), "train").numbers
    mass = 1 / (len(learnt) + 1)
    width = learnt.max() - learnt.min()
    for encoded in ("arithmetic-xval", "larger-xval"):
        config = evaluation.Config(model.ref, encoded, split="train", device="cpu")
        report = evaluation.run(config, store, lambda *told: None).artifact
        for row in pq.read_table(report.path / "predictions.parquet").to_pylist():
            beyond = max(row["truth"] - learnt.max(), learnt.min() - row["truth"])
            if abs(beyond) < 1e-6 * width:
                continue  # the ends of the range are rounded to float32
            if beyond > 0:
                told = np.log(mass / 2 / width) - beyond / width
                assert row["log_density"] == -np.inf
            else:
                told = np.log1p(-mass) + row["log_density"]
            assert row["log_density_tailed"] == pytest.approx(told, abs=1e-5)
        figures = json.loads((report.path / "report.json").read_bytes())["metrics"]
        assert figures["tailed-nll"]["value"] is not None


@pytest.mark.parametrize("head", ["mdn:5", "decoder:nd"])
def test_a_head_beside_the_tokens_of_a_text_scheme_says_the_value(store: Store, head: str) -> None:
    model = train(store, head, "p1000")
    found = json.loads((evaluate(store, model, "p1000").path / "report.json").read_bytes())
    assert found["scheme"] == "p1000"
    assert found["metrics"]["crps"]["value"] > 0


def test_training_with_a_decoder_head_learns_its_numbers(store: Store) -> None:
    model = train(store, "decoder:nd,base=4,length=3", steps=150, learning_rate=5e-3)
    lines = (model.path / "metrics.jsonl").read_text().splitlines()
    losses = [one["value_loss"] for one in map(json.loads, lines) if one["split"] == "train"]
    assert losses[0] == pytest.approx(3 * np.log(4), rel=0.15)  # nothing is known of three digits
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize(
    ("head", "scheme"), [("pointwise,sigmoid=yes", "xval"), ("riemann:16", "p1000")]
)
def test_a_head_without_a_density_is_scored_by_all_that_needs_none(
    store: Store, numtok: Shell, monkeypatch: pytest.MonkeyPatch, head: str, scheme: str
) -> None:
    """One head is not bounded; the tails of the other one are not a likelihood."""
    for reader in (PointReader, HistogramReader):
        monkeypatch.setattr(reader, "predictive", fakeheads.draws_alone)
    model = train(store, head, scheme)
    report = evaluate(store, model, scheme)
    found = json.loads((report.path / "report.json").read_bytes())["metrics"]
    assert {"nll", "tailed-nll", "interval-nll"}.isdisjoint(found)
    for metric in ("r2", "crps", "coverage", "pit-distance"):
        assert found[metric]["value"] is not None, metric
    predictions = pq.read_table(report.path / "predictions.parquet")
    for column in ("log_density", "log_density_tailed", "log_interval"):
        assert predictions.column(column).null_count == 40
    for column in ("crps", "pit", "q50"):
        assert predictions.column(column).null_count == 0
    ran = numtok("eval", model.ref, f"arithmetic-{scheme}", "--metric", "nll", "--json")
    assert (ran.code, json.loads(ran.out)["report"]["metrics"]["nll"]["value"]) == (0, None)
    lines = '{"text": "(2 * 3) = [?]"}\n'
    Path("asked.jsonl").write_text(lines)
    ran = numtok("predict", model.ref, "asked.jsonl")
    assert ran.code == 0 and '"q50"' in ran.out
    ran = numtok("probe", "examples", model.ref, f"arithmetic-{scheme}", "--target", "answer")
    assert ran.code == 0, ran.err


@pytest.fixture
def learnt_raw(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray[Any, Any]]:
    """Record the values that the head ``fone`` is trained on."""
    seen: list[np.ndarray[Any, Any]] = []
    own = FoneHead.targets

    def learnt(head: FoneHead, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        seen.append(values)
        return own(head, values)

    monkeypatch.setattr(FoneHead, "targets", learnt)
    return seen


@pytest.mark.parametrize("scheme", ["xval", "p10"])
def test_an_exact_head_learns_numbers_as_they_are_in_the_text(
    store: Store, learnt_raw: list[np.ndarray[Any, Any]], scheme: str
) -> None:
    name = f"{scheme}-none"
    config = EncodeConfig(
        ("arithmetic",), scheme=scheme, normalize="none", name=f"arithmetic-{name}"
    )
    encoded = encode(config, store, lambda *_: None).artifact
    assert encoded is not None
    model = train(store, EXACT, name)
    numbers = {one for name in splits(encoded) for one in read_split(encoded, name).numbers}
    given = np.concatenate(learnt_raw)
    assert len(given) > 100 and set(given.tolist()) - {0.5} <= numbers
    report = evaluate(store, model, name)
    for row in pq.read_table(report.path / "predictions.parquet").to_pylist():
        assert row["valid"] and float(row["prediction_literal"]) == row["prediction"]
        assert row["prediction"] == round(row["prediction"], 1)


def test_an_exact_head_is_refused_where_numbers_are_in_parts_or_normalized(
    store: Store, numtok: Shell, learnt_raw: list[np.ndarray[Any, Any]], says: Says
) -> None:
    with says.raises(UsageError, f"--head {EXACT}", "numgpt", "--head numgpt"):
        train(store, EXACT, "numgpt")
    Path("toy.csv").write_text("a,y,split\n1,2,train\n2,4,train\n3,6,train\n4,8,test\n")
    ran = numtok("train", "toy.csv", "--target", "y", "--head", EXACT, "--normalize", "unit")
    assert (ran.code, ran.out) == (2, "")
    says(ran.err.splitlines()[-1], f"--head {EXACT}", "--normalize unit", "--normalize none")
    assert not learnt_raw
