"""NumValue from end to end: some of NUPA encoded, learnt, written by the model, and scored."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from numtok.artifact import Artifact
from numtok.reports import PREDICTIONS_FILE
from numtok.stages import encode, eval, gen, nupa
from numtok.stages.train import Config
from numtok.store import Store
from tests import test_train, test_train_faults
from tests.test_eval import TINY, quiet
from tests.test_train import records, train
from tests.test_train_faults import Forks, check_goes_on, traced

forks, one_thread = test_train_faults.forks, test_train.one_thread

TASKS = "add_Integer+add_Float+add_Fraction+add_ScientificNotation"
PARTS = ("token_loss", "projected_loss", "reconstruction_loss", "embedding_norm", "projection_norm")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with sums of numbers of all four kinds, with a prefix before each part."""
    root = tmp_path_factory.mktemp("numvalue") / "artifacts"
    spec = f"nupa,tasks={TASKS},digits=1..3,train=4,validation=1,test=1,prompt=short"
    gen.run(gen.Config(spec, None, name="sums"), Store(root), quiet)
    encode.run(encode.Config(("sums",), "numvalue"), Store(root), quiet)
    return root


@pytest.fixture
def store(data: Path, tmp_path: Path) -> Store:
    shutil.copytree(data, tmp_path / "artifacts")
    return Store(tmp_path / "artifacts")


def learning(objective: str = "numvalue", embedder: str = "numvalue:mlp", **more: Any) -> Config:
    given = {"preset": TINY, "steps": 2, "batch": 16, "embedder": embedder} | more
    return Config("sums-numvalue", objective=objective, **given)


def report_of(store: Store, model: Artifact, split: str = "test") -> Artifact:
    config = eval.Config(model.ref, "sums-numvalue", split=split, fill="answers")
    return eval.run(config, store, quiet).artifact


@pytest.mark.parametrize(
    ("encoder", "objective"), [("mlp", "numvalue"), ("rnn", "numvalue:answer,project=answer")]
)
def test_a_killed_run_ends_in_the_bytes_of_one_that_was_not_and_its_answers_are_scored(
    data: Path, forks: Forks, tmp_path: Path, encoder: str, objective: str
) -> None:
    config = learning(objective, f"numvalue:{encoder}", steps=8, checkpoint_steps=3)
    undisturbed = traced(data, tmp_path, config)
    root = undisturbed.start(tmp_path / "artifacts")
    forks.killed(config, root, 5, 7)
    assert check_goes_on(undisturbed, root) == 6
    store = Store(root)
    (model,) = (one for one in store.artifacts() if one.ref.startswith("model/"))
    for split in ("train", "validation"):
        for line in records(model, split):
            assert all(line[part] > 0 for part in PARTS)
            total = line["token_loss"] + line["projected_loss"] + line["reconstruction_loss"] / 2
            assert line["loss"] == pytest.approx(total)
    report = report_of(store, model)
    table = pq.read_table(report.path / PREDICTIONS_FILE)
    assert table.num_rows == 12
    found = nupa.run(nupa.Config(report.ref), store)
    assert found.n == 12


def test_sums_of_all_kinds_are_learnt_by_heart_and_written(store: Store) -> None:
    config = learning("numvalue:answer", "numvalue:rnn", steps=250, learning_rate=5e-3, batch=48)
    report = report_of(store, train(store, config), "train")
    table = pq.read_table(report.path / PREDICTIONS_FILE)
    right = [row["answer"] == row["prediction"] and row["ended"] for row in table.to_pylist()]
    assert len(right) == 48
    assert sum(right) > 43


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
def test_each_ablation_learns_a_step_and_writes_answers(
    store: Store, embedder: str, objective: str
) -> None:
    model = train(store, learning(objective, embedder, steps=1))
    assert model.manifest.counts["steps"] == 1
    assert nupa.run(nupa.Config(report_of(store, model).ref), store).n == 12
