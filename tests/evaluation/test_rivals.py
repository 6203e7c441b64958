"""What needs no model as predictions: of whom, in which order, and what trees are tuned on."""

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
    """Threads wait for each other longer than such trees take."""
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
    made = table.run(table.Config(str(folder / "rows.csv"), target="z"), Store(folder / "store"))
    assert made.artifact.kind == TABLE
    return made.artifact


def rows_of_text(folder: Path, rows: Sequence[tuple[str, str, str]]) -> Artifact:
    """Rows of a split, a text and the target that follows it, encoded."""
    path = folder / "rows.jsonl"
    with path.open("w") as file:
        for row, (split, text, total) in enumerate(rows):
            targets = {"total": [[len(text), len(text) + len(total)]]}
            one = {"id": row, "text": text + total, "targets": targets, "split": split}
            file.write(json.dumps(one) + "\n")
    config = encode.Config((str(path),), scheme="digits")
    made = encode.run(config, Store(folder / "store"), lambda *_: None)
    assert made.artifact is not None
    return made.artifact


def test_rivals_of_a_table_are_of_its_rows(tmp_path: Path) -> None:
    found = rivals(rows_of_table(tmp_path, "x,y,z,split"), "test")
    assert found.keys == [(str(row), "z", 0) for row in range(4, 200, 5)]
    assert set(found.values) == {"mean", "linear", "boosted", TUNED}
    assert all(len(values) == 40 for values in found.values.values())
    assert np.ptp(found.values["mean"]) == 0 < np.ptp(found.values[TUNED])


def test_folds_stand_one_after_the_other_each_with_fits_of_its_own(tmp_path: Path) -> None:
    found = rivals(rows_of_table(tmp_path, "x,y,z,split_0,split_1"), "test")
    folds = np.array([fold for _, _, fold in found.keys])
    assert folds.tolist() == [0] * 40 + [1] * 40
    first, second = (found.values["mean"][folds == fold] for fold in (0, 1))
    assert first[0] != second[0]


def test_rivals_of_texts_are_without_those_that_know_the_truth(tmp_path: Path) -> None:
    lines = []
    for row in range(300):
        split = ("train", "train", "validation", "test")[row % 4]
        lines.append((split, f"{row % 17} and {row % 11} are ", str(row % 17 + row % 11)))
    found = rivals(rows_of_text(tmp_path, lines), "test", rows=50)
    asked = [int(row) for row, _, _ in found.keys]
    assert found.keys == [(str(row), "total", 2) for row in asked]
    assert len(set(asked)) == 50 and asked == sorted(asked) and asked[-1] > 203
    assert set(found.values) == {"mean", "linear", "boosted", TUNED}
    truth = np.array([row % 17 + row % 11 for row in asked])
    assert found.values["linear"] == pytest.approx(truth)


def test_rows_that_lack_a_number_have_rivals(tmp_path: Path) -> None:
    """The number that one row in ten lacks stands before the others: fields are aligned by the
    words around them, not by their order."""
    lines, truth = [], []
    for row in range(400):
        split = ("train", "train", "validation", "test")[row % 4]
        width, length = row % 7, row % 19
        text = "" if row % 10 == 3 else f"width {width} m, "
        text += f"length {length} m, area "
        total = str(100 if row % 10 == 3 else 5 * width + length)
        lines.append((split, text, total))
        truth += [float(total)] if split == "test" else []
    found = rivals(rows_of_text(tmp_path, lines), "test")
    assert set(found.values) == {"mean", "linear", "boosted", TUNED} and not found.notes
    wanted = np.array(truth)
    usual = np.abs(wanted - np.median(wanted)).mean()
    for name in ("linear", "boosted", TUNED):
        assert np.abs(found.values[name] - wanted).mean() < 0.5 * usual


def test_trees_are_tuned_on_what_is_looked_at() -> None:
    """The loss that ignores outliers where what is looked at has none, and the reverse."""
    random = np.random.default_rng(0)
    x = random.uniform(size=(600, 1))
    y = np.where(random.uniform(size=600) < 0.2, 100.0, 0.0)
    asked = random.uniform(size=(50, 1))
    plain = tuned(LabeledRows(x, y), LabeledRows(asked, np.zeros(50)), asked)
    assert np.abs(plain).mean() < 1
    high = tuned(LabeledRows(x, y), LabeledRows(asked, np.full(50, 25.0)), asked)
    assert np.abs(high).mean() > 10
