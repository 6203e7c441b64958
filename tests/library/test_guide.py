"""docs/guide/library.md is run: its first part in few steps, all of it as it stands when slow."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numtok
from tests import fakemodels

one_thread = fakemodels.one_thread

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guide/library.md").read_text("utf-8")
COMMANDS = "## Commands as functions"


def run(page: str, names: dict[str, Any]) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
        exec(compile(block, "library.md", "exec"), names)


no_gpu = pytest.mark.filterwarnings("ignore:'pin_memory' argument:UserWarning")  # of a Trainer


@no_gpu
@pytest.mark.integration
def test_the_guide_to_a_model_of_ones_own_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In few steps: the loss falls, and numbers in the units of the text come out."""
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    before, _, after = GUIDE.partition(COMMANDS)
    few = before.replace("STEPS = 1000", "STEPS = 60")
    assert few != before
    names: dict[str, Any] = {}
    run(few, names)
    run(after.partition("## Errors")[2], names)
    losses = names["losses"]
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
    assert names["r2"] > 0.3 and names["measured"]["eval_r2"] > 0.3
    assert (names["low"] < names["high"]).all() and names["draws"].shape == (500, 100)
    assert names["answer"].shape == (1,)
    distances = names["number_losses"]
    assert sum(distances[-5:]) < 0.8 * sum(distances[:5])
    assert names["whole_loss"](names["outputs"], names["labels"]).isfinite()
    assert len(names["written"]) == 8
    assert all(re.fullmatch(r" ?-?\d{1,2}\.\d", text) for text in names["written"])
    assert names["answers"] == [float(text) for text in names["written"]]
    *_, first, second = capsys.readouterr().out.splitlines()
    assert "token" in first and "text 1" in second


def check_estimator_section(names: dict[str, Any]) -> None:
    assert np.median(names["scores"]) > 0.5
    low, high = names["interval"][0]
    assert low < high


@pytest.mark.integration
def test_the_sections_on_frames_and_scikit_learn_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    section = GUIDE.partition("A data frame (pandas")[2].partition("## As a model of transf")[0]
    names: dict[str, Any] = {"numtok": numtok, "random": np.random.default_rng(0)}
    run(section, names)
    check_estimator_section(names)


@no_gpu
@pytest.mark.slow
def test_the_guide_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three layers of one's own learn to add, and commands make their artifacts."""
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    run(GUIDE, names)
    assert names["r2"] >= 0.99 and names["measured"]["eval_r2"] >= 0.99
    check_estimator_section(names)
    assert names["report"].ref.startswith("arithmetic-xval-nano-test@")
    assert isinstance(names["row"].numbers[0]["value"], float)
