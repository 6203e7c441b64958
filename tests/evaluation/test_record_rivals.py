"""The baselines that read all fields of records."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numtok.data.records.rendering import run
from numtok.errors import UsageError
from numtok.evaluation import tabicl_rival, tabular_rival
from numtok.evaluation.record_splits import RecordSplits, read_record_splits
from numtok.evaluation.rivals import Rivals
from numtok.settings import encode
from numtok.store.store import Store
from tests.messages import Says

SPLIT = "validation=0.2,test=0.2"
TABICL, TABULAR = "tabicl", "tabular"


def records(folder: Path, split: str = SPLIT) -> RecordSplits:
    """Return rows whose target depends on a word, a number and a year."""
    random = np.random.default_rng(0)
    lines = []
    for n in range(400):
        word, a = ("broken", "fine", "unused and sealed")[n % 3], random.normal()
        year = 2000 + n % 20
        y = np.exp(0.5 * (n % 3) + 0.1 * a + 0.05 * (year - 2000))
        lines.append(f"it is {word} ({n}),{a:.4f},{year}-03-{1 + n % 28:02d},{y:.5f}")
    (folder / "sales.csv").write_text("\n".join(["note,a,sold,y", *lines]) + "\n")
    path = str(folder / "sales.csv")
    config = encode.Config((path,), scheme="digits", target=("y",), split=split)
    return read_record_splits(run(config, Store(folder / "artifacts")).artifact, "y", "test")


def error(rival: Rivals, name: str, data: RecordSplits) -> float:
    """Return the mean absolute error of a baseline, as a fraction of the median's."""
    truth = data.values[data.queried]
    return float(
        np.abs(rival.values[name] - truth).mean() / np.abs(truth - np.median(truth)).mean()
    )


def test_rows_and_values_belong_together(tmp_path: Path) -> None:
    data = records(tmp_path)
    lines = (tmp_path / "sales.csv").read_text().splitlines()[1:]
    assert data.values.tolist() == [float(line.rsplit(",", 1)[1]) for line in lines]
    assert [int(row) for row, _, _ in data.keys] == data.queried.tolist()
    assert 50 < len(data.queried) < 110
    parts = np.concatenate([data.train, data.predicted])
    assert sorted(parts) == list(range(400))


# --- tabular -----------------------------------------------------------------------------------


def test_words_dates_and_numbers_are_read(tmp_path: Path) -> None:
    pytest.importorskip("skrub")
    data = records(tmp_path)
    rival = tabular_rival.tabular_rival(data)
    assert error(rival, TABULAR, data) < 0.2
    again = tabular_rival.tabular_rival(data)
    assert np.array_equal(again.values[TABULAR], rival.values[TABULAR])


def test_without_skrub_there_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular_rival, "find_spec", lambda name: None)
    rival = tabular_rival.tabular_rival(records(tmp_path))
    assert not rival.values and rival.keys
    assert "skrub is not installed" in rival.notes[0]


# --- tabicl ------------------------------------------------------------------------------------

VERSION = "some-regressor.ckpt"


class FakeTabICL:
    """Least squares in place of TabICL, with the parameters that the baseline passes."""

    checkpoint_version = VERSION

    def __init__(self, **parameters: Any) -> None:
        if parameters:
            assert not parameters["allow_auto_download"] and parameters["model_path"].is_file()

    def fit(self, x: Any, y: Any) -> "FakeTabICL":
        self.weights = np.linalg.lstsq(self._inputs(x), y)[0]
        return self

    def predict(self, x: Any, output_type: str) -> Any:
        assert output_type == "median"
        return self._inputs(x) @ self.weights

    def _inputs(self, x: Any) -> Any:
        return np.column_stack([np.ones(len(x)), np.nan_to_num(x)])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Install a fake tabicl, with an empty Hugging Face cache. Return the cache's folder."""
    pytest.importorskip("skrub")
    module = ModuleType("tabicl")
    module.__spec__ = ModuleSpec("tabicl", None)
    module.TabICLRegressor = FakeTabICL  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tabicl", module)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def cached(hub: Path, name: str = VERSION) -> Path:
    """Put a checkpoint into a Hugging Face cache, and return its path."""
    folder = hub / "models--jingang--TabICL"
    file = folder / "snapshots" / "0" / name
    file.parent.mkdir(parents=True)
    file.touch()
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("0")
    return file


def test_tabicl_is_silently_absent_without_a_checkpoint(tmp_path: Path, fake: Path) -> None:
    cached(fake, "some-classifier.ckpt")
    data = records(tmp_path)
    assert tabicl_rival.tabicl_rival(data) == Rivals(data.keys, {}, [])
    tabicl_rival.check_tabicl()


@pytest.mark.parametrize("missing", ["tabicl", "skrub"])
def test_tabicl_is_silently_absent_without_a_package(
    tmp_path: Path, fake: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    cached(fake)
    monkeypatch.setattr(tabicl_rival, "find_spec", lambda name: None if name == missing else True)
    data = records(tmp_path)
    assert tabicl_rival.tabicl_rival(data) == Rivals(data.keys, {}, [])
    tabicl_rival.check_tabicl()


def test_an_old_version_of_tabicl_counts_as_absent(
    fake: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: Says
) -> None:
    cached(fake)
    monkeypatch.delattr("tabicl.TabICLRegressor")
    assert tabicl_rival.checkpoint() is None
    monkeypatch.setenv("NUMTOK_TABICL", str(tmp_path / "own.ckpt"))
    with says.raises(UsageError, "NUMTOK_TABICL", "TabICLRegressor", "numtok[tabicl]"):
        tabicl_rival.checkpoint()


def test_a_cached_checkpoint_is_used_unless_another_is_named(
    fake: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = cached(fake)
    assert tabicl_rival.checkpoint() == file
    other = tmp_path / "own.ckpt"
    other.touch()
    monkeypatch.setenv("NUMTOK_TABICL", str(other))
    assert tabicl_rival.checkpoint() == other


def test_tabicl_reads_the_same_rows_and_columns(tmp_path: Path, fake: Path) -> None:
    cached(fake)
    data = records(tmp_path)
    rival = tabicl_rival.tabicl_rival(data)
    assert rival.keys == data.keys and not rival.notes
    assert error(rival, TABICL, data) < 0.3


def test_large_data_is_left_to_other_baselines(
    tmp_path: Path, fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached(fake)
    data = records(tmp_path)
    monkeypatch.setattr(tabicl_rival, "_MOST_VALUES", 400)
    rival = tabicl_rival.tabicl_rival(data)
    assert not rival.values and "400 rows of" in rival.notes[0] and "400 values" in rival.notes[0]
    monkeypatch.setattr(tabicl_rival, "_MOST_ROWS", 399)
    rival = tabicl_rival.tabicl_rival(data)
    assert not rival.values and "400 rows" in rival.notes[0] and "399" in rival.notes[0]


def test_a_wrong_checkpoint_is_an_error_at_once(
    tmp_path: Path, fake: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setenv("NUMTOK_TABICL", str(tmp_path / "none.ckpt"))
    with says.raises(UsageError, "NUMTOK_TABICL", "none.ckpt"):
        tabicl_rival.check_tabicl()

    def fit(self: FakeTabICL, x: Any, y: Any) -> None:
        raise KeyError("config")

    (tmp_path / "none.ckpt").touch()
    monkeypatch.setattr(FakeTabICL, "fit", fit)
    with says.raises(UsageError, "none.ckpt", "KeyError: 'config'", "NUMTOK_TABICL"):
        tabicl_rival.check_tabicl()
    monkeypatch.setattr(tabicl_rival, "find_spec", lambda name: None)
    with says.raises(UsageError, "NUMTOK_TABICL", "skrub is not installed", "numtok[tabicl]"):
        tabicl_rival.check_tabicl()


def save_random(path: Path, **more: int) -> None:
    """Write a checkpoint of a tiny TabICL with random weights."""
    torch = pytest.importorskip("torch")
    network = pytest.importorskip("tabicl._model.tabicl")
    config = {name: 1 for name in ("col_num_blocks", "row_num_blocks", "icl_num_blocks")}
    config |= {name: 2 for name in ("col_nhead", "row_nhead", "row_num_cls", "icl_nhead")}
    config |= {"embed_dim": 16, "col_num_inds": 8, "num_quantiles": 99, **more}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = network.TabICL(**config)
        for parameter in model.parameters():
            parameter.data.normal_(0, 0.3)
    torch.save({"config": config, "state_dict": model.state_dict()}, path)


def test_the_real_package_predicts_from_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    pytest.importorskip("tabicl", reason="tabicl is not installed: numtok[tabicl]")
    pytest.importorskip("skrub")
    save_random(tmp_path / "regressor.ckpt", max_classes=0)
    monkeypatch.setenv("NUMTOK_TABICL", str(tmp_path / "regressor.ckpt"))
    tabicl_rival.check_tabicl()
    data = records(tmp_path)
    first, again = tabicl_rival.tabicl_rival(data), tabicl_rival.tabicl_rival(data)
    values = first.values[TABICL]
    assert values.shape == (len(data.keys),) and np.isfinite(values).all()
    assert len(np.unique(values)) > len(values) / 2  # the fields reach the model
    assert np.array_equal(values, again.values[TABICL])
    save_random(tmp_path / "classifier.ckpt", max_classes=10)
    monkeypatch.setenv("NUMTOK_TABICL", str(tmp_path / "classifier.ckpt"))
    with says.raises(UsageError, "classifier.ckpt", "TabICL's regressor"):
        tabicl_rival.check_tabicl()


@pytest.mark.parametrize("split", [SPLIT, f"{SPLIT},calibration=0.15"])
def test_intervals_are_calibrated_on_rows_that_did_not_train(tmp_path: Path, split: str) -> None:
    pytest.importorskip("skrub")
    data = records(tmp_path, split)
    rival = tabular_rival.tabular_rival(data)
    rows = rival.calibration[TABULAR]
    assert len(rows.truth) == (len(data.calibration) or len(data.validation)) > 30
    low, high = rival.calibration[TABULAR].intervals(point := rival.values[TABULAR])
    truth = data.values[data.queried]
    assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(0.9, abs=0.1)
    assert (low <= point).all() and (point <= high).all() and (low >= 0).all()
    assert np.mean(high - low) < np.ptp(truth)
