"""The baseline that reads all fields of records."""

from pathlib import Path

import numpy as np
import pytest

from numtok.data.records.rendering import Rendering, run
from numtok.evaluation import tabular_rival as module
from numtok.evaluation.tabular_rival import TABULAR, tabular_rival
from numtok.store.artifact import Artifact
from numtok.store.store import Store

SPLIT = "validation=0.2,test=0.2"


def rows(folder: Path, scale: float = 1.0) -> Artifact:
    """Return rows whose target depends on a word, a number and a year."""
    random = np.random.default_rng(0)
    lines = []
    for n in range(400):
        word, a = ("broken", "fine", "unused and sealed")[n % 3], random.normal()
        year = 2000 + n % 20
        y = scale * np.exp(0.5 * (n % 3) + 0.1 * a + 0.05 * (year - 2000))
        lines.append(f"it is {word} ({n}),{a:.4f},{year}-03-{1 + n % 28:02d},{y:.5f}")
    (folder / "sales.csv").write_text("\n".join(["note,a,sold,y", *lines]) + "\n")
    path = str(folder / "sales.csv")
    rendering = Rendering(path=path, targets=["y"], split=SPLIT)
    return run(rendering, Store(folder / "artifacts")).artifact


def test_words_dates_and_numbers_are_read(tmp_path: Path) -> None:
    pytest.importorskip("skrub")
    artifact = rows(tmp_path)
    rival = tabular_rival(artifact, "y", "test")
    truth = dict(
        enumerate(
            float(line.rsplit(",", 1)[1])
            for line in (tmp_path / "sales.csv").read_text().splitlines()[1:]
        )
    )
    values = np.array([truth[int(row)] for row, _, _ in rival.keys])
    assert 50 < len(values) < 110
    error = np.abs(rival.values[TABULAR] - values).mean()
    assert error < 0.2 * np.abs(values - np.median(values)).mean()
    again = tabular_rival(artifact, "y", "test")
    assert np.array_equal(again.values[TABULAR], rival.values[TABULAR])


def test_without_skrub_there_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    rival = tabular_rival(rows(tmp_path), "y", "test")
    assert not rival.values and rival.keys
    assert "skrub is not installed" in rival.notes[0]
