"""Reports by field, for rows without targets, and by target, for rows with several targets."""

import json
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from numtok.cli.output.pages.page import PageChart, RowList
from numtok.cli.output.pages.report import report_page
from numtok.errors import UsageError
from numtok.evaluation.prediction_table import TrainMeans, answers_of
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.reports import PREDICTIONS_FILE, Figures, Report
from numtok.stages import compare
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests import chain
from tests.cases import case
from tests.chain import there, unpadded
from tests.messages import Says
from tests.shell import Shell
from tests.stages import test_train

one_thread = test_train.one_thread

TINY = "nano,layers=1,width=16,heads=2"
SMALL = 1.0, 2.0, 3.0, 4.0  # values of the target `small` in the train split
STEP = 0.5  # offset of its true values in the test split


def row(index: int, split: str) -> str:
    """Return a row with an age and a weight; a few rows of the test split also have a height."""
    random = np.random.default_rng([index, split == "test"])
    told = {"age": int(random.integers(20, 60)), "weight": int(random.integers(50, 100)) + 0.5}
    more = {"height": 170 + index} if split == "test" and index < 5 else {}
    return json.dumps({"id": f"{split}-{index}", "text": json.dumps(told | more), "split": split})


def two(index: int, split: str) -> str:
    """Return a row such as ``x 7 small 4.0 large 1070``. The baseline ``near`` has predictions for
    all small numbers and some of the large ones."""
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


def made(folder: Path, rows: list[str], scheme: str, preset: str) -> Artifact:
    """Make data, a model and its report in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("NUMTOK_THREADS", "1")
        Path("rows.jsonl").write_text("\n".join(rows) + "\n")
        store = Store(folder / "artifacts")
        chain.encoded(store, "rows.jsonl", scheme=scheme, name="rows")
        chain.trained(store, "rows", preset=preset, steps=2, name="model")
        return evaluated(store, name="report")


@pytest.fixture(scope="module")
def of_fields(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    rows = [row(k, "train") for k in range(60)] + [row(k, "test") for k in range(30)]
    return made(tmp_path_factory.mktemp("fields"), rows, "p1000", TINY + ",context=64")


@pytest.fixture(scope="module")
def of_targets(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    rows = [two(k, "train") for k in range(40)] + [two(k, "test") for k in range(8)]
    return made(tmp_path_factory.mktemp("targets"), rows, "xval", TINY)


def evaluated(store: Store, **options: Any) -> Artifact:
    return chain.evaluated(store, "model", "rows", **options)


@pytest.fixture
def report(of_fields: Artifact, numtok: Shell, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """Return the report with fields, and make the folder of its store the working folder."""
    monkeypatch.chdir(of_fields.path.parents[3])
    return of_fields


@pytest.fixture
def targets(of_targets: Artifact, numtok: Shell, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    monkeypatch.chdir(of_targets.path.parents[3])
    return of_targets


def found(artifact: Artifact) -> Report:
    return read(artifact).report


def figure(figures: Figures, metric: str) -> float:
    return there(figures[metric].value)


def test_a_report_has_the_skill_of_each_field_and_their_mean_first(report: Artifact) -> None:
    made = found(report)
    assert list(made.fields) == ["age", "weight", "(others)"]
    numbers = {name: one["mae"].n for name, one in made.fields.items()}
    assert numbers == {"age": 30, "weight": 30, "(others)": 5}
    assert next(iter(made.metrics)) == "field-skill"
    skills = [figure(made.fields[name], "field-skill") for name in ("age", "weight")]
    assert figure(made.metrics, "field-skill") == pytest.approx(np.mean(skills))
    assert made.metrics["field-skill"].n == 60 and made.metrics["r2"].n == 65
    assert made.fields["(others)"]["field-skill"].value is None
    [note] = [note for note in made.notes if "field" in note]
    assert "leaves out 5 numbers in no field" in note and note.endswith("the other 60.")


def test_predictions_have_their_field_and_its_median(report: Artifact) -> None:
    rows = pq.read_table(report.path / PREDICTIONS_FILE).to_pylist()
    learnt = [json.loads(json.loads(row(k, "train"))["text"]) for k in range(60)]
    medians = {name: sorted(one[name] for one in learnt)[29] for name in ("age", "weight")}
    for one in rows:
        name = ("age", "weight", "(others)")[one["position"]]
        assert (one["field"], one["field_median"]) == (name, medians.get(name))
    for name, median in medians.items():
        mine = [one for one in rows if one["field"] == name]
        mean = found(report).train_mean
        said = [one["prediction"] if one["valid"] else mean for one in mine]
        own = np.mean([abs(one["truth"] - value) for one, value in zip(mine, said, strict=True)])
        usual = np.mean([abs(one["truth"] - median) for one in mine])
        skill = figure(found(report).fields[name], "field-skill")
        assert skill == pytest.approx(max(-1, 1 - own / usual))


def test_what_knows_the_field_alone_has_hardly_any_skill_and_a_better_r2(report: Artifact) -> None:
    """R2 over all numbers rewards knowing only the field of a number; field-skill does not."""
    baselines = found(report).baselines
    assert abs(figure(baselines["field"], "field-skill")) < 0.1
    assert figure(baselines["mean"], "field-skill") < -0.5
    assert figure(baselines["quantization"], "field-skill") == 1
    assert figure(baselines["field"], "r2") > figure(baselines["mean"], "r2") + 0.1


def test_fields_may_be_left_out_or_asked_for(report: Artifact) -> None:
    store = Store(Path("artifacts"))
    without = evaluated(store, fields="no", name="without")
    assert without.ref.partition("@")[2] != report.ref.partition("@")[2]
    made = found(without)
    assert made.fields == {} and "field-skill" not in made.metrics and "field" not in made.baselines
    table = pq.read_table(without.path / PREDICTIONS_FILE)
    assert table.column("field").null_count == table.column("field_median").null_count == len(table)
    asked = found(evaluated(store, fields="yes", name="asked"))
    assert asked == found(report)


def test_targets_are_fields_where_they_are_asked_for(report: Artifact) -> None:
    store = Store(Path("artifacts"))
    lines = []
    for split, rows in (("train", 30), ("test", 24)):
        for index in range(rows):
            text, start = f"a {index} b {2 * index}", len(f"a {index} b ")
            told = {"id": f"{split}-{index}", "text": text, "split": split}
            lines.append(json.dumps(told | {"targets": {"double": [[start, len(text)]]}}))
    Path("named.jsonl").write_text("\n".join(lines) + "\n")
    chain.encoded(store, "named.jsonl", scheme="p1000", name="named")
    chain.trained(store, "named", preset=TINY, steps=2, name="doubler")
    for fields, expected in (("auto", []), ("yes", ["double"])):
        with case(fields):
            how = {"fields": fields, "name": f"named-{fields}"}
            made = found(chain.evaluated(store, "doubler", "named", **how))
            assert list(made.fields) == expected
            assert ("field-skill" in made.metrics) is bool(expected)
            assert ("field-skill" in made.baselines["mean"]) is bool(expected)


def test_compare_and_gates_take_fields(report: Artifact, numtok: Shell) -> None:
    store = Store(Path("artifacts"))
    other = evaluated(store, decode="free", name="free")
    config = compare.Config((report.ref, other.ref), by="field")
    comparison = compare.run(config, store)
    assert [part.value for part in comparison.parts] == ["(others)", "age", "weight"]
    assert next(iter(comparison.metrics)) == "field-skill"
    for part in comparison.parts[1:]:
        assert part.value is not None and part.reference is not None
        [one, _] = part.standings.values()
        skill = figure(found(report).fields[part.value], "field-skill")
        assert one["field-skill"].figure.value == pytest.approx(skill)
    ran = numtok("compare", "report", "free", "--by", "field")
    assert ran.code == 0 and max(map(len, ran.out.splitlines())) <= 80
    assert numtok("compare", "report", "--require", "field-skill>=-1").code == 0
    assert numtok("compare", "report", "--require", "field-skill>1").code == 1


def test_fields_are_printed_within_80_columns(report: Artifact, numtok: Shell) -> None:
    out = numtok("report", "report").out
    assert max(map(len, out.splitlines())) <= 80
    lines = unpadded(out)
    at = lines.index("field n skill 95% interval r2 mae error")
    fields = [line.partition(" ")[0] for line in lines[at + 2 : at + 5]]
    assert fields == ["age", "weight", "(others)"]
    printed = numtok("report", "report", "--format", "csv").out.splitlines()
    assert [line for line in printed if line.startswith("field,age,field-skill,30,")]


def test_a_page_shows_fields_as_the_report_has_them(report: Artifact) -> None:
    page = report_page(read(report), Store(Path("artifacts")).resolve)
    parts = [part for section in page.sections for part in section.parts]
    [chart] = [one for one in parts if isinstance(one, PageChart) and one.heading == "By field"]
    assert [mark.label for mark in chart.panel.marks] == ["age", "weight"]
    [rows] = [one for one in parts if isinstance(one, RowList)]
    assert {one.cells[0] for one in rows.rows} == {"age", "weight", "(others)"}


def test_fields_are_of_numbers_alone(report: Artifact, says: Says) -> None:
    store = Store(Path("artifacts"))
    size = TINY + ",context=64"
    chain.trained(store, "rows", preset=size, steps=2, objective="ar", name="causal")
    with says.raises(UsageError, "--fields", "--fill answers"):
        chain.evaluated(store, "causal", "rows", fill="answers", fields="yes")


# --- several targets ---------------------------------------------------------------------------


def test_each_target_has_its_own_mean_and_baselines(targets: Artifact) -> None:
    made = found(targets)
    assert made.target_means == {"large": 1195.0, "small": 2.5}
    baselines = made.target_baselines
    assert set(baselines) == {"large", "small"}
    small, large = np.array(SMALL) + STEP, 1000 + 10.0 * np.arange(8)
    assert figure(baselines["small"]["mean"], "mse") == pytest.approx(np.mean((small - 2.5) ** 2))
    assert figure(baselines["large"]["mean"], "mse") == pytest.approx(np.mean((large - 1195) ** 2))
    # The nearest value is searched only among values of the same target.
    assert figure(baselines["small"]["nearest"], "mse") == pytest.approx(STEP**2)
    assert figure(baselines["large"]["nearest"], "mse") == 0
    assert figure(baselines["large"]["linear"], "mse") == pytest.approx(0, abs=1e-9)
    overall = (
        figure(baselines["small"]["mean"], "mse") + figure(baselines["large"]["mean"], "mse")
    ) / 2
    assert figure(made.baselines["mean"], "mse") == pytest.approx(overall)


def test_each_target_has_the_deviation_of_its_own_errors(targets: Artifact, says: Says) -> None:
    """The standard deviation of the Gaussian is the root mean square error of its target, here on
    the train split, because the data have no validation split."""
    learnt = evaluated(Store(Path("artifacts")), split="train", name="learnt")
    errors: dict[str, list[float]] = {"small": [], "large": []}
    for one in chain.predictions_of(learnt):
        errors[one["target"]].append(one["prediction"] - one["truth"])
    deviation = {name: np.sqrt(np.mean(np.square(off))) for name, off in errors.items()}
    assert deviation["large"] > 10 * deviation["small"]
    for one in chain.predictions_of(targets):
        usual = NormalDist(one["prediction"], float(deviation[one["target"]]))
        assert one["log_density"] == pytest.approx(np.log(usual.pdf(one["truth"])), abs=1e-3)
    told = str(found(targets).decoding["distribution"])
    says(told, "Gaussian", "per target", "measured on the train split")


def test_what_is_no_number_counts_as_the_mean_of_its_target(targets: Artifact) -> None:
    table = pq.read_table(targets.path / PREDICTIONS_FILE)
    table = table.set_column(table.column_names.index("valid"), "valid", [[False] * table.num_rows])
    made = answers_of(table, TrainMeans(9.0, {"small": 2.5, "large": 1195.0}), "report")
    wanted = {"small": 2.5, "large": 1195.0}
    assert made.prediction.tolist() == [wanted[name] for name in table["target"].to_pylist()]
    assert set(answers_of(table, TrainMeans(9.0), "report").prediction.tolist()) == {9.0}


def test_reports_compare_target_by_target_with_skill(targets: Artifact, numtok: Shell) -> None:
    config = compare.Config((str(targets.path),), metrics=("mse",), by="target")
    made = compare.run(config, Store(Path("artifacts")))
    assert [part.value for part in made.parts] == ["large", "small"]
    baselines = [baseline.name for baseline in made.parts[1].baselines]
    assert baselines[:4] == ["quantization", "mean", "median", "near"]
    assert "target" in ReportPredictions.read(read(targets)).group_names
    ran = numtok("compare", "report", "--by", "target", "--metric", "mse")
    assert ran.code == 0 and max(map(len, ran.out.splitlines())) <= 80
    lines = unpadded(ran.out)
    start = lines.index("target small, split test, 8 numbers")
    title = "skill by mse: 1 - error / error of the baseline"
    at = lines.index(title, start)
    error = there(found(targets).by_target["small"]["mse"].value)
    assert lines[at + 1].startswith("experiment mean median near linear")
    skill = float(lines[at + 3].split()[3])
    assert skill == pytest.approx(1 - error, rel=1e-3)  # the error of near is 1
    limits = lines.index("limits, computed from the true values:", start)
    assert lines.index("baselines:", start) < limits < at
    assert [line.split()[0] for line in lines[limits + 1 :][:2]] == ["quantization", "nearest"]


def test_a_report_shows_the_baselines_of_each_target(targets: Artifact, numtok: Shell) -> None:
    lines = " ".join(numtok("report", "report").out.split())
    for name in ("large", "small"):
        assert f"baselines of target {name}" in lines
    assert "Skill is 1 - error / error of the baseline." in lines
    rows = numtok("report", "report", "--format", "csv").out.splitlines()
    assert any(line.startswith("baseline of target small,nearest,mse,8,0.25,") for line in rows)


def test_a_baseline_that_says_nothing_of_some_numbers_is_scored_on_the_others(
    targets: Artifact, numtok: Shell, says: Says
) -> None:
    """Missing predictions are not replaced by the mean. The skill over such a baseline is left out,
    because it would be over other numbers."""
    made = found(targets)
    small, large = (made.target_baselines[name]["near"] for name in ("small", "large"))
    assert (small["mse"].n, large["mse"].n, made.baselines["near"]["mse"].n) == (8, 6, 14)
    assert [figure(small, "mse"), figure(large, "mse")] == pytest.approx([1, 9])
    assert figure(made.baselines["near"], "mse") == pytest.approx((8 * 1 + 6 * 9) / 14)
    [note] = chain.other_notes(made.notes)
    says(note, "Baseline 'near'", "lacks predictions", "only the other 14")
    # The linear baseline for the large numbers does not use `near`, so it does not change.
    assert figure(made.target_baselines["large"]["linear"], "mse") == pytest.approx(0, abs=1e-9)
    told = numtok("report", "report", "--format", "md").out.splitlines()
    heads = [line.split("|")[6].strip() for line in told if "quantization |" in line]
    assert heads == ["near (87.5%)", "near (75%)", "near"]
    compared = numtok("compare", "report", "--metric", "mse").out
    title = "skill by mse: 1 - error / error of the baseline"
    assert "near (87.5%)" in compared and " near " not in compared.partition(title)[2]
