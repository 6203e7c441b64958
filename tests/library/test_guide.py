"""The Python pages run: python-model.md with few steps, and in full in a slow test."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docs.site.console import blocks
from tests import fakemodels

one_thread = fakemodels.one_thread

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs/how-to"
MODEL = (PAGES / "python-model.md").read_text("utf-8")
COMMANDS = (PAGES / "python-commands.md").read_text("utf-8")
REGRESSOR = (PAGES / "text-regressor.md").read_text("utf-8")


def run(page: str, names: dict[str, Any]) -> None:
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.text, "page", "exec"), names)


no_gpu = pytest.mark.filterwarnings("ignore:'pin_memory' argument:UserWarning")  # from a Trainer


@no_gpu
@pytest.mark.integration
def test_the_guide_to_a_model_of_ones_own_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With few steps, the loss falls and predictions are in the units of the text."""
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    few = MODEL.replace("STEPS = 1000", "STEPS = 60")
    assert few != MODEL
    names: dict[str, Any] = {}
    run(few, names)
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


@pytest.mark.integration
def test_the_page_on_scikit_learn_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    run(REGRESSOR, names)
    assert np.median(names["scores"]) > 0.5
    low, high = names["interval"][0]
    assert low < high


@no_gpu
@pytest.mark.integration
def test_the_page_on_commands_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    run(COMMANDS, names)
    assert names["report"].ref.startswith("arithmetic-xval-nano-test@")
    assert isinstance(names["row"].numbers[0]["value"], float)


@no_gpu
@pytest.mark.slow
def test_the_guide_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own model of three layers learns addition."""
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    run(MODEL, names)
    assert names["r2"] >= 0.99 and names["measured"]["eval_r2"] >= 0.99
