"""``numtok train`` and ``eval`` on tables: results, output and errors."""

import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from numtok.errors import DataError, NumtokError, StoreError, UsageError
from numtok.evaluation.table_options import TableOptions, over_grid
from numtok.models.common_heads import HistogramReader, PointReader
from numtok.models.distributions.sampling import Sampling
from numtok.registry import spec_of
from numtok.reports import PREDICTIONS_FILE
from numtok.stages import train
from numtok.stages.table import Config as TableConfig
from numtok.stages.table import run as table
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.store.verification import verify
from numtok.training import table_folds
from numtok.training.model_files import read_model, read_regressor
from numtok.training.model_json import MODEL_FILE, TableModelFile, read_model_file
from tests import chain, fakeheads
from tests.cases import case
from tests.chain import csv_rows, quiet
from tests.forged import forged
from tests.messages import Says
from tests.shell import Shell
from tests.stages import test_train

TINY = "mlp,layers=2,width=16"
CPU = torch.device("cpu")


one_thread = test_train.one_thread


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt even if a shell runs the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def rows(count: int, folds: int = 1, seed: int = 0) -> str:
    """Return CSV in which y is 2 a, plus 1 if the color is red. Each row is in the test split of at
    most one fold."""
    random = np.random.default_rng(seed)
    names = ["split"] if folds == 1 else [f"split_{k}" for k in range(folds)]
    lines = [",".join(["a", "b", "color", "y", *names])]
    for index in range(count):
        a, b = random.normal(size=2).round(3)
        red = bool(random.integers(2))
        y = round(2 * a + red + 0.1 * random.normal(), 4)
        splits = ["test" if index % max(folds, 4) == k else "train" for k in range(folds)]
        told = ["", str(b)][index % 7 > 0]
        lines.append(",".join([str(a), told, ["blue", "red"][red], str(y), *splits]))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose store has a table of 160 rows and one of 3 folds, and their files."""
    root = tmp_path_factory.mktemp("made")
    for name, folds in (("toy", 1), ("folds", 3)):
        tabled(Store(root / "artifacts"), name, rows(160, folds))
    return root


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Store:
    """Return a copy of that store for one test, in the working folder of ``numtok``."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return Store(tmp_path / "artifacts")


def tiny(data: str = "toy", **options: Any) -> train.Config:
    chosen: dict[str, Any] = {"preset": TINY, "epochs": 3, "batch": 32, "learning_rate": 0.01}
    return train.Config(data, **chosen | options)


def fitted(store: Store, config: train.Config) -> Artifact:
    result = train.run(config, store, quiet)
    assert verify(result.artifact).problems == []
    return result.artifact


def tabled(store: Store, name: str, text: str, **options: Any) -> None:
    """Make a table from CSV, with the column y as the target."""
    path = store.root.parent / f"{name}.csv"
    path.write_text(text)
    table(TableConfig(str(path), target="y", **options), store)


def curve(y: Callable[[int], object], count: int = 80, every: int = 4) -> str:
    """Return CSV of y as a function of a, with some rows in the test split."""
    lines = [f"{a},{y(a)},{'train' if a % every else 'test'}" for a in range(count)]
    return "\n".join(["a,y,split", *lines]) + "\n"


def evaluated(
    store: Store,
    model: Artifact,
    data: str = "toy",
    options: TableOptions | None = None,
    **more: Any,
) -> Artifact:
    if options is not None:
        more |= {"point": options.point, "draws": options.draws} | asdict(options.sampling)
    return chain.evaluated(store, model.ref, data, **more)


def report(artifact: Artifact) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((artifact.path / "report.json").read_bytes())
    return found


def predictions(artifact: Artifact) -> pa.Table:
    return pq.read_table(artifact.path / PREDICTIONS_FILE)


def test_the_pace_of_a_table_is_that_of_an_epoch_of_all_its_folds(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With three folds, the pace is three times that of one fold."""
    clock = count()
    monkeypatch.setattr(table_folds, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    before = [one.ref for one in store.artifacts()]
    alone, three, second = (
        train.pace(tiny(**more), store, 5.0)
        for more in ({}, {"data": "folds"}, {"data": "folds", "fold": 1})
    )
    assert alone == second > 0
    assert three == pytest.approx(3 * alone)
    assert [one.ref for one in store.artifacts()] == before


def table_model(artifact: Artifact) -> TableModelFile:
    file = read_model_file(artifact)
    assert isinstance(file, TableModelFile)
    return file


# --- training --------------------------------------------------------------------------------


def test_a_table_is_fitted_fold_by_fold_into_one_artifact(store: Store) -> None:
    seen: list[Any] = []
    artifact = train.run(tiny("folds", epochs=4), store, seen.append).artifact
    assert [(one.fold, one.epoch.epoch) for one in seen] == [
        (fold, epoch) for fold in range(3) for epoch in range(1, 5)
    ]
    file = table_model(artifact)
    assert [one.fold for one in file.trained.folds] == [0, 1, 2]
    assert file.settings.target == "y"
    assert [one.name for one in file.settings.features] == ["a", "b", "color"]
    counts = artifact.manifest.counts
    assert counts["folds"] == 3
    assert counts["rows"] == sum(one.learnt_from.rows for one in file.trained.folds) == 3 * 120
    assert counts["epochs"] == 12
    lines = (artifact.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["train"] for line in lines] == [one.epoch.train for one in seen]


def test_one_fold_alone_is_that_of_all(store: Store) -> None:
    every = read_regressor(fitted(store, tiny("folds")), CPU).fitted
    alone = read_regressor(fitted(store, tiny("folds", fold=1)), CPU).fitted
    assert list(alone) == [1]
    for name, parameter in alone[1].model.named_parameters():
        assert torch.equal(parameter, every[1].model.get_parameter(name))


@pytest.mark.parametrize(
    "head",
    [
        "pointwise",
        "pointwise,sigmoid=yes",
        "riemann:8",
        "fourier:256,frequencies=2",  # more bins than weights
        "ordinal:256",
        "mdn:2",
        "decoder:nd,length=2",
    ],
)
def test_what_is_read_again_predicts_the_same(store: Store, head: str) -> None:
    artifact = fitted(store, tiny(head=head))
    again = fitted(store, tiny(head=head, name="again", force=True))
    first, second = (predictions(evaluated(store, one)) for one in (artifact, again))
    assert first.equals(second)
    assert spec_of(read_regressor(artifact, CPU).fitted[0].model.head) == head


def test_a_model_that_is_there_is_found(store: Store) -> None:
    first, again, other = (train.run(tiny(seed=seed), store, quiet) for seed in (0, 0, 1))
    assert (first.made, again.made, other.made) == (True, False, True)
    assert first.artifact.ref == again.artifact.ref != other.artifact.ref
    assert first.artifact.manifest.name == "toy-pointwise"


@pytest.mark.parametrize("after", [2, 4, 7])
def test_an_interrupted_run_resumes(store: Store, after: int, interruptible: None) -> None:
    config = tiny("folds", head="decoder:nd,length=2", patience=2)
    whole = fitted(store, config)
    content = chain.contents(whole)
    shutil.rmtree(whole.path)
    seen = []

    def interrupt(update: Any) -> None:
        seen.append(update)
        if len(seen) == after:
            os.kill(os.getpid(), 2)

    with pytest.raises(KeyboardInterrupt):
        train.run(config, store, interrupt)
    assert len(seen) == after
    again = train.run(config, store, seen.append).artifact
    assert chain.contents(again) == content
    assert len(seen) == 9  # no epoch is repeated
    assert again.ref == whole.ref


def test_a_validation_split_is_looked_at_where_there_is_one(store: Store) -> None:
    tabled(store, "looked", rows(160).replace("train", "validation", 30))
    artifact = fitted(store, tiny("looked"))
    assert table_model(artifact).trained.folds[0].learnt_from.rows == 160 - 40 - 30


# --- evaluation ------------------------------------------------------------------------------


def test_every_fold_predicts_its_own_rows_and_all_are_scored_together(store: Store) -> None:
    artifact = evaluated(store, fitted(store, tiny("folds", head="mdn:2")), "folds")
    found, positions = report(artifact), predictions(artifact)["position"].to_pylist()
    assert found["rows"] == 120
    assert sorted(found["groups"]["fold"]) == ["0", "1", "2"]
    assert positions == [0] * 40 + [1] * 40 + [2] * 40
    assert found["configuration"]["scheme"] == "mdn:2"
    assert set(found["baselines"]) >= {"mean", "linear"}
    assert found["baselines"]["linear"]["r2"]["value"] > 0.9


@pytest.mark.parametrize(
    ("head", "metrics"),
    [
        ("pointwise", {"nll", "tailed-nll", "crps", "interval-nll", "pit-distance", "range-nll"}),
        ("riemann:8", {"in-support-nll", "tailed-nll", "crps", "token-nll", "interval-nll"}),
        ("hl-gauss:8", {"in-support-nll", "tailed-nll", "crps", "token-nll", "interval-nll"}),
        ("decoder:ud", {"nll", "tailed-nll", "crps", "token-nll", "interval-nll"}),
        ("decoder:hamming,length=4", {"in-support-nll", "tailed-nll", "crps", "token-nll"}),
    ],
)
def test_every_head_has_its_likelihoods(store: Store, head: str, metrics: set[str]) -> None:
    found = report(evaluated(store, fitted(store, tiny(head=head))))["metrics"]
    for name in metrics:
        assert found[name]["value"] is not None, name
    assert ("token-nll" in found) == (head != "pointwise")
    assert ("interval-nll" in found) == ("hamming" not in head)


def test_baselines_have_the_metrics_that_were_asked_for(store: Store) -> None:
    found = report(evaluated(store, fitted(store, tiny()), metrics=("signed-log-r2",)))
    assert found["metrics"]["signed-log-r2"]["value"] is not None
    assert found["baselines"]
    for name, figures in found["baselines"].items():
        assert figures["signed-log-r2"]["value"] is not None, name


def test_metrics_of_labels_do_not_apply_to_tables(store: Store) -> None:
    model = fitted(store, tiny())
    with pytest.raises(UsageError, match="accuracy only applies to labels"):
        evaluated(store, model, metrics=("accuracy",))


def test_targets_outside_the_train_range_are_counted_and_said(store: Store) -> None:
    text = rows(160).replace(",test\n", ",train\n") + "0.1,0.2,red,1000,test\n0.1,0.2,red,1,test\n"
    tabled(store, "far", text)
    found = report(evaluated(store, fitted(store, tiny("far", head="riemann:8")), "far"))
    metrics = found["metrics"]
    assert metrics["outside"]["value"] == 0.5
    assert metrics["nll"]["value"] is None
    assert metrics["in-support-nll"]["value"] < metrics["tailed-nll"]["value"]
    [note] = chain.other_notes(found["notes"])
    assert note.startswith("1 of 2 targets are outside the range of the train split, ")
    assert "in-support-nll" in note and "tailed-nll" in note


@pytest.mark.parametrize("point", ["median", "mean", "mode", "raft"])
def test_points_of_a_decoder_are_those_of_its_distribution(store: Store, point: str) -> None:
    model = fitted(store, tiny(head="decoder:nd,length=2"))
    found = predictions(evaluated(store, model, options=TableOptions(point)))
    values = np.array(found["prediction"].to_pylist())
    fold = table_model(model).trained.folds[0].learnt_from
    assert ((values >= fold.low) & (values <= fold.high)).all()
    if point == "median":
        np.testing.assert_allclose(values, found["q50"].to_numpy())


def test_draws_replace_the_distribution(store: Store) -> None:
    model = fitted(store, tiny(head="decoder:nd,length=2"))
    mean, cold = TableOptions("mean", 16), TableOptions("mean", 16, Sampling(temperature=0.1))
    named = {"plain": mean, "same": mean, "cold": cold, "drawn": TableOptions("median", 16)}
    plain, same, colder, drawn = (
        predictions(evaluated(store, model, name=name, options=options))
        for name, options in named.items()
    )
    assert plain.equals(same)
    assert not plain.equals(colder)
    assert plain["log_density"].equals(colder["log_density"])  # always the exact density
    spread = [np.subtract(one["q95"], one["q05"]).mean() for one in (plain, colder)]
    assert spread[1] < spread[0] / 2
    # The median of the samples is the middle quantile.
    assert drawn["q50"].equals(drawn["prediction"])
    assert np.all(np.subtract(drawn["q95"], drawn["q05"]) > 0)


def test_a_crps_that_far_tails_rule_is_told(store: Store) -> None:
    """``decoder:ud`` gives numbers such as 1e99 a small probability, which dominates the CRPS."""
    model = fitted(store, tiny(head="decoder:ud"))
    for name, options, told in (
        ("exact", TableOptions(), True),
        ("drawn", TableOptions(draws=16, sampling=Sampling(top_p=0.1)), False),
    ):
        found = report(evaluated(store, model, name=name, options=options))
        ruled = found["metrics"]["crps"]["value"] > 10 * found["metrics"]["mae"]["value"]
        assert ruled == told
        notes = [note for note in found["notes"] if note.startswith("crps is ")]
        assert len(notes) == told
        rules = "a little probability far from the targets dominates it. For decoder heads, "
        assert all(
            note.endswith(f"{rules}--num-samples N --top-p 0.9 removes it.") for note in notes
        )


def test_an_expectation_over_a_grid_weighs_by_density() -> None:
    from numtok.models.distributions.intervals import Intervals

    low = np.array([0.0, 1.0])
    two = Intervals(low=low, high=low + 1, values=low + 0.5, log_mass=np.log([[0.25, 0.75]]))
    grid = np.array([0.25, 0.75, 1.25, 1.75])
    assert over_grid(two, 1, grid) == pytest.approx([0.25 * 0.5 + 0.75 * 1.5])


def test_a_cell_of_zero_does_not_draw_an_expectation_to_itself(store: Store) -> None:
    random = np.random.default_rng(0)
    a = random.uniform(-1, 1, 400)
    y = np.maximum(0, 10 + 4 * a + random.normal(size=400))
    y[:4] = 0
    lines = "".join(f"{x},{z}\n" for x, z in zip(a, y, strict=True))
    tabled(store, "zeros", "a,y\n" + lines, split="test=0.2")
    model = fitted(store, tiny("zeros", head="decoder:ud", epochs=10))
    median, raft = (
        report(evaluated(store, model, "zeros", options=TableOptions(point)))["metrics"]["r2"]
        for point in ("median", "raft")
    )
    assert raft["value"] > min(0.0, median["value"] - 0.2)


def test_baselines_that_learn_rows_are_left_out_for_another_table(store: Store) -> None:
    model = fitted(store, tiny())
    tabled(store, "moved", rows(80, seed=1).replace("red", "blue"))
    here, there = (report(evaluated(store, model, data)) for data in ("toy", "moved"))
    assert {"mean", "linear"} <= set(here["baselines"])
    assert set(there["baselines"]) == {"mean"}
    noted = [any("another table" in note for note in found["notes"]) for found in (there, here)]
    assert noted == [True, False]


def test_baselines_are_fitted_to_all_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tabled(store, "sorted", curve(lambda a: (a / 100) ** 2, 400, every=5))
    model = fitted(store, tiny("sorted"))
    monkeypatch.setattr("numtok.evaluation.target_features._FITTED_ON", 100)
    baselines = report(evaluated(store, model, "sorted"))["baselines"]
    assert baselines["linear"]["mse"]["value"] < 0.2 * baselines["mean"]["mse"]["value"]


def test_a_head_of_the_unit_interval_learns_such_numbers_as_they_are(store: Store) -> None:
    tabled(store, "shares", curve(lambda a: 0.1 + a / 100))
    model = fitted(store, tiny("shares", head="riemann:8", normalize="none"))
    metrics = report(evaluated(store, model, "shares"))["metrics"]
    assert metrics["tailed-nll"]["value"] == pytest.approx(metrics["nll"]["value"], abs=0.1)


def test_targets_that_come_again_and_again_are_told_of(store: Store) -> None:
    tabled(store, "counts", curve(lambda a: a % 3))
    notes = report(evaluated(store, fitted(store, tiny("counts")), "counts"))["notes"]
    [note] = chain.other_notes(notes)
    assert note.startswith("35% of the values of 'y' are 0: ") and "interval-nll" in note


# --- the command line ------------------------------------------------------------------------


def test_targets_beyond_what_a_head_writes_are_told_of(numtok: Shell, store: Store) -> None:
    Path("large.csv").write_text(curve(lambda a: 1e10 + a))
    head = "decoder:ud,base=4,exponent=2,mantissa=4"
    command = f"train large.csv --target y --head {head} --preset {TINY} --epochs 2"
    made = numtok(*shlex.split(command))
    told = (
        f"numtok: 60 of 60 targets are outside the range of {head} and are trained as its "
        "nearest number. Choose a head with a wider range\n"
    )
    assert told in made.err
    assert told in numtok(*shlex.split(command)).err  # the model already exists
    found = report(store.resolve(numtok("eval", made.out.strip(), "-q").out.strip()))
    assert found["notes"][0].startswith("20 of 20 targets are outside the range of this head")


def test_a_file_becomes_a_table_and_a_model_in_one_command(numtok: Shell, store: Store) -> None:
    made = numtok(*shlex.split(f"train toy.csv --target y --head mdn:2 --preset {TINY} --epochs 2"))
    figures = r"^(epochs|  best epoch|best validation loss) +(\S+)$"
    told = dict(re.findall(figures, made.err, re.M))
    assert told["epochs"] == "2" and told["  best epoch"] in ("1", "2")
    assert float(told["best validation loss"]) < 10
    assert made.code == 0
    assert made.out.startswith("toy-mdn-2@")
    assert "numtok: toy.csv is the table toy@" in made.err
    assert "in the head" in made.err
    found = numtok(*shlex.split(f"eval {made.out.strip()} toy --format csv"))
    assert found.code == 0
    metrics = {row["metric"] for row in csv_rows(found.out)}
    assert {"nll", "crps", "kendall-tau", "outside"} <= metrics


def test_a_model_is_evaluated_on_its_own_data_unless_told(numtok: Shell, store: Store) -> None:
    model = fitted(store, tiny())
    said = numtok("eval", model.ref)
    assert said.code == 0
    assert numtok("eval", model.ref, "toy", "-q").out == said.out
    shutil.rmtree(store.root / "table")
    gone = numtok("eval", model.ref, "--split", "validation")
    assert gone.code == 2
    assert gone.err.startswith("numtok: no artifact 'toy@")


def test_few_steps_are_told_of(numtok: Shell, store: Store) -> None:
    train = f"train toy --preset {TINY} --epochs 3 --batch"
    few = "numtok: only 3 training steps (1 per epoch). Use a smaller --batch\n"
    assert numtok(*shlex.split(f"{train} 128")).err.endswith(few)
    assert few not in numtok(*shlex.split(f"{train} 128")).err  # the model already exists
    assert "training steps" not in numtok(*shlex.split(f"{train} 16")).err


def test_the_command_of_a_model_makes_it_again(numtok: Shell, store: Store) -> None:
    model = fitted(store, tiny(head="decoder:ud,base=4", weight_decay=0.1, fold=0, name="mine"))
    words = list(model.manifest.command)[1:]
    again = numtok(*words)
    assert again.out.strip() == model.ref
    scored = evaluated(store, model, options=TableOptions("mean", 8, Sampling(0.5, 3, 0.9)))
    assert numtok(*list(scored.manifest.command)[1:], "-q").out.strip() == scored.ref


def test_what_cannot_be_trained_is_one_line(numtok: Shell, store: Store, says: Says) -> None:
    heads = "pointwise, riemann:256, mdn:5 or decoder:ud"
    unit = "Use --normalize unit\n"
    for words, *told in (
        ("toy --head token", "--head token ", heads),
        ("toy --head numgpt", "--head numgpt ", heads),
        (
            "toy --head riemann:64 --normalize affine",
            "--normalize affine ",
            "[0, 1], the range of --head riemann:64. ",
            unit,
        ),
        (
            "toy --head decoder:nd --normalize none",
            "--normalize none ",
            "--head decoder:nd. ",
            unit,
        ),
        ("toy --head pointwise,sigmoid=yes --normalize scale:5", "--normalize scale", unit),
        ("toy --steps 5", "--steps ", "Remove it"),
        ("toy --fold 3", "fold '3'. Known: 0"),
        ("toy --epochs 0", "--epochs ", "at least 1 (got 0)"),
        ("toy --patience -1", "--patience ", "at least 0 (got -1)"),
        ("toy --validation 1", "--validation ", "above 0 and below 1 (got 1)"),
        ("toy --preset nano", "preset 'nano'", "use mlp"),
        ("toy --preset mlp,layers=0", "mlp: layers ", "at least 1 (got 0)"),
        ("toy --head decoder:xval", "'xval'", "decoder heads need"),
        ("toy --head decoder:nd,mantissa=3", "decoder: mantissa=3 ", "base, length, repeat"),
        ("toy --head riemann:1", "bins must be from 2 to"),
        ("toy --head mdn:0", "components must be from 1 to"),
        ("nothing.csv --target y", "nothing.csv"),
        ("toy.csv --target z", "'z'"),
    ):
        with case(words):
            says.refused(numtok("train", *shlex.split(words)), 2, *told)


def test_what_cannot_be_evaluated_is_one_line(numtok: Shell, store: Store, says: Says) -> None:
    model = fitted(store, tiny())
    for words, *told in (
        ("--fill parallel", "--fill ", "Remove it"),
        ("--point best", "--point ", "mode, median, mean or raft (got 'best')"),
        ("--top-k 3", "--temperature, --top-k and --top-p ", "--num-samples N"),
        ("--num-samples 4 --temperature 0", "--temperature ", "above 0 and finite (got 0)"),
        ("--num-samples 4 --top-p 2", "--top-p ", "above 0 and at most 1 (got 2)"),
        ("--num-samples 4 --top-k -1", "--top-k ", "at least 0 (got -1)"),
        ("--num-samples 4 --point raft", "--point raft ", "densities"),
        ("--split nowhere", "fold 0 'nowhere'. Known: test, train"),
        ("--num-samples 4 --top-k 2", f"decoder heads; {model.ref} "),
    ):
        with case(words):
            says.refused(numtok("eval", model.ref, "toy", *words.split()), 2, *told)


def test_a_table_that_does_not_fit_is_refused(store: Store, says: Says) -> None:
    model = fitted(store, tiny())
    tabled(store, "other", "a,y,split\n1,2,train\n2,3,test\n3,1,train\n")
    needed = f"{model.ref} needs a (number), b (number), color (category), y. "
    with says.raises(DataError, "other@", "has the columns a (number), y", needed):
        evaluated(store, model, "other")
    tabled(store, "few", "a,y,split\n1,2,train\n2,3,test\n3,1,test\n")
    with says.raises(DataError, "few@", "1 row to train on in fold 0", "least 2"):
        fitted(store, tiny("few"))
    with pytest.raises(UsageError, match=f"^{model.ref} is a table model. Choose a text model$"):
        read_model(model, CPU)


def test_damage_to_a_model_is_named(store: Store, says: Says) -> None:
    model = fitted(store, tiny())
    path = model.path / MODEL_FILE
    text = path.read_text()
    cases: tuple[tuple[str, type[NumtokError], str], ...] = (
        (text.replace('"width": 16', '"width": 17'), StoreError, "not match its model.json: "),
        (text[:-40], StoreError, "is damaged"),
        (text.replace('"layers": ', '"layers": 1000000'), StoreError, "not describe a valid model"),
        (text.replace('"width": 16', '"width": 1' + 30 * "0"), StoreError, "not describe a valid"),
        (text.replace('"validation"', '"validated"'), StoreError, "is damaged"),
        (text.replace('"deviations": [', '"deviations": [0, '), StoreError, "is damaged"),
        (text.replace('"folds": [', '"folds": [], "more": ['), StoreError, "is damaged"),
        (
            text.replace('"format": 1', '"format": 9'),
            StoreError,
            "format 9; this numtok reads up to 1. ",
        ),
    )
    for content, kind, message in cases:
        path.write_text(content)
        with says.raises(kind, str(model.path), message):
            read_regressor(forged(model), CPU)


@pytest.mark.parametrize("head", ["pointwise", "riemann:16"])
def test_a_head_of_tables_without_a_density_is_scored_by_all_that_needs_none(
    store: Store, numtok: Shell, monkeypatch: pytest.MonkeyPatch, head: str, says: Says
) -> None:
    for reader in (PointReader, HistogramReader):
        monkeypatch.setattr(reader, "predictive", fakeheads.draws_alone)
    model = fitted(store, tiny(head=head))
    made = evaluated(store, model)
    found = report(made)["metrics"]
    assert {"nll", "tailed-nll", "in-support-nll", "interval-nll"}.isdisjoint(found)
    assert found["crps"]["value"] > 0 and found["r2"]["value"] is not None
    for column in ("log_density", "log_density_tailed", "log_interval"):
        assert predictions(made)[column].null_count == 40
    ran = numtok("predict", model.ref, "toy.csv")
    assert ran.code == 0, ran.err
    ran = numtok("eval", model.ref, "--point", "raft")
    says.refused(ran, 2, "numtok: --point raft ", "densities", "median, mean or mode\n")
