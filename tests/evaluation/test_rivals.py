"""Predictions of baselines: their names and order, and the tuning of trees."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from numtok.evaluation.rivals import TUNED, LabeledRows, rivals, tuned
from numtok.stages import encode, table
from numtok.store.artifact import TABLE, Artifact
from numtok.store.store import Store

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one thread: synchronizing several takes longer than fitting these trees."""
    monkeypatch.setenv("NUMTOK_THREADS", "1")


def rows_of_table(folder: Path, header: str) -> Artifact:
    random = np.random.default_rng(0)
    lines = [header]
    for row in range(200):
        x, y = random.normal(size=2).round(3)
        split = ("train", "train", "train", "validation", "test")[row % 5]
        other = ("test", "train", "train", "train", "train")[row % 5]
        splits = f"{split},{other}" if "split_1" in header else split
        lines.append(f"{x},{y},{x * y:.4f},{splits}")
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    result = table.run(table.Config(str(folder / "rows.csv"), target="z"), Store(folder / "store"))
    assert result.artifact.kind == TABLE
    return result.artifact


def rows_of_text(folder: Path, rows: Sequence[tuple[str, str, str]]) -> Artifact:
    """Encode rows, given as split, text and the target that follows the text."""
    path = folder / "rows.jsonl"
    with path.open("w") as file:
        for row, (split, text, total) in enumerate(rows):
            targets = {"total": [[len(text), len(text) + len(total)]]}
            record = {"id": row, "text": text + total, "targets": targets, "split": split}
            file.write(json.dumps(record) + "\n")
    config = encode.Config((str(path),), scheme="digits")
    result = encode.run(config, Store(folder / "store"), lambda *_: None)
    assert result.artifact is not None
    return result.artifact


def test_rivals_of_a_table_are_of_its_rows(tmp_path: Path) -> None:
    result = rivals(rows_of_table(tmp_path, "x,y,z,split"), "test")
    assert result.keys == [(str(row), "z", 0) for row in range(4, 200, 5)]
    assert set(result.values) == {"mean", "linear", "boosted", TUNED}
    assert all(len(values) == 40 for values in result.values.values())
    assert np.ptp(result.values["mean"]) == 0 < np.ptp(result.values[TUNED])


def test_folds_stand_one_after_the_other_each_with_fits_of_its_own(tmp_path: Path) -> None:
    result = rivals(rows_of_table(tmp_path, "x,y,z,split_0,split_1"), "test")
    folds = np.array([fold for _, _, fold in result.keys])
    assert folds.tolist() == [0] * 40 + [1] * 40
    first, second = (result.values["mean"][folds == fold] for fold in (0, 1))
    assert first[0] != second[0]


def test_rivals_of_texts_are_without_those_that_know_the_truth(tmp_path: Path) -> None:
    lines = []
    for row in range(300):
        split = ("train", "train", "validation", "test")[row % 4]
        lines.append((split, f"{row % 17} and {row % 11} are ", str(row % 17 + row % 11)))
    result = rivals(rows_of_text(tmp_path, lines), "test", rows=50)
    queried = [int(row) for row, _, _ in result.keys]
    assert result.keys == [(str(row), "total", 2) for row in queried]
    assert len(set(queried)) == 50 and queried == sorted(queried) and queried[-1] > 203
    assert set(result.values) == {"mean", "linear", "boosted", "tfidf", "boosted-text", TUNED}
    truth = np.array([row % 17 + row % 11 for row in queried])
    assert result.values["linear"] == pytest.approx(truth)


def test_rows_that_lack_a_number_have_rivals(tmp_path: Path) -> None:
    """One row in ten lacks its first number: fields are aligned by the words around them, not by
    their order."""
    lines, truth = [], []
    for row in range(400):
        split = ("train", "train", "validation", "test")[row % 4]
        width, length = row % 7, row % 19
        text = "" if row % 10 == 3 else f"width {width} m, "
        text += f"length {length} m, area "
        total = str(100 if row % 10 == 3 else 5 * width + length)
        lines.append((split, text, total))
        truth += [float(total)] if split == "test" else []
    result = rivals(rows_of_text(tmp_path, lines), "test")
    of_texts = {"tfidf", "boosted-text"}
    assert set(result.values) == {"mean", "linear", "boosted", *of_texts, TUNED}
    assert not result.notes
    wanted = np.array(truth)
    baseline_error = np.abs(wanted - np.median(wanted)).mean()
    for name in ("linear", "boosted", "boosted-text", TUNED):
        assert np.abs(result.values[name] - wanted).mean() < 0.5 * baseline_error


def test_trees_are_tuned_on_the_validation_rows() -> None:
    """The absolute loss wins if the validation rows have no outliers, else the squared loss."""
    random = np.random.default_rng(0)
    x = random.uniform(size=(600, 1))
    y = np.where(random.uniform(size=600) < 0.2, 100.0, 0.0)
    queried = random.uniform(size=(50, 1))
    plain = tuned(LabeledRows(x, y), LabeledRows(queried, np.zeros(50)), queried)
    assert np.abs(plain).mean() < 1
    high = tuned(LabeledRows(x, y), LabeledRows(queried, np.full(50, 25.0)), queried)
    assert np.abs(high).mean() > 10
