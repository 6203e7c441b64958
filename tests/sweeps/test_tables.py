"""``numtok sweep`` on tables: folds, selection on held-out rows, and output."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from numtok.cli.output.figures import number
from numtok.errors import UsageError
from numtok.evaluation.comparison.seeds import FoldStatistics
from numtok.evaluation.report_files import Evaluation, read
from numtok.reports import PREDICTIONS_FILE, REPORT
from numtok.stages import eval, table, train
from numtok.store.artifact import MODEL
from numtok.store.store import Store
from numtok.sweeps.file import read_sweep
from numtok.sweeps.runs import Run
from numtok.sweeps.sweep import Average, Config, Result, averages, ranks, run
from numtok.training.trained_table import held_back
from tests.messages import Says
from tests.shell import Shell

SMALL = 'preset = "mlp,layers=1,width=4"\nepochs = 2\n'
FOLDS = f'data = "rows.csv"\n[table]\ntarget = "y"\n[train]\n{SMALL}'
CHOOSE = '[select]\nmetric = "mae"\nover = ["head"]\n[compare]\nmetric = ["mse", "mae"]\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with a table of two folds, with one thread."""
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    lines = ["x,y,split_0,split_1"]
    for row in range(60):
        first, second = ("test" if row % 6 == fold else "train" for fold in (0, 1))
        lines.append(f"{row},{row * row % 37},{first},{second}")
    Path("rows.csv").write_text("\n".join(lines) + "\n")


def store() -> Store:
    return Store(Path("artifacts"))


def swept(text: str) -> Result:
    Path("sweep.toml").write_text(text)
    return run(Config("sweep.toml", changes=(), jobs=1), store(), lambda _: None)


def evaluations() -> list[Evaluation]:
    return [read(one) for one in store().artifacts() if one.kind == REPORT]


def ids(of: Evaluation, fold: int) -> list[int]:
    rows = pq.read_table(of.artifact.path / PREDICTIONS_FILE).to_pylist()
    return [int(row["id"]) for row in rows if row["position"] == fold]


def test_the_best_head_of_each_kind_is_chosen_and_found_again() -> None:
    text = f'{FOLDS}head = ["riemann:4", "riemann:8", "pointwise"]\n{CHOOSE}'
    result = swept(text)
    assert [one.group for one in result.choices] == ["head=riemann", "head=pointwise"]
    looked_at = {
        one.report.scheme: one.report.metrics["mae"].value
        for one in evaluations()
        if one.report.split == "validation"
    }
    assert set(looked_at) == {"riemann:4", "riemann:8", "pointwise"}
    best = min(("riemann:4", "riemann:8"), key=lambda head: looked_at[head] or 0)
    assert [one.chosen for one in result.choices] == [f"head={best}", "head=pointwise"]
    assert result.choices[0].figure == pytest.approx(looked_at[best])
    tested = {one.report.scheme for one in evaluations() if one.report.split == "test"}
    assert tested == {best, "pointwise"}
    made = [one.ref for one in store().artifacts()]
    assert swept(text).tables == result.tables
    assert [one.ref for one in store().artifacts()] == made


def test_folds_are_one_report_whose_mean_and_deviation_are_shown(numtok: Shell) -> None:
    text = f'{FOLDS}head = ["riemann:4", "pointwise"]\nseed = [0, 1]\n[compare]\nmetric = "mse"\n'
    ((label, comparison),) = swept(text).tables
    assert (label, comparison.numbers, comparison.parts[0].numbers) == ("", 20, 20)
    folds = [
        [one.report.groups["fold"][fold]["mse"].value or 0.0 for fold in ("0", "1")]
        for one in evaluations()
        if one.report.scheme == "pointwise" and one.report.split == "test"
    ]
    each = np.mean(folds, axis=0)
    over = comparison.over_folds["pointwise"]["mse"]
    assert over.mean == pytest.approx(each.mean())
    assert over.count == 2
    assert over.deviation == pytest.approx(each.std(ddof=1))
    shown = numtok("sweep", "sweep.toml", "--jobs", "1").out
    assert "over 2 folds: mean ± standard deviation\n" in shown
    assert re.search(rf"^pointwise \(2 seeds\) +{number(over.mean)} ± ", shown, re.M)
    rows = csv.DictReader(io.StringIO(numtok("sweep", "sweep.toml", "--format", "csv").out))
    found = [row for row in rows if (row["kind"], row["label"]) == ("over folds", "pointwise")]
    assert [(float(row["figure"]), row["n"]) for row in found] == [(over.mean, "2")]


def test_what_cannot_be_fitted_stops_nothing_else(says: Says) -> None:
    result = swept(f'{FOLDS}head = ["token", "pointwise"]\nfold = [0, 1]\n')
    assert {one.label for one in result.failed} == {"head=token, fold=0", "head=token, fold=1"}
    says(result.failed[0].problem, "--head token only applies to text models")
    assert [one.label for one in result.tables] == ["fold=0", "fold=1"]
    assert [one.comparison.over_folds for one in result.tables] == [{}, {}]


def test_tables_that_are_made_are_data_sets_and_draws_experiments(numtok: Shell) -> None:
    text = f"""
        [gen]
        task = "curves"
        curve = ["line", "kink"]
        rows = 60
        split = "test=0.5"
        [train]
        {SMALL}
        head = "decoder:ud,base=4,mantissa=2"
        [eval]
        num-samples = [2, 4]
        point = "mean"
    """
    Path("sweep.toml").write_text(text)
    found = json.loads(numtok("sweep", "sweep.toml", "--jobs", "1", "--json").out)
    assert [one["label"] for one in found["tables"]] == ["curve=line", "curve=kink"]
    (first, second) = found["tables"][0]["comparison"]["experiments"]
    assert [one["settings"]["decoding.draws"] for one in (first, second)] == ["2", "4"]
    assert first["label"] == "decoder:ud,base=4,mantissa=2, decoding.draws=2"
    assert sum(one.kind == MODEL for one in store().artifacts()) == 2


def test_every_way_has_its_mean_over_the_data_sets(numtok: Shell) -> None:
    text = (
        '[gen]\ntask = "curves"\ncurve = ["line", "kink"]\nrows = 60\n'
        f'[train]\n{SMALL}head = ["riemann:4", "riemann:8", "pointwise"]\nlr = [1e-3, 1e-2]\n'
        + CHOOSE.replace('["head"]', '["head", "lr"]')
    )
    result = swept(text)
    assert [one.label for one in result.averages] == ["head=riemann", "head=pointwise"]
    figures = [
        one.comparison.parts[0].standings[one.comparison.experiments[1].label]["mse"].figure.value
        for one in result.tables
    ]
    assert [one.scheme for table in result.tables for one in table.comparison.experiments][
        1::2
    ] == ["pointwise", "pointwise"]
    over = result.averages[1].metrics["mse"]
    assert (over.count, over.mean) == (2, sum(value or 0.0 for value in figures) / 2)
    shown = numtok("sweep", "sweep.toml", "--jobs", "1").out
    assert "\nover the data sets: mean ± standard deviation\n" in shown
    assert re.search(rf"^head=pointwise +2 +{number(over.mean)} ± ", shown, re.M)
    rows = csv.DictReader(io.StringIO(numtok("sweep", "sweep.toml", "--format", "csv").out))
    found = [row for row in rows if row["kind"] == "over data sets" and row["metric"] == "mse"]
    assert [row["label"] for row in found] == ["head=riemann", "head=pointwise"]
    found = json.loads(numtok("sweep", "sweep.toml", "--json").out)["averages"]
    assert found[1]["metrics"]["mse"]["mean"] == over.mean
    assert [on["mse"] for on in found[1]["each"]] == figures
    assert "ranks by " in shown and result.ranks is not None
    assert set(result.ranks.ways) == {"head=riemann", "head=pointwise"}


def of_each(label: str, *values: float | None) -> Average:
    return Average(label, {}, [{"r2": value, "mse": value} for value in values])


def test_ways_are_ranked_on_each_data_set() -> None:
    ways = [of_each("a", 0.9, 0.5, 0.7), of_each("b", 0.8, 0.5, 0.9), of_each("c", 0.1, 0.2, 0.3)]
    found = ranks(ways, {"slope": "neither", "r2": "higher", "mse": "lower"}, 3)
    assert found is not None and (found.metric, found.data_sets) == ("r2", 3)
    means = {label: over.mean for label, over in found.ways.items()}
    assert means == {"a": 1.5, "b": 1.5, "c": 3.0}  # a: 1, 1.5, 2; b: 2, 1.5, 1
    # Demšar (2006), Table 5: q is 2.343 for three classifiers at 5%.
    assert found.apart == pytest.approx(2.343 * (3 * 4 / (6 * 3)) ** 0.5, abs=1e-3)
    lower = ranks(ways, {"mse": "lower"}, 3)
    assert lower is not None and next(iter(lower.ways)) == "c"


def test_a_way_that_lacks_a_data_set_has_no_rank() -> None:
    ways = [of_each("a", 0.9, 0.5), of_each("b", 0.8, None), of_each("c", 0.8)]
    assert ranks(ways, {"r2": "higher"}, 2) is None
    found = ranks([*ways, of_each("d", 0.1, 0.6)], {"r2": "higher"}, 2)
    assert found is not None and set(found.ways) == {"a", "d"}
    assert ranks([], {}, 0) is None


def test_ways_on_different_data_sets_are_not_ranked() -> None:
    ways = [
        of_each("on the first and second", 0.9, 0.5),
        of_each("on the second and third", 0.8, 0.4),
    ]
    assert ranks(ways, {"r2": "higher"}, 3) is None


def test_a_metric_that_a_data_set_lacks_is_undefined_over_all() -> None:
    text = (
        '[gen]\ntask = "curves"\ncurve = ["line", "kink"]\nrows = 60\n'
        f'[train]\n{SMALL}head = ["riemann:4", "pointwise"]\n'
    )
    found = swept(text)
    comparisons = [one.comparison for one in found.tables]
    standings = [standing for one in comparisons for standing in one.parts[0].standings.values()]
    lost, kept = list(standings[0])[:2]
    for standing in standings[-2:]:
        del standing[lost]
    sweep = read_sweep(Path("sweep.toml"))
    points = [{**data, **way} for data, _ in sweep.data for way, _ in sweep.train]
    runs = [
        Run(index=index, table="", point=point, train=train.Config(""), eval=eval.Config("", ""))
        for index, point in enumerate(points)
    ]
    refs = [one.reports[0] for comparison in comparisons for one in comparison.experiments]
    reports = {index: Path("report", *ref.split("@")) for index, ref in enumerate(refs)}
    averaged = averages(sweep, runs, reports, comparisons)
    assert [one.metrics[lost] for one in averaged] == [FoldStatistics(None, None, 2)] * 2
    assert all(one.metrics[kept].mean is not None for one in averaged)


def test_a_split_that_is_not_there_is_told_before_anything_is_fitted(says: Says) -> None:
    result = swept(f'{FOLDS}[eval]\nsplit = "other"\n')
    says(result.failed[0].problem, "unknown split of rows@", "'other'. Known: test, train")
    assert all(one.kind != MODEL for one in store().artifacts())


def test_texts_are_no_table(says: Says) -> None:
    Path("rows.jsonl").write_text('{"text": "5"}\n')
    Path("sweep.toml").write_text('data = "rows.jsonl"\n')
    with says.raises(UsageError, "sweep.toml: rows.jsonl is not a table", "[encode] with a scheme"):
        run(Config("sweep.toml"), store(), lambda _: None)


# --- held-out rows -----------------------------------------------------------------------------


def validated(*, rows: int | None = None, seed: int = 0, other: bool = False) -> Evaluation:
    """Return a report on split validation of a table that has no such split."""
    source = table.run(table.Config("rows.csv", target="y"), store()).ref
    config = train.Config(
        source, preset="mlp,layers=1,width=4", rows=rows, epochs=1, validation=0.2, seed=seed
    )
    model = train.run(config, store(), lambda _: None).artifact
    if other:
        Path("others.csv").write_text(Path("rows.csv").read_text().replace("59,", "60,"))
        source = table.run(table.Config("others.csv", target="y"), store()).ref
    asked = eval.Config(model.ref, source, split="validation")
    return read(eval.run(asked, store(), lambda *_: None).artifact)


def test_without_a_validation_split_it_is_the_rows_that_were_held_back() -> None:
    evaluation = validated(seed=3)
    train = np.array([row for row in range(60) if row % 6 != 1])
    assert ids(evaluation, 1) == train[held_back(50, 0.2, 3)[1]].tolist()
    assert evaluation.report.baselines == {}
    assert evaluation.report.notes[-1].startswith("These rows were held out of the train split")


def test_of_fewer_rows_some_are_held_back_and_another_seed_draws_others() -> None:
    first, second = (ids(validated(rows=20, seed=seed), 0) for seed in (0, 1))
    assert len(first) == len(second) == 4
    assert first != second
    assert all(row % 6 for row in first)


def test_another_table_has_no_rows_that_were_held_back(says: Says) -> None:
    with says.raises(UsageError, "fold 0 'validation'. Known: test, train"):
        validated(other=True)


def test_one_row_is_too_few_to_learn_from(says: Says) -> None:
    with says.raises(UsageError, "--rows must be at least 2 (got "):
        train.Config("rows", rows=1)
