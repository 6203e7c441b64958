"""Calibrated prediction intervals of ``numtok eval`` and ``numtok predict``."""

import csv
import io
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numtok.errors import NumtokError
from numtok.evaluation.report_files import read
from numtok.stages import encode, eval, predict, table, train
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests import chain
from tests.chain import quiet
from tests.messages import Says


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "1")


def houses(folder: Path, n: int = 400) -> Path:
    random = np.random.default_rng(0)
    size = random.uniform(1, 9, n)
    price = size + size * random.normal(0, 0.2, n)
    path = folder / "houses.csv"
    lines = (f"{a!r},{y!r}" for a, y in zip(size.tolist(), price.tolist(), strict=True))
    path.write_text("\n".join(["size,price", *lines]) + "\n")
    return path


def fitted(store: Store, path: Path, split: str | None = None, **options: Any) -> Artifact:
    data = table.run(table.Config(str(path), target="price", split=split), store).artifact
    config = train.Config(data.ref, head="mdn:2", epochs=8, **options)
    return train.run(config, store, quiet).artifact


def evaluated(store: Store, model: Artifact, **options: Any) -> Artifact:
    return eval.run(eval.Config(model.ref, **options), store, quiet).artifact


def reports(store: Store) -> list[str]:
    return sorted(artifact.name for artifact in store.artifacts() if artifact.kind == "report")


def predicted_rows(store: Store, model: Artifact, path: Path, **options: Any) -> list[Any]:
    lines = b"".join(predict.run(predict.Config(model.ref, str(path), **options), store))
    return list(csv.DictReader(io.StringIO(lines.decode())))


def test_a_table_model_and_its_baselines_have_calibrated_intervals(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    path = houses(tmp_path)
    model = fitted(store, path)
    report = chain.report_of(test := evaluated(store, model))
    assert reports(store) == [f"{model.name}-calibration", f"{model.name}-test"]
    assert report.notes == [] or not any("intervals" in note for note in report.notes)
    for figures in (report.metrics, *(report.baselines[name] for name in ("mean", "linear"))):
        coverage, width = figures["conformal-coverage"], figures["conformal-width"]
        assert coverage.value == pytest.approx(0.9, abs=0.12) and width.value is not None
        assert coverage.low is not None and width.low is not None
    ours, means = (each["conformal-width"] for each in (report.metrics, report.baselines["mean"]))
    assert (ours.value or np.inf) < (means.value or 0)
    # `predict` uses the intervals of `eval` and makes no further report.
    rows = predicted_rows(store, model, path, interval=0.9)
    for row in chain.predictions_of(test):
        found = rows[int(row["id"])]
        assert float(found["interval_low"]) == pytest.approx(row["interval_low"], rel=1e-4)
        assert float(found["interval_high"]) == pytest.approx(row["interval_high"], rel=1e-4)
    assert len(reports(store)) == 2
    assert "interval_low" not in predicted_rows(store, model, path)[0]
    narrow = predicted_rows(store, model, path, interval=0.5)
    ends_of = [
        [float(row["interval_high"]) - float(row["interval_low"]) for row in each]
        for each in (narrow, rows)
    ]
    assert np.mean(ends_of[0]) < np.mean(ends_of[1])
    assert evaluated(store, model).ref == test.ref


def test_a_text_model_of_several_targets_predicts_with_the_intervals_of_eval(
    tmp_path: Path,
) -> None:
    store, path = Store(tmp_path / "artifacts"), tmp_path / "two.csv"
    random = np.random.default_rng(0)
    rows = [(x, random.normal(5000, 1000), random.normal(50, 1)) for x in random.uniform(1, 9, 200)]
    path.write_text("x,price,rent\n" + "".join(f"{x:.2f},{a:.1f},{b:.2f}\n" for x, a, b in rows))
    split = "validation=0.25,calibration=0.25,test=0.25"
    asked = encode.Config((str(path),), scheme="xval", target=("price", "rent"), split=split)
    data = encode.run(asked, store, quiet).artifact
    assert data is not None
    config = train.Config(data.ref, preset="nano,layers=1,width=16", steps=20, batch=32)
    model = train.run(config, store, quiet).artifact
    test = chain.predictions_of(evaluated(store, model))
    found = predicted_rows(store, model, path, interval=0.9)
    for row in test:
        for end in ("interval_low", "interval_high", "q05", "q95"):
            ours = float(found[int(row["id"])][f"{end}_{row['target']}"])
            assert ours == pytest.approx(row[end], rel=1e-4, abs=1e-3)
    # A hole belongs to no target, so its interval uses the residuals of both targets.
    [line] = predict.run(
        predict.Config(model.ref, text=("x: 3.00\nprice: [?]",), interval=0.9), store
    )
    [number] = json.loads(line)["predicted"]["numbers"]
    calibrating = chain.predictions_of(store.resolve(f"{model.name}-calibration", {"report"}))
    residuals = sorted(abs(row["truth"] - row["prediction"]) for row in calibrating)
    rows_of_two = len(residuals) / 2
    margin = residuals[math.ceil(2 * 0.9 * (rows_of_two + 1)) - 1]
    assert number["interval"] == pytest.approx([0, number["value"] + margin], rel=1e-4)


def test_the_calibration_split_is_neither_trained_on_nor_calibrated_itself(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    model = fitted(store, houses(tmp_path))
    split = evaluated(store, model, split="calibration")
    assert "conformal-coverage" not in chain.report_of(split).metrics
    assert reports(store) == [f"{model.name}-calibration"]
    report = chain.report_of(evaluated(store, model, intervals="no"))
    assert "conformal-coverage" not in report.metrics and len(reports(store)) == 2
    report = chain.report_of(evaluated(store, model))
    assert "conformal-coverage" in report.metrics and len(reports(store)) == 3


def test_rows_that_selected_the_model_and_too_few_rows_are_noted(
    tmp_path: Path, says: Says
) -> None:
    store = Store(tmp_path / "artifacts")
    path = houses(tmp_path, 300)
    model = fitted(store, path, "validation=0.2,test=0.3")
    report = chain.report_of(evaluated(store, model))
    assert report.metrics["conformal-coverage"].value == pytest.approx(0.9, abs=0.15)
    [note] = [note for note in report.notes if "intervals" in note]
    says(note, "'validation'", "also selected the model")
    few = fitted(store, path, "validation=0.2,test=0.3,calibration=0.01,seed=4")
    report = chain.report_of(evaluated(store, few))
    assert report.metrics["conformal-coverage"].value == 1
    assert report.metrics["conformal-width"].value is None
    [note] = [note for note in report.notes if "intervals" in note]
    says(note, "infinite", "at least 9")
    row = predicted_rows(store, few, path, interval=0.9)[0]
    assert row["interval_low"] == row["interval_high"] == ""


def test_rows_split_by_time_are_noted(tmp_path: Path, says: Says) -> None:
    store = Store(tmp_path / "artifacts")
    model = fitted(store, houses(tmp_path), "by=size,validation=6,calibration=7,test=8")
    notes = chain.report_of(evaluated(store, model)).notes
    [note] = [note for note in notes if "coverage" in note]
    says(note, "'size'", "not exchangeable")


def test_without_the_training_data_there_is_one_clear_error(tmp_path: Path, says: Says) -> None:
    store = Store(tmp_path / "artifacts")
    path = houses(tmp_path)
    model = fitted(store, path)
    data = store.resolve("houses", {"table"})
    shutil.rmtree(data.path)
    with pytest.raises(NumtokError) as error:
        predicted_rows(store, model, path, interval=0.9)
    says(str(error.value), "training data", model.ref, "not in the store", "numtok lineage")
    assert len(predicted_rows(store, model, path)) == 400


def test_numbers_in_texts_have_calibrated_intervals(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    random = np.random.default_rng(0)
    rows = []
    for k in range(200):
        for a in random.integers(1, 50, 2).tolist():
            text = f"{a} gives {a + random.normal(0, 2):.3f}"
            span = [text.index("gives ") + 6, len(text)]
            rows.append({"text": text, "targets": {"y": [span]}, "cluster": str(k)})
    chain.jsonl(tmp_path / "rows.jsonl", rows)
    encoded = chain.encoded(
        store,
        tmp_path / "rows.jsonl",
        scheme="xval",
        split="validation=0.1,calibration=0.3,test=0.3",
    )
    tiny = "nano,layers=1,width=32,heads=2"
    model = chain.trained(store, encoded.ref, preset=tiny, head="mdn:2", steps=30)
    report = chain.report_of(chain.evaluated(store, model.ref, encoded.ref))
    assert report.metrics["conformal-coverage"].value == pytest.approx(0.9, abs=0.12)
    assert report.baselines["mean"]["conformal-coverage"].value == pytest.approx(0.9, abs=0.12)
    assert {"quantization", "nearest"} <= report.baselines.keys()
    assert "conformal-coverage" not in report.baselines["nearest"]
    [line] = predict.run(predict.Config(model.ref, text=("7 gives [?]",), interval=0.8), store)
    [number] = json.loads(line)["predicted"]["numbers"]
    low, high = number["interval"]
    assert low < number["value"] < high
    [line] = predict.run(predict.Config(model.ref, text=("7 gives [?]",)), store)
    assert "interval" not in json.loads(line)["predicted"]["numbers"][0]
    calibration = read(store.resolve(f"{model.name}-calibration", {"report"})).report
    assert calibration.split == "calibration" and "mean" in calibration.baselines


def test_intervals_of_a_nonnegative_target_end_at_zero(tmp_path: Path) -> None:
    store, path = Store(tmp_path / "artifacts"), tmp_path / "waits.csv"
    random = np.random.default_rng(0)
    waits = zip(
        random.normal(size=300).tolist(), random.exponential(size=300).tolist(), strict=True
    )
    path.write_text("x,price\n" + "".join(f"{x!r},{y!r}\n" for x, y in waits))
    model = fitted(store, path)
    rows = predicted_rows(store, model, path, interval=0.9)
    lows = np.array([float(row["interval_low"]) for row in rows])
    points = np.array([float(row["predicted"]) for row in rows])
    assert (lows >= np.minimum(points, 0)).all() and (lows == 0).any()
    report = chain.report_of(evaluated(store, model))
    for figures in (report.metrics, report.baselines["linear"]):
        assert figures["conformal-coverage"].value == pytest.approx(0.9, abs=0.12)
