"""Rows with several targets: each has a mean, baselines and a skill of its own."""

import json
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow.parquet as pq
import pytest

from numtok.evaluation.report_files import ReportPredictions, TrainMeans, answers, read
from numtok.reports import PREDICTIONS_FILE, Report
from numtok.stages import compare, train
from numtok.stages import eval as evaluation
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.cli import test_store_commands as test_cli_store
from tests.cli.test_store_commands import Shell
from tests.messages import Says
from tests.stages import test_train

numtok = test_cli_store.numtok  # the fixture
one_thread = test_train.one_thread

SMALL = 1.0, 2.0, 3.0, 4.0  # what the target `small` is in training
STEP = 0.5  # and how far off that its truths are in the split `test`


def row(index: int, split: str) -> str:
    """``x 7 small 4.0 large 1070``; a baseline has all of the small ones, and some of the large."""
    small = SMALL[index % 4] + (STEP if split == "test" else 0)
    parts = [("x ", str(index)), (" small ", str(small)), (" large ", str(1000 + 10 * index))]
    text, targets = "", {}
    for word, number in parts:
        text += word
        targets[word.strip()] = [[len(text), len(text) + len(number)]]
        text += number
    del targets["x"]
    floors = {"small": {"near": [small + 1]}}
    if index % 4:
        floors["large"] = {"near": [1000 + 10 * index - 3]}
    told = {"id": f"{split}-{index}", "text": text, "targets": targets, "split": split}
    return json.dumps(told | {"floors": floors})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Artifact]:
    """A folder with data, a model and its report."""
    folder = tmp_path_factory.mktemp("targets")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("NUMTOK_THREADS", "1")
        return folder, report_of_targets()


@pytest.fixture
def report(made: tuple[Path, Artifact], numtok: Shell, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    folder, artifact = made
    monkeypatch.chdir(folder)
    return artifact


def report_of_targets() -> Artifact:
    rows = [row(index, "train") for index in range(40)] + [row(index, "test") for index in range(8)]
    Path("rows.jsonl").write_text("\n".join(rows) + "\n")
    store = Store(Path.cwd() / "artifacts")
    encode(EncodeConfig(("rows.jsonl",), scheme="xval", name="rows"), store, lambda *_: None)
    tiny = train.Config("rows", preset="nano,layers=1,width=16,heads=2", steps=2)
    model = train.run(tiny, store, lambda update: None).artifact
    config = evaluation.Config(model.ref, "rows", name="report")
    return evaluation.run(config, store, lambda *told: None).artifact


def found(artifact: Artifact) -> Report:
    return read(artifact).report


def mse(figures: object) -> float:
    value = figures["mse"].value  # type: ignore[index]
    assert isinstance(value, float)
    return value


def test_each_target_has_its_own_mean_and_baselines(report: Artifact) -> None:
    made = found(report)
    assert made.target_means == {"large": 1195.0, "small": 2.5}
    baselines = made.target_baselines
    assert set(baselines) == {"large", "small"}
    small, large = np.array(SMALL) + STEP, 1000 + 10.0 * np.arange(8)
    assert mse(baselines["small"]["mean"]) == pytest.approx(np.mean((small - 2.5) ** 2))
    assert mse(baselines["large"]["mean"]) == pytest.approx(np.mean((large - 1195) ** 2))
    # The values of the other target are not at hand, though 1000 is the nearest to some.
    assert mse(baselines["small"]["nearest"]) == pytest.approx(STEP**2)
    assert mse(baselines["large"]["nearest"]) == 0
    assert mse(baselines["large"]["linear"]) == pytest.approx(0, abs=1e-9)
    overall = (mse(baselines["small"]["mean"]) + mse(baselines["large"]["mean"])) / 2
    assert mse(made.baselines["mean"]) == pytest.approx(overall)


def test_each_target_has_the_deviation_of_its_own_errors(report: Artifact, says: Says) -> None:
    """A Gaussian whose deviation is the root mean square error of its target; here of the train
    split, since there is no other to measure it on."""
    store = Store(Path("artifacts"))
    config = evaluation.Config(found(report).model, "rows", split="train", name="learnt")
    learnt = evaluation.run(config, store, lambda *told: None).artifact
    errors: dict[str, list[float]] = {"small": [], "large": []}
    for one in pq.read_table(learnt.path / PREDICTIONS_FILE).to_pylist():
        errors[one["target"]].append(one["prediction"] - one["truth"])
    deviation = {name: np.sqrt(np.mean(np.square(off))) for name, off in errors.items()}
    assert deviation["large"] > 10 * deviation["small"]
    for one in pq.read_table(report.path / PREDICTIONS_FILE).to_pylist():
        usual = NormalDist(one["prediction"], float(deviation[one["target"]]))
        assert one["log_density"] == pytest.approx(np.log(usual.pdf(one["truth"])), abs=1e-3)
    told = found(report).decoding["distribution"]
    says(told, "Gaussian", "per target", "measured on the train split")


def test_what_is_no_number_counts_as_the_mean_of_its_target(report: Artifact) -> None:
    table = pq.read_table(report.path / PREDICTIONS_FILE)
    table = table.set_column(table.column_names.index("valid"), "valid", [[False] * table.num_rows])
    made = answers(table, TrainMeans(9.0, {"small": 2.5, "large": 1195.0}), "report")
    wanted = {"small": 2.5, "large": 1195.0}
    assert made.prediction.tolist() == [wanted[name] for name in table["target"].to_pylist()]
    assert set(answers(table, TrainMeans(9.0), "report").prediction.tolist()) == {9.0}


def test_reports_compare_target_by_target_with_skill(report: Artifact, numtok: Shell) -> None:
    made = compare.run(
        compare.Config((str(report.path),), metrics=("mse",), by="target"), Store(Path("artifacts"))
    )
    assert [part.value for part in made.parts] == ["large", "small"]
    assert [baseline.name for baseline in made.parts[1].baselines][:3] == [
        "quantisation",
        "mean",
        "near",
    ]
    assert "target" in ReportPredictions.read(read(report)).group_names
    ran = numtok("compare", "report", "--by", "target", "--metric", "mse")
    assert ran.code == 0 and max(map(len, ran.out.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    start = lines.index("target small, split test, 8 numbers")
    title = "skill by mse: 1 - error / error of the baseline"
    at = lines.index(title, start)
    error = found(report).by_target["small"]["mse"].value
    assert error is not None
    assert lines[at + 1].startswith("experiment mean near linear")
    skill = float(lines[at + 3].split()[2])
    assert skill == pytest.approx(1 - error, rel=1e-3)  # near is off by 1
    limits = lines.index("limits, made of the truth:", start)
    assert lines.index("baselines:", start) < limits < at
    assert [line.split()[0] for line in lines[limits + 1 : limits + 3]] == [
        "quantisation",
        "nearest",
    ]


def test_a_report_shows_the_baselines_of_each_target(report: Artifact, numtok: Shell) -> None:
    ran = numtok("report", "report")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    limits = " (quantisation and nearest are limits, made of the truth)"
    told = f", which need no model{limits}; skill is 1 - error / error of the baseline"
    for name in ("large", "small"):
        assert f"baselines of target {name}{told}" in " ".join(lines)
    rows = numtok("report", "report", "--format", "csv").out.splitlines()
    assert any(line.startswith("baseline of target small,nearest,mse,8,0.25,") for line in rows)


def test_a_baseline_that_says_nothing_of_some_numbers_is_scored_on_the_others(
    report: Artifact, numtok: Shell, says: Says
) -> None:
    """Not as if it had said the mean, and without a skill over it: that is over other numbers."""
    made = found(report)
    small, large = (made.target_baselines[name]["near"] for name in ("small", "large"))
    assert (small["mse"].n, large["mse"].n, made.baselines["near"]["mse"].n) == (8, 6, 14)
    assert [mse(small), mse(large)] == pytest.approx([1, 9])
    assert mse(made.baselines["near"]) == pytest.approx((8 * 1 + 6 * 9) / 14)
    [note] = made.notes
    says(note, "Baseline 'near'", "only the other 14")
    # What is fitted to the large ones has not been given it, and is what it was.
    assert mse(made.target_baselines["large"]["linear"]) == pytest.approx(0, abs=1e-9)
    told = numtok("report", "report", "--format", "md").out.splitlines()
    heads = [line.split("|")[5].strip() for line in told if "quantisation |" in line]
    assert heads == ["near (87.5%)", "near (75%)", "near"]
    compared = numtok("compare", "report", "--metric", "mse").out
    title = "skill by mse: 1 - error / error of the baseline"
    assert "near (87.5%)" in compared and " near " not in compared.partition(title)[2]
