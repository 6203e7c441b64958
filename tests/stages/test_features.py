"""``numtok features``: hidden states of a frozen model as a table, and predictions from texts."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import numtok
from numtok.data.tables.table import read_table_file, read_table_of
from numtok.data.tables.text_features import read_text_features
from numtok.errors import DataError, NumtokError, UsageError
from numtok.models.pretrained.frozen import FrozenModel, FrozenSource
from numtok.settings.predict import Config as PredictConfig
from numtok.settings.train import Config as TrainConfig
from numtok.stages import features as stage
from numtok.stages import predict, train
from numtok.stages.features import Config
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.chain import predictions_of
from tests.fakepretrained import pretrained
from tests.messages import Says
from tests.shell import Shell

pytest.importorskip("transformers", reason="numtok[hf] is not installed")
pytestmark = pytest.mark.integration
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that contains a small GPT-2, and return the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    pretrained("gpt2", tmp_path / "gpt2")
    return tmp_path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


def row(before: str, number: object, after: str = "", name: str = "y") -> dict[str, Any]:
    span = [len(before), len(before) + len(str(number))]
    return {"text": f"{before}{number}{after}", "targets": {name: [span]}}


def written(rows: Sequence[dict[str, Any]], name: str = "rows.jsonl") -> str:
    Path(name).write_text("".join(json.dumps(each) + "\n" for each in rows))
    return name


def rooms(count: int = 60, after: str = "") -> list[dict[str, Any]]:
    """Return rows in three splits, with the target in the last line."""
    splits = ("train", "train", "train", "validation", "test")
    return [
        row(f"size: {n % 7}\nkind: {'ab'[n % 2]}\ny: ", 10 * (n % 7) + 0.5, after)
        | {"id": n, "split": splits[n % 5]}
        for n in range(count)
    ]


def quiet(*_: object) -> None:
    pass


def made(store: Store, path: str, model: str = "gpt2", **settings: Any) -> Artifact:
    return stage.run(Config((path,), model=model, **settings), store, quiet).artifact


def states(texts: Sequence[str], model: str = "gpt2", pooling: Any = "mean") -> Any:
    loaded = FrozenSource.of(model).load(pooling, CPU)
    return loaded.pooled(loaded.tokens(texts)[0]).numpy()


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_features_are_states_of_the_text_before_the_target(store: Store, pooling: Any) -> None:
    artifact = made(store, written(rooms()), pooling=pooling)
    table, counts = read_table_of(artifact), artifact.manifest.counts
    assert (counts["rows"], counts["features"], counts["rows_test"]) == (60, 32, 12)
    assert table.file.target == "y"
    assert [feature.name for feature in table.file.features] == [f"h{k}" for k in range(32)]
    assert table.target.tolist() == [10 * (n % 7) + 0.5 for n in range(60)]
    assert table.split("test").tolist() == list(range(4, 60, 5))
    # The target is left out, and so is its name: nothing else would be left of the line.
    texts = [f"size: {n % 7}\nkind: {'ab'[n % 2]}" for n in range(60)]
    np.testing.assert_allclose(table.numbers, states(texts, pooling=pooling), atol=1e-5)
    recipe = read_text_features(artifact)
    assert recipe is not None
    assert (recipe.pooling, recipe.causal, recipe.target) == (pooling, True, "y")
    assert recipe.sha256 == FrozenSource.of("gpt2").digest()[0]


def test_an_encoder_reads_both_sides_and_no_digit_of_any_target(store: Store) -> None:
    pretrained("bert", Path("bert"))
    rows = [
        {
            "text": f"of {n} kg and 7{n} m for {n + 3} euros net",
            "targets": {"price": [[21, 22]], "length": [[12, 14]]},
        }
        for n in range(1, 6)
    ]
    path = written(rows)
    table = read_table_of(made(store, path, "bert", target="price"))
    assert table.target.tolist() == [4.0, 5.0, 6.0, 7.0, 8.0]
    texts = [f"of {n} kg and  m for  euros net" for n in range(1, 6)]
    np.testing.assert_allclose(table.numbers, states(texts, "bert"), atol=1e-5)
    # A causal model reads the text before the first target.
    table = read_table_of(made(store, path, target="price"))
    np.testing.assert_allclose(
        table.numbers, states([f"of {n} kg and " for n in range(1, 6)]), atol=1e-5
    )


def test_the_same_again_is_found_and_another_model_is_another_table(store: Store) -> None:
    path = written(rooms())
    first = made(store, path)
    again = stage.run(Config((path,), model="hf:gpt2"), store, quiet)
    assert (again.artifact.ref, again.made) == (first.ref, False)
    forced = stage.run(Config((path,), model="gpt2", force=True), store, quiet)
    assert forced.artifact.ref == first.ref
    shutil.rmtree("gpt2")
    pretrained("gpt2", Path("gpt2"), seed=1)
    assert made(store, path).ref != first.ref
    assert made(store, path, pooling="last").ref != made(store, path).ref


def test_an_interrupted_run_resumes_to_the_same_bytes(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_BLOCK", 25)
    path, pooled = written(rooms()), FrozenModel.pooled
    whole = made(Store(tmp_path / "other"), path)
    blocks: list[int] = []

    def progress(what: str, done: int, total: int) -> None:
        blocks.append(done)
        if done == 50 and len(blocks) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage.run(Config((path,), model="gpt2"), store, progress)
    rows: list[int] = []

    def counted(self: FrozenModel, ids: Any) -> Any:
        rows.append(len(ids))
        return pooled(self, ids)

    monkeypatch.setattr(FrozenModel, "pooled", counted)
    resumed = stage.run(Config((path,), model="gpt2"), store, progress).artifact
    assert blocks == [25, 50, 25, 50, 60]
    assert sum(rows) == 4 + 10  # four rows to check the model and determine its width
    assert list(resumed.files()) == list(whole.files())


def test_long_texts_and_skipped_rows_are_noted(store: Store) -> None:
    rows = [row("x " * 99 * (n % 2), n) for n in range(6)]
    path = written([*rows, {"text": "none"}, {"text": "3 4", "targets": {"y": [[0, 1], [2, 3]]}}])
    artifact = made(store, path, on_error="skip", pooling="last")
    notes = read_table_file(artifact).notes
    assert "skipped 2 bad rows" in notes
    assert any("beginning of 3 texts" in note for note in notes)


def test_bad_input(store: Store, says: Says) -> None:
    good = [row("a ", n) for n in range(3)]
    two = {"text": "1 2", "targets": {"y": [[0, 1]], "z": [[2, 3]]}}
    for error, rows, settings, told in (
        (DataError, [{"text": "a 3"}], {}, ("no row has a target", '"targets"')),
        (UsageError, [two], {}, ("y, z", "--target y")),
        (DataError, [*good, {"text": "b"}], {}, ("rows.jsonl:4", "no target 'y'")),
        (DataError, good, {"target": "q"}, ("rows.jsonl:1", "no target 'q'")),
        (DataError, [row("a ", 7)] * 3, {}, ("'y' is 7 in every row",)),
        (DataError, [row("a ", "1e400"), *good], {}, ("finite",)),
        (UsageError, [row("a ", n, name="h3") for n in range(3)], {}, ("'h3'", "Rename")),
        (DataError, [each | {"split": "test"} for each in good], {}, ("'train'", "empty")),
        (UsageError, good, {"model": "nowhere"}, ("nowhere", "not found")),
    ):
        with says.raises(error, *told):
            made(store, written(rows), **{"model": "gpt2"} | settings)


def test_a_model_of_features_predicts_from_texts_what_eval_says(
    numtok: Shell, says: Says, tmp_path: Path
) -> None:
    path = written(rooms())
    ran = numtok("features", path, "--model", "hf:gpt2")
    assert ran.code == 0, ran.err
    table = ran.out.strip()
    assert "60" in ran.err and "32" in ran.err
    ran = numtok("train", table, "--head", "mdn:2", "--epochs", "3", "--name", "model")
    assert ran.code == 0, ran.err
    evaluated = numtok("eval", "model")
    report = predictions_of(Store(Path("artifacts")).resolve(evaluated.out.strip()))
    known = [one["prediction"] for one in report]
    asked = [each for each in rooms() if each["split"] == "test"]
    line = "y: "
    absent = [{"text": each["text"].rpartition("\n")[0]} for each in asked]
    for rows in (
        asked,
        absent,
        [{"text": each["text"] + "\n" + line} for each in absent],
        [{"text": each["text"] + "\n" + line + "[?]"} for each in absent],
    ):
        ran = numtok("predict", "model", written(rows, "asked.jsonl"))
        assert (ran.code, ran.err) == (0, "")
        said = [json.loads(each) for each in ran.out.splitlines()]
        values = [each["predicted"]["numbers"][0]["value"] for each in said]
        np.testing.assert_allclose(values, known, rtol=1e-4)
        assert [{k: v for k, v in each.items() if k != "predicted"} for each in said] == rows
    number = said[0]["predicted"]["numbers"][0]
    assert said[0]["predicted"]["text"] == absent[0]["text"] + "\ny: " + number["literal"]
    assert number["q05"] < number["value"] < number["q95"]
    ran = numtok("predict", "model", "--text", absent[0]["text"])
    value = json.loads(ran.out)["predicted"]["numbers"][0]["value"]
    assert value == pytest.approx(known[0], rel=1e-4)


def trained(store: Store) -> Artifact:
    table = made(store, written(rooms()))
    config = TrainConfig(table.ref, head="pointwise", epochs=1)
    return train.run(config, store, quiet).artifact


def test_another_pretrained_model_is_refused_and_a_moved_one_is_named(
    store: Store, says: Says
) -> None:
    model = trained(store)
    path = written([{"text": "size: 3\nkind: a"}], "asked.jsonl")

    def predicted(**settings: Any) -> list[bytes]:
        return list(predict.run(PredictConfig(model.ref, path, **settings), store))

    known = predicted()
    shutil.move("gpt2", "moved")
    with says.raises(UsageError, "gpt2", "not found"):
        predicted()
    assert predicted(pretrained="moved") == known
    pretrained("gpt2", Path("gpt2"), seed=1)
    with says.raises(UsageError, "not the model that made the features", "sha256"):
        predicted()


def test_bad_rows_and_options_of_predict(store: Store, says: Says) -> None:
    model = trained(store)
    cases: list[tuple[type[NumtokError], dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
        (DataError, {"text": "[?] and [?]"}, {}, ("asked.jsonl:1", "2 [?]")),
        (DataError, {"text": "a", "targets": {"y": [[0, 9]]}}, {}, ("asked.jsonl:1", "outside")),
        (DataError, {"text": "a", "predicted": 1}, {}, ("'predicted'", "reserved")),
        (UsageError, {"text": "a"}, {"fill": "parallel"}, ("--fill",)),
        (UsageError, {"text": "a"}, {"devices": "2"}, ("--devices",)),
    ]
    for error, asked, settings, told in cases:
        config = PredictConfig(model.ref, written([asked], "asked.jsonl"), **settings)
        with says.raises(error, *told):
            list(predict.run(config, store))


def test_the_same_in_python(tmp_path: Path, says: Says) -> None:
    table = numtok.features(written(rooms()), model="gpt2", store=tmp_path / "artifacts")
    model = numtok.train(table, head="mdn:2", epochs=1)
    texts = ["size: 3", "size: 4\nkind: a\ny: [?]"]
    path = written([{"text": text} for text in texts], "asked.jsonl")
    said = [row["predicted"] for row in numtok.predict(model, path, interval=0.8)]
    loaded = numtok.load(model.ref, store=tmp_path / "artifacts")
    for predicted, row in zip(loaded.predict(texts, interval=0.8), said, strict=True):
        assert predicted.text == row["text"]
        [number], [known] = predicted.numbers, row["numbers"]
        assert number.keys() == known.keys() >= {"q05", "interval"}
        np.testing.assert_allclose(number["value"], known["value"], rtol=1e-5)
        np.testing.assert_allclose(number["interval"], known["interval"], rtol=1e-5)
    assert "interval" not in loaded.predict(texts)[0].numbers[0]
    with says.raises(UsageError, "fill"):
        loaded.predict(texts, fill="parallel")
    with says.raises(UsageError, "table model", "no codec"):
        _ = loaded.codec


@pytest.mark.parametrize("model", ["gpt2", "bert"])
def test_a_marked_target_is_filled_in(store: Store, model: str) -> None:
    if model == "bert":
        pretrained("bert", Path("bert"))
    table = made(store, written(rooms()), model)
    trained = train.run(TrainConfig(table.ref, head="pointwise", epochs=1), store, quiet).artifact
    asked = row("size: 3, y: ", "1.5", ", z: 2")
    asked["targets"]["z"] = [[20, 21]]
    for each in (asked, {"text": "size: 3, y: [?], z: 2"}):
        path = written([each], "asked.jsonl")
        [line] = predict.run(PredictConfig(trained.ref, path), store)
        predicted = json.loads(line)["predicted"]
        literal = predicted["numbers"][0]["literal"]
        assert predicted["text"] == f"size: 3, y: {literal}, z: 2"


def test_a_frame_is_read_like_its_file(tmp_path: Path) -> None:
    import polars as pl

    import numtok

    frame = pl.DataFrame({"room": [f"room {n}" for n in range(60)], "y": range(60)})
    frame.write_parquet("frame.parquet")
    settings: dict[str, Any] = {"model": "gpt2", "target": "y", "split": "test=0.2"}
    of_file = numtok.features("frame.parquet", store=tmp_path / "file", **settings)
    of_frame = numtok.features(frame, store=tmp_path / "frame", **settings)
    assert of_frame.ref == of_file.ref
