"""NumValue end to end on tasks of NUPA: encoding, training, generation and scoring."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numtok.cli.output.encode import print_result
from numtok.cli.output.printing import Format
from numtok.cli.output.train import print_result as print_trained
from numtok.stages import encode, nupa
from numtok.stages.train import Config, Result, run
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.chain import encoded, evaluated, generated, jsonl, predictions_of, quiet, there
from tests.messages import Says
from tests.stages import test_train
from tests.stages.test_eval import TINY
from tests.stages.test_train import records, train

one_thread = test_train.one_thread

TASKS = "add_Integer+add_Float+add_Fraction+add_ScientificNotation"
LOSSES = ("token_loss", "projected_loss", "reconstruction_loss", "reconstruction_of_others")
PARTS = (*LOSSES, "embedding_norm", "projection_norm")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with sums of all four kinds of numbers, with a prefix before each part."""
    root = tmp_path_factory.mktemp("numvalue") / "artifacts"
    spec = f"nupa,tasks={TASKS},digits=1..2,train=4,validation=1,test=1,prompt=short"
    generated(Store(root), spec, name="sums")
    encoded(Store(root), "sums", scheme="numvalue")
    return root


@pytest.fixture
def store(data: Path, tmp_path: Path) -> Store:
    shutil.copytree(data, tmp_path / "artifacts")
    return Store(tmp_path / "artifacts")


def learning(objective: str = "numvalue", embedder: str = "numvalue:mlp", **more: Any) -> Config:
    given: dict[str, Any] = {"preset": TINY, "steps": 2, "batch": 16, "embedder": embedder} | more
    return Config("sums-numvalue", objective=objective, **given)


def report_of(store: Store, model: Artifact, split: str = "test") -> Artifact:
    return evaluated(store, model.ref, "sums-numvalue", split=split, fill="answers")


@pytest.mark.parametrize(
    ("encoder", "objective"), [("mlp", "numvalue"), ("rnn", "numvalue:answer,project=answer")]
)
def test_a_model_tells_its_losses_and_its_answers_are_scored(
    store: Store, capsys: pytest.CaptureFixture[str], encoder: str, objective: str
) -> None:
    model = train(store, learning(objective, f"numvalue:{encoder}"))
    assert 0.3 < model.timing(dict[str, Any])["second_pass"] < 0.5
    print_trained(Result(model, made=True), Format.TABLE, quiet=False)
    assert re.search(r"second pass\s+[\d.]+% of FLOPs", capsys.readouterr().err)
    for split in ("train", "validation"):
        for line in records(model, split):
            assert all(line[part] > 0 for part in PARTS)
            total = line["token_loss"] + line["projected_loss"] + line["reconstruction_loss"] / 2
            assert line["loss"] == pytest.approx(total)
    report = report_of(store, model)
    assert (
        len(predictions_of(report))
        == nupa.run(nupa.Config((report.ref,), benchmark="nupa"), store).n
        == 8
    )


@pytest.mark.slow
def test_sums_of_all_kinds_are_learnt_by_heart_and_written(store: Store) -> None:
    config = learning("numvalue:answer", "numvalue:rnn", steps=110, learning_rate=8e-3, batch=32)
    report = report_of(store, train(store, config), "train")
    found = predictions_of(report)
    right = [row["answer"] == row["prediction"] and row["ended"] for row in found]
    assert len(right) == 32
    assert sum(right) > 28


@pytest.mark.parametrize(
    ("embedder", "objective"),
    [
        ("numvalue:mlp", "numvalue,second=no"),
        ("numvalue:mlp", "numvalue,reconstruction=0"),
        ("numvalue:mlp", "numvalue,project=answer"),
        ("numvalue:mlp,auxiliary=no", "numvalue"),
        ("numvalue:rnn,auxiliary=no", "numvalue"),
        ("numvalue:scalar", "numvalue"),
        ("numvalue:binary", "numvalue"),
        ("lookup", "ar"),
    ],
)
def test_each_ablation_learns_and_answers(store: Store, embedder: str, objective: str) -> None:
    model = train(store, learning(objective, embedder, steps=1))
    assert model.manifest.counts["steps"] == 1
    assert nupa.run(nupa.Config((report_of(store, model).ref,), benchmark="nupa"), store).n == 8


def test_digits_that_some_embedders_do_not_see_are_counted(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    """Both encode and train report them. The tokens keep all digits."""
    rows = ["1" * 18 + " = 5", "1" * 19 + " = 5", "0." + "3" * 23 + "e7 = 5/" + "2" * 20]
    path = jsonl(tmp_path / "long.jsonl", [{"text": text} for text in rows])
    result = encode.run(encode.Config((str(path),), scheme="numvalue", name="long"), store, quiet)
    assert there(result.artifact).manifest.counts["beyond_sight"] == 3
    print_result(result, Format.TABLE, quiet=False)
    told = " ".join(capsys.readouterr().err.split())
    assert re.search(r"beyond sight\W+3\b", told)
    says(
        told[told.index("some numbers have more than") :], "18 digits", "22 after", "some embedders"
    )
    for embedder, count in (("numvalue:mlp", 3), ("numvalue:rnn", 0)):
        notes: list[str] = []
        config = replace(learning(embedder=embedder), data="long")
        counts = run(config, Store(store.root, notes.append), quiet).artifact.manifest.counts
        assert counts.get("beyond_sight", 0) == count
        assert len(notes) == bool(count)
        for note in notes:
            says(note, f"3 numbers of {result.ref}", "18 digits", f"--embedder {embedder}")
