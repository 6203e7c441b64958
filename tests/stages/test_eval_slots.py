"""Rows without targets: a report has figures by slot, which compare, gates and pages take."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from numtok.cli.output.pages.page import PageChart, RowList
from numtok.cli.output.pages.report import report_page
from numtok.errors import UsageError
from numtok.evaluation.report_files import read
from numtok.reports import PREDICTIONS_FILE, Report
from numtok.stages import compare, train
from numtok.stages import eval as evaluation
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.cases import case
from tests.cli import test_store_commands as test_cli_store
from tests.cli.test_store_commands import Shell
from tests.messages import Says
from tests.stages import test_train

numtok = test_cli_store.numtok  # the fixture
one_thread = test_train.one_thread

TINY = "nano,layers=1,width=16,heads=2,context=64"


def row(index: int, split: str) -> str:
    """Ages of 20 to 59 and weights of 50.5 to 99.5; some of the test split have a height."""
    random = np.random.default_rng([index, split == "test"])
    told = {"age": int(random.integers(20, 60)), "weight": int(random.integers(50, 100)) + 0.5}
    more = {"height": 170 + index} if split == "test" and index < 5 else {}
    return json.dumps({"id": f"{split}-{index}", "text": json.dumps(told | more), "split": split})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Artifact]:
    """A folder with data, a model and its report."""
    folder = tmp_path_factory.mktemp("slots")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("NUMTOK_THREADS", "1")
        rows = [row(k, "train") for k in range(60)] + [row(k, "test") for k in range(30)]
        Path("rows.jsonl").write_text("\n".join(rows) + "\n")
        store = Store(folder / "artifacts")
        encode(EncodeConfig(("rows.jsonl",), scheme="p1000", name="rows"), store, lambda *_: None)
        train.run(train.Config("rows", preset=TINY, steps=2, name="model"), store, lambda _: None)
        return folder, evaluated(store, name="report")


def evaluated(store: Store, **options: str) -> Artifact:
    config = evaluation.Config("model", "rows", **options)  # type: ignore[arg-type]
    return evaluation.run(config, store, lambda *told: None).artifact


@pytest.fixture
def report(made: tuple[Path, Artifact], numtok: Shell, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    folder, artifact = made
    monkeypatch.chdir(folder)
    return artifact


def found(artifact: Artifact) -> Report:
    return read(artifact).report


def figure(figures: object, metric: str) -> float:
    told = figures[metric].value  # type: ignore[index]
    assert isinstance(told, float)
    return told


def test_a_report_has_the_skill_of_each_slot_and_their_mean_first(report: Artifact) -> None:
    made = found(report)
    assert list(made.slots) == ["age", "weight", "(others)"]
    assert {name: one["mae"].n for name, one in made.slots.items()} == {
        "age": 30,
        "weight": 30,
        "(others)": 5,
    }
    assert next(iter(made.metrics)) == "slot-skill"
    skills = [figure(made.slots[name], "slot-skill") for name in ("age", "weight")]
    assert figure(made.metrics, "slot-skill") == pytest.approx(np.mean(skills))
    assert made.metrics["slot-skill"].n == 60 and made.metrics["r2"].n == 65
    assert made.slots["(others)"]["slot-skill"].value is None
    [note] = [note for note in made.notes if "slot" in note]
    assert note.startswith("5 numbers are in no slot") and note.endswith("the other 60.")


def test_predictions_have_their_slot_and_its_median(report: Artifact) -> None:
    rows = pq.read_table(report.path / PREDICTIONS_FILE).to_pylist()
    learnt = [json.loads(json.loads(row(k, "train"))["text"]) for k in range(60)]
    medians = {name: sorted(one[name] for one in learnt)[29] for name in ("age", "weight")}
    for one in rows:
        name = ("age", "weight", "(others)")[one["position"]]
        assert (one["slot"], one["slot_median"]) == (name, medians.get(name))
    for name, median in medians.items():
        mine = [one for one in rows if one["slot"] == name]
        mean = found(report).train_mean
        said = [one["prediction"] if one["valid"] else mean for one in mine]
        own = np.mean([abs(one["truth"] - value) for one, value in zip(mine, said, strict=True)])
        usual = np.mean([abs(one["truth"] - median) for one in mine])
        skill = figure(found(report).slots[name], "slot-skill")
        assert skill == pytest.approx(max(-1, 1 - own / usual))


def test_what_knows_the_slot_alone_has_hardly_any_skill_and_a_better_r2(report: Artifact) -> None:
    """So R2 over all numbers says little of a model, and slot-skill does not."""
    baselines = found(report).baselines
    assert abs(figure(baselines["slot"], "slot-skill")) < 0.1
    assert figure(baselines["mean"], "slot-skill") < -0.5
    assert figure(baselines["quantisation"], "slot-skill") == 1
    assert figure(baselines["slot"], "r2") > figure(baselines["mean"], "r2") + 0.1


def test_slots_may_be_left_out_or_asked_for(report: Artifact) -> None:
    store = Store(Path("artifacts"))
    without = evaluated(store, slots="no", name="without")
    assert without.ref.partition("@")[2] != report.ref.partition("@")[2]
    made = found(without)
    assert made.slots == {} and "slot-skill" not in made.metrics and "slot" not in made.baselines
    table = pq.read_table(without.path / PREDICTIONS_FILE)
    assert table.column("slot").null_count == table.column("slot_median").null_count == len(table)
    asked = found(evaluated(store, slots="yes", name="asked"))
    assert asked == found(report)


def test_targets_are_slots_where_they_are_asked_for(report: Artifact) -> None:
    store = Store(Path("artifacts"))
    lines = []
    for split, rows in (("train", 30), ("test", 24)):
        for index in range(rows):
            text, start = f"a {index} b {2 * index}", len(f"a {index} b ")
            told = {"id": f"{split}-{index}", "text": text, "split": split}
            lines.append(json.dumps(told | {"targets": {"double": [[start, len(text)]]}}))
    Path("named.jsonl").write_text("\n".join(lines) + "\n")
    encode(EncodeConfig(("named.jsonl",), scheme="p1000", name="named"), store, lambda *_: None)
    train.run(train.Config("named", preset=TINY, steps=2, name="doubler"), store, lambda _: None)
    for slots, expected in (("auto", []), ("yes", ["double"])):
        with case(slots):
            config = evaluation.Config("doubler", "named", slots=slots, name=f"named-{slots}")
            made = found(evaluation.run(config, store, lambda *told: None).artifact)
            assert list(made.slots) == expected
            assert ("slot-skill" in made.metrics) is bool(expected)
            assert ("slot-skill" in made.baselines["mean"]) is bool(expected)


def test_compare_and_gates_take_slots(report: Artifact, numtok: Shell) -> None:
    store = Store(Path("artifacts"))
    other = evaluated(store, decode="free", name="free")
    config = compare.Config((report.ref, other.ref), by="slot")
    comparison = compare.run(config, store)
    assert [part.value for part in comparison.parts] == ["(others)", "age", "weight"]
    assert next(iter(comparison.metrics)) == "slot-skill"
    for part in comparison.parts[1:]:
        assert part.value is not None and part.reference is not None
        [one, _] = part.standings.values()
        skill = figure(found(report).slots[part.value], "slot-skill")
        assert one["slot-skill"].figure.value == pytest.approx(skill)
    ran = numtok("compare", "report", "free", "--by", "slot")
    assert ran.code == 0 and max(map(len, ran.out.splitlines())) <= 80
    assert numtok("compare", "report", "--require", "slot-skill>=-1").code == 0
    assert numtok("compare", "report", "--require", "slot-skill>1").code == 1


def test_slots_are_printed_within_80_columns(report: Artifact, numtok: Shell) -> None:
    out = numtok("report", "report").out
    assert max(map(len, out.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in out.splitlines()]
    at = lines.index("slot n skill r2 mae error")
    assert [line.partition(" ")[0] for line in lines[at + 2 : at + 5]] == [
        "age",
        "weight",
        "(others)",
    ]
    printed = numtok("report", "report", "--format", "csv").out.splitlines()
    assert [line for line in printed if line.startswith("slot,age,slot-skill,30,")]


def test_a_page_shows_slots_as_the_report_has_them(report: Artifact) -> None:
    page = report_page(read(report), Store(Path("artifacts")).resolve)
    parts = [part for section in page.sections for part in section.parts]
    [chart] = [one for one in parts if isinstance(one, PageChart) and one.heading == "By slot"]
    assert [mark.label for mark in chart.panel.marks] == ["age", "weight"]
    [rows] = [one for one in parts if isinstance(one, RowList)]
    assert {one.cells[0] for one in rows.rows} == {"age", "weight", "(others)"}


def test_slots_are_of_numbers_alone(report: Artifact, says: Says) -> None:
    store = Store(Path("artifacts"))
    causal = train.Config("rows", preset=TINY, steps=2, objective="ar", name="causal")
    train.run(causal, store, lambda _: None)
    config = evaluation.Config("causal", "rows", fill="answers", slots="yes")
    with pytest.raises(UsageError) as caught:
        evaluation.run(config, store, lambda *told: None)
    says(caught.value, "--slots", "--fill answers")
