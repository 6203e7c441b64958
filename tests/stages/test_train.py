"""``numtok train``: what it makes, what it prints, what it refuses; faults are in
test_train_faults.py."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from numtok.cli.output.train import TrainingBar
from numtok.cli.train import command
from numtok.declaration import declarations
from numtok.encoding import splits
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import read_codec, read_split
from numtok.errors import DataError, NumtokError, StoreError, TrainingFailed, UsageError
from numtok.models.model import Model
from numtok.models.presets import PRESETS, preset
from numtok.models.trunks.base import TRUNKS
from numtok.records import LOG_FILE, MODEL, TokenIds
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.stages.gen import Config as GenConfig
from numtok.stages.gen import run as gen
from numtok.stages.train import Config, run
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.store.verification import verify
from numtok.training import device, text_learner
from numtok.training.device import MatmulRate
from numtok.training.examples import SplitExamples
from numtok.training.loop import Speed, Training, TrainingProgress
from numtok.training.model_files import read_model
from numtok.training.model_json import MODEL_FILE
from numtok.training.weights import WEIGHTS
from tests.cli import test_store_commands as test_cli_store
from tests.cli.test_store_commands import Ran, Shell
from tests.fakemodels import transformer
from tests.known import known

TINY = "nano,layers=1,width=32,heads=2"
CPU = torch.device("cpu")
CONTENT = {WEIGHTS, MODEL_FILE, LOG_FILE, "scheme.json"}

numtok = test_cli_store.numtok


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For such small models more threads are only slower, and bytes depend on their number."""
    threads = torch.get_num_threads()
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    torch.set_num_threads(1)  # also where the fixture ``numtok`` forgets the variable
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with sums and products, encoded in three ways; 480 of 600 rows are learnt."""
    root = tmp_path_factory.mktemp("data") / "artifacts"
    store = Store(root)
    gen(GenConfig("arithmetic,operands=2", samples=600), store, lambda *_: None)
    for scheme in ("numvalue", "p1000", "xval"):
        encode(EncodeConfig(("arithmetic",), scheme=scheme), store, lambda *_: None)
    return root


@pytest.fixture
def store(data: Path, tmp_path: Path) -> Store:
    """A copy of it, for one test; in ``artifacts`` of the working folder of ``numtok``."""
    shutil.copytree(data, tmp_path / "artifacts")
    return Store(tmp_path / "artifacts")


def tiny(scheme: str = "xval", **options: Any) -> Config:
    """Some steps with a tiny model; 8 steps are an epoch."""
    budget = {} if {"tokens", "minutes"} & options.keys() else {"steps": 6}
    chosen: dict[str, Any] = {"preset": TINY, "batch": 64} | budget | options
    return Config(f"arithmetic-{scheme}", **chosen)


def train(store: Store, config: Config) -> Artifact:
    result = run(config, store, lambda update: None)
    assert result.made
    assert verify(result.artifact).problems == []
    return result.artifact


def contents(artifact: Artifact) -> dict[str, bytes]:
    """All that has to come out the same each time."""
    names = [file.path for file in artifact.files()] + ["files.jsonl"]
    return {name: (artifact.path / name).read_bytes() for name in names}


def records(artifact: Artifact, split: str) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl of one split."""
    lines = map(msgspec.json.decode, (artifact.path / LOG_FILE).read_bytes().splitlines())
    return [line for line in lines if line["split"] == split]


def texts(store: Store, folder: Path, rows: list[dict[str, object]], **options: Any) -> Artifact:
    """Some rows of text, encoded under the name ``texts``."""
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    options = {"scheme": "xval", "name": "texts"} | options
    artifact = encode(EncodeConfig((str(path),), **options), store, lambda *_: None).artifact
    assert artifact is not None
    return artifact


def sentences(rows: int) -> list[dict[str, object]]:
    """Of very different lengths, and without targets."""
    return [{"text": f"at {row}.5 m" + " and so on" * (row * row % 17)} for row in range(rows)]


@pytest.mark.parametrize(("rate", "told"), [(0.6e9, True), (200e9, False)])
def test_a_cpu_that_has_no_bfloat16_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch, rate: float, told: bool
) -> None:
    monkeypatch.setattr(MatmulRate, "_known", {})
    monkeypatch.setattr(
        device, "measured_matmul_rate", lambda device, bfloat16, tries: rate if bfloat16 else 60e9
    )
    notes: list[str] = []
    run(tiny(precision="bfloat16"), Store(store.root, notes.append), lambda update: None)
    assert any("bfloat16 is 100 times slower than float32" in note for note in notes) == told


# --- what is made ------------------------------------------------------------------------------


def test_a_model_holds_its_weights_settings_losses_and_encoding(store: Store) -> None:
    artifact = train(store, tiny())
    assert {file.path for file in artifact.files()} == CONTENT
    encoded = store.resolve("arithmetic-xval")
    assert (artifact.path / "scheme.json").read_bytes() == (
        encoded.path / "scheme.json"
    ).read_bytes()
    assert artifact.manifest.parents == (encoded.as_parent(),)
    assert artifact.manifest.seed == 0
    model = read_model(artifact, CPU)
    parameters, _ = model.model.parameter_counts()
    assert artifact.manifest.counts == {
        "rows": 480, "steps": 6, "samples": 384, "tokens": 384 * 6, "parameters": parameters,
    }  # fmt: skip
    trained = model.trained
    assert (trained.steps, trained.samples, trained.tokens) == (6, 384, 384 * 6)
    assert trained.flops == 3 * 6 * model.model.flops(
        SplitExamples(
            read_split(encoded, "train"), read_codec(encoded), model.model.objective, 64, 0
        ).training_batch(0)
    )


def test_an_epoch_ends_with_a_smaller_batch_that_is_counted_so(store: Store) -> None:
    assert train(store, tiny(steps=8)).manifest.counts["samples"] == 480
    assert train(store, tiny(steps=9)).manifest.counts["samples"] == 480 + 64


@pytest.mark.parametrize("scheme", ["p1000", "xval"])
def test_a_model_learns(store: Store, scheme: str) -> None:
    artifact = train(store, tiny(scheme, steps=60, learning_rate=0.01))
    for split in ("train", "validation"):
        losses = [record["loss"] for record in records(artifact, split)]
        assert losses[-1] < 0.8 * losses[0], (split, losses)


def test_the_objective_is_the_targets_where_rows_have_targets(store: Store, tmp_path: Path) -> None:
    learnt = read_model(train(store, tiny()), CPU).trained.configuration
    assert (learnt["objective"], learnt["embedder"], learnt["head"]) == (
        "mlm:targets", "scaled", "scalar",
    )  # fmt: skip
    texts(store, tmp_path, sentences(40))
    artifact = train(store, Config("texts", preset=TINY, steps=3, batch=16))
    assert read_model(artifact, CPU).trained.configuration["objective"] == "mlm"


def test_losses_are_of_both_splits_and_the_head_is_calibrated_on_validation(store: Store) -> None:
    artifact = train(store, tiny(steps=12))
    assert [record["step"] for record in records(artifact, "train")] == list(range(1, 13))
    # A look costs a third of a step, and is to cost a tenth of the time: after each third step.
    assert [record["step"] for record in records(artifact, "validation")] == [3, 6, 9, 12]
    for record in records(artifact, "validation"):
        assert record["loss"] == record["token_loss"] + record["value_loss"]
        assert record["tokens"] == records(artifact, "train")[record["step"] - 1]["tokens"]
    trained = read_model(artifact, CPU).trained
    assert trained.calibrated_on == "validation"
    # The deviation is measured on the same rows as the last loss of the value head.
    last = records(artifact, "validation")[-1]["value_loss"]
    assert trained.calibration["deviation"] == pytest.approx(last**0.5, rel=1e-6)


def test_without_a_validation_split_the_head_is_calibrated_on_what_it_learnt(
    store: Store, tmp_path: Path
) -> None:
    texts(store, tmp_path, sentences(40))
    artifact = train(store, Config("texts", preset=TINY, steps=3, batch=16))
    assert records(artifact, "validation") == []
    assert len(records(artifact, "train")) == 3
    assert read_model(artifact, CPU).trained.calibrated_on == "train"


def test_a_token_head_needs_no_calibration(store: Store) -> None:
    trained = read_model(train(store, tiny("p1000")), CPU).trained
    assert (trained.calibration, trained.calibrated_on) == ({}, None)


def test_the_mean_is_of_the_targets_of_the_train_split(store: Store) -> None:
    samples = read_split(store.resolve("arithmetic-xval"), "train")
    answers = [float(literal.as_py()) for literal in samples.target_literal]
    trained = read_model(train(store, tiny()), CPU).trained
    assert trained.train_mean == pytest.approx(np.mean(answers))
    assert len(answers) == 480


def test_text_without_any_number_can_be_learnt(store: Store, tmp_path: Path) -> None:
    texts(store, tmp_path, [{"text": "no number"}, {"text": "here"}] * 8, normalize="none")
    trained = read_model(train(store, Config("texts", preset=TINY, steps=3)), CPU).trained
    assert (trained.calibration, trained.train_mean) == ({}, None)


def test_what_is_too_large_for_memory_is_learnt_from_disk_to_the_same_weights(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = train(store, tiny("p1000"))
    read, spilled = EncodedSplit.read, []

    def reading(shards: list[Path], ids: TokenIds, spill: Path | None = None) -> EncodedSplit:
        assert spill is not None and spill.is_dir()
        spilled.append(spill)
        return read(shards, ids, spill)

    monkeypatch.setattr(splits, "_MEMORY", 0)
    monkeypatch.setattr(EncodedSplit, "read", reading)
    second = train(store, tiny("p1000", name="second"))
    assert (second.path / WEIGHTS).read_bytes() == (first.path / WEIGHTS).read_bytes()
    assert len(spilled) == 2 and not any(path.exists() for path in spilled)


def test_a_long_run_writes_some_losses_down(store: Store) -> None:
    artifact = train(store, tiny(steps=450, batch=16, preset="nano,layers=1,width=4,heads=2"))
    assert [record["step"] for record in records(artifact, "train")] == list(range(2, 451, 2))
    looks = [record["step"] for record in records(artifact, "validation")]
    assert looks == [*range(22, 441, 22), 450]


@pytest.mark.parametrize("objective", ["ar", "mlm,rate=1"])  # the number is seen; it is not
@pytest.mark.parametrize("others", [0, 5])
def test_numbers_too_large_for_float32_do_not_spoil_a_model_that_never_learnt_them(
    store: Store, tmp_path: Path, objective: str, others: int
) -> None:
    rows: list[dict[str, object]] = [
        {"text": f"at {row}.5 m", "split": "train" if row < 20 else "validation"}
        for row in range(20 + others)
    ]
    rows.append({"text": "at 1e30 or so", "split": "validation"})
    texts(store, tmp_path, rows, normalize="none")
    config = Config("texts", preset=TINY, objective=objective, steps=3, checkpoint_steps=1)
    artifact = train(store, config)
    last = records(artifact, "validation")[-1]
    assert (last["loss"], last["value_loss"]) == (None, None)
    assert np.isfinite([record["loss"] for record in records(artifact, "train")]).all()
    assert np.isfinite(read_model(artifact, CPU).trained.calibration["deviation"])


@pytest.mark.parametrize("scheme", ["p1000", "xval"])
@pytest.mark.parametrize("steps", [20, 21])
def test_threads_that_prepare_batches_change_nothing(
    store: Store, tmp_path: Path, scheme: str, steps: int
) -> None:
    made = []
    for workers in (0, 1, 3):
        root = tmp_path / f"workers {workers}"
        shutil.copytree(store.root, root)
        # Two steps an epoch: the threads are often at different epochs.
        config = tiny(scheme, steps=steps, batch=240, batch_workers=workers, objective="mlm")
        made.append(contents(train(Store(root), config)))
    assert made[0] == made[1] == made[2]


def test_the_version_follows_what_changes_the_model_and_nothing_else(store: Store) -> None:
    config = tiny(steps=2)
    others = [
        replace(config, **change)
        for change in (
            {"seed": 1}, {"steps": 3}, {"batch": 65}, {"learning_rate": 0.5}, {"warmup": 0.1},
            {"weight_decay": 0.1}, {"clip": 0.5}, {"precision": "bfloat16"},
            {"head": "scalar,layers=1"},
            {"objective": "mlm"}, {"objective": "ar"}, {"preset": TINY + ",dropout=0.1"},
            {"data": "arithmetic-p1000"}, {"accumulate": 2},
        )
    ]  # fmt: skip
    versions = {train(store, one).version for one in (config, *others)}
    assert len(versions) == 1 + len(others)
    same = (
        {"batch_workers": 2}, {"checkpoint_steps": 1}, {"device": "cpu"}, {"restart": True},
        {"precision": "float32"}, {"objective": "mlm:targets"}, {"head": "scalar,layers=2"},
        {"learning_rate": preset(TINY).learning_rate}, {"accumulate": 1},
        {"recompute": True},
    )  # fmt: skip
    for change in same:
        assert not run(replace(config, **change), store, lambda update: None).made, change
    named = train(store, replace(config, name="mine"))
    assert (named.name, named.version) == ("mine", run(config, store, print).artifact.version)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which(os.environ.get("CXX", "g++")), reason="no C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's compiler
def test_a_compiled_run_is_the_same_experiment_to_rounding(numtok: Shell, store: Store) -> None:
    made = []
    for more in ((), ("--compile",)):
        ran = trained(numtok, "--objective", "mlm", *more)
        assert ran.code == 0, ran.err
        made.append(store.resolve(ran.out.strip()))
    plain, compiled = made
    assert "--compile" in shlex.split(numtok("show", compiled.ref).out.splitlines()[0])
    assert compiled.version != plain.version
    for one, other in zip(records(plain, "train"), records(compiled, "train"), strict=True):
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-3)
    first, second = (read_model(artifact, CPU).trained for artifact in made)
    assert second.configuration == first.configuration


@pytest.mark.parametrize("scheme", ["p1000", "xval"])
def test_a_batch_in_parts_is_the_same_experiment_to_rounding(store: Store, scheme: str) -> None:
    whole, parts = (train(store, tiny(scheme, accumulate=count)) for count in (1, 5))
    for split in ("train", "validation"):
        for one, other in zip(records(whole, split), records(parts, split), strict=True):
            assert other.pop("split") == one.pop("split")
            assert other == pytest.approx(one, rel=1e-3)
    first, second = (read_model(artifact, CPU).trained for artifact in (whole, parts))
    assert second.calibration == pytest.approx(first.calibration, rel=1e-2)
    assert msgspec.structs.replace(second, calibration=first.calibration) == first


# --- budgets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["mlm", "ar"])
@pytest.mark.parametrize("tokens", [1, 700, 20_000])
def test_a_budget_of_tokens_ends_with_the_batch_that_reaches_it(
    store: Store, tmp_path: Path, objective: str, tokens: int
) -> None:
    texts(store, tmp_path, sentences(150))
    config = Config("texts", preset=TINY, objective=objective, tokens=tokens, batch=16)
    artifact = train(store, config)
    seen = [record["tokens"] for record in records(artifact, "train")]
    assert seen[-1] == artifact.manifest.counts["tokens"] >= tokens
    assert ([0, *seen])[-2] < tokens


def test_a_budget_in_minutes_is_measured_and_is_what_the_version_depends_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = train(store, tiny(minutes=0.01))
    assert made.manifest.settings["budget"] == {"minutes": 0.01}
    steps = made.manifest.counts["steps"]
    timing = json.loads((made.path / "timing.json").read_bytes())
    assert steps > 1
    assert 0.06 < timing["seconds"] < 6  # asked were 0.6; other work may take the processor
    store.remove(made)
    monkeypatch.setattr(Training, "_seconds_per_step", lambda self, budget: budget / 4)
    slower = train(store, tiny(minutes=0.01))
    assert slower.version == made.version
    assert slower.manifest.counts["steps"] == 4


def test_the_budget_is_five_minutes_unless_said() -> None:
    assert Config("x").budget == {"minutes": 5.0}
    assert Config("x", tokens=10).budget == {"tokens": 10}


# --- from another model ------------------------------------------------------------------------


def test_init_begins_with_the_weights_of_a_model(store: Store) -> None:
    first = train(store, tiny(steps=12))
    again = train(store, tiny(steps=1, init=first.ref, learning_rate=1e-9, name="again"))
    assert again.manifest.parents[1] == first.as_parent()
    # So small a rate leaves the weights where they were.
    assert records(again, "validation")[0]["loss"] == pytest.approx(
        records(first, "validation")[-1]["loss"], rel=1e-5
    )
    fresh = train(store, tiny(steps=1, learning_rate=1e-9, name="fresh"))
    assert records(fresh, "validation")[0]["loss"] > records(again, "validation")[0]["loss"]
    configuration, before = (read_model(one, CPU).trained.configuration for one in (again, first))
    expected = {f"init.{key}": before[key] for key in before if f"init.{key}" in configuration}
    expected["init.data"] = first.manifest.parents[0].where
    assert configuration == before | configuration
    assert {key: one for key, one in configuration.items() if key[:5] == "init."} == expected
    assert set(before) - {key[5:] for key in expected} == {"scheme", "normalize", "text_tokenizer"}


def test_init_brings_the_range_that_its_head_says_numbers_by(store: Store, tmp_path: Path) -> None:
    def rows(factor: int) -> list[dict[str, object]]:
        every = [f"{n * factor / 40}" for n in range(1, 40)]
        return [
            {"id": one, "text": f"x = {one}", "targets": {"x": [[4, 4 + len(one)]]}}
            for one in every
        ]

    small = texts(store, tmp_path, rows(1), name="small", normalize="none")
    large = texts(store, tmp_path, rows(1000), name="large", scheme=None, like=small.ref)
    common: dict[str, Any] = {"preset": TINY, "head": "riemann:9", "steps": 1, "batch": 8}
    first = train(store, Config(small.ref, **common))
    more: dict[str, Any] = {"init": first.ref, "learning_rate": 1e-9, "name": "second"}
    second = train(store, Config(large.ref, **common, **more))
    one, other = (read_model(artifact, CPU).model for artifact in (first, second))
    assert one.settings.scaling == other.settings.scaling is not None
    with pytest.raises(UsageError) as caught:
        train(store, Config(small.ref, **common | more | {"head": "mdn:3", "name": "third"}))
    # Of one size, but as other parameters.
    assert "has another shape: its head is riemann:9, here it is mdn:3;" in str(caught.value)


def test_a_validation_split_of_which_nothing_is_asked_has_no_loss(
    store: Store, tmp_path: Path
) -> None:
    rows: list[dict[str, object]] = [
        {"id": f"{n}", "text": f"x = {n}", "targets": {"x": [[4, 4 + len(str(n))]]}}
        for n in range(10, 40)
    ]
    rows += [{"id": "v", "text": "x = 7", "split": "validation"}]
    artifact = texts(store, tmp_path, rows)
    model = train(store, Config(artifact.ref, preset=TINY, objective="mlm:targets", steps=2))
    told = records(model, "validation")
    assert told and all(line["loss"] is None for line in told)
    assert all(line["loss"] is not None for line in records(model, "train"))


def test_init_brings_the_context_unless_the_preset_says_one(store: Store) -> None:
    first = train(store, tiny(preset=TINY + ",context=9"))
    contexts = [
        read_model(train(store, tiny(init=init, preset=preset, name="n")), CPU).model.settings
        for init, preset in ((None, TINY), (first.ref, TINY), (first.ref, TINY + ",context=9"))
    ]
    assert [one.context for one in contexts] == [16, 9, 9]


def test_init_brings_preset_embedder_and_head(store: Store) -> None:
    own = {"preset": TINY + ",positions=rotary", "embedder": "fourier", "head": "mdn:3"}
    first = train(store, tiny(**own))
    second = train(store, tiny(preset=None, init=first.ref, name="second"))
    assert second.name == "second"
    one, other = (read_model(model, CPU) for model in (first, second))
    assert other.model.settings == one.model.settings
    told = {key: other.trained.configuration[key] for key in own}
    assert told == {key: one.trained.configuration[key] for key in own}
    said = run(tiny(**own, init=first.ref, name="second"), store, lambda update: None)
    assert (said.made, said.artifact) == (False, second)
    assert train(store, tiny(preset=None, init=first.ref, seed=1)).name == "arithmetic-xval-nano"


def test_init_refuses_rows_of_more_tokens_than_it_has_learnt_places(
    store: Store, tmp_path: Path
) -> None:
    short = texts(store, tmp_path, [{"id": f"{n}", "text": f"x = {n}"} for n in range(9)])
    first = train(store, Config(short.ref, preset=TINY + ",context=8", steps=1, name="first"))
    rows: list[dict[str, object]]
    rows = [{"id": f"{n}", "text": f"x = {n}" + " = x" * 4} for n in range(9)]
    long = texts(store, tmp_path, rows, scheme=None, like=first.ref, name="long")
    for size in (None, TINY, TINY + ",context=32"):
        with pytest.raises(DataError) as caught:
            train(store, Config(long.ref, preset=size, init=first.ref, steps=1, name="second"))
        assert str(caught.value) == (
            f"{long.ref} has a row of 19 tokens, and --init {first.ref} has learnt 8 places; "
            "shorten such rows, or begin with a model whose preset has context=19"
        )


def test_init_refuses_a_model_of_tables(numtok: Shell, store: Store, tmp_path: Path) -> None:
    Path("t.csv").write_text("x,y\n" + "".join(f"{n},{n * n}\n" for n in range(40)), "utf-8")
    ref = numtok("train", "t.csv", "--target", "y", "--epochs", "1").out.split()[-1]
    ran = trained(numtok, "--init", ref)
    message = f"--init {ref} is a model of tables; begin with one of texts"
    assert (ran.code, ran.out, ran.err) == (2, "", f"numtok: {message}\n")


def test_init_may_change_the_objective(store: Store) -> None:
    first = train(store, tiny(preset=TINY + ",context=7"))
    second = tiny(preset=TINY + ",context=7", init=first.ref, objective="ar", name="second")
    assert read_model(train(store, second), CPU).model.objective.causal


# --- the command -------------------------------------------------------------------------------

ARGUMENTS = ("--preset", TINY, "--steps", "4", "--batch", "64")


def trained(numtok: Shell, *more: str, scheme: str = "xval") -> Ran:
    return numtok("train", f"arithmetic-{scheme}", *ARGUMENTS, *more)


def test_train_prints_the_ref_and_what_it_did(numtok: Shell, store: Store) -> None:
    ran = trained(numtok)
    (artifact,) = (one for one in store.artifacts() if one.kind == "model")
    assert (ran.code, ran.out) == (0, artifact.ref + "\n")
    assert artifact.name == "arithmetic-xval-nano"
    lines = ran.err.splitlines()
    assert lines[0] == "trained"
    table = dict(re.split(r"\s{2,}", line.strip()) for line in lines[3:] if line)
    assert list(table) == [
        "parameters", "steps", "samples", "tokens", "train loss", "validation loss", "seconds",
        "tokens a second", "MFU", "peak memory",
    ]  # fmt: skip
    assert (table["steps"], table["samples"]) == ("4", "256")
    assert float(table["train loss"]) == pytest.approx(records(artifact, "train")[-1]["loss"], 1e-5)


def test_a_rerun_finds_the_model_without_training(
    numtok: Shell, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trained(numtok)

    def forbidden(*arguments: object) -> None:
        raise AssertionError("nothing should be read or trained")

    monkeypatch.setattr(text_learner, "read_split", forbidden)
    monkeypatch.setattr(text_learner, "Training", forbidden)
    ran = trained(numtok)
    assert (ran.code, ran.out) == (0, first.out)
    assert ran.err.startswith("found, not trained again\n")
    assert trained(numtok, "--quiet").err == ""


def test_train_prints_for_programs(numtok: Shell, store: Store) -> None:
    ref = trained(numtok).out.strip()
    artifact = store.resolve(ref)
    ran = trained(numtok, "--json")
    answer = json.loads(ran.out)
    assert ran.err == ""
    assert answer == {
        "schema": 1,
        "ref": ref,
        "made": False,
        "counts": artifact.manifest.counts,
        "losses": {one: records(artifact, one)[-1]["loss"] for one in ("train", "validation")},
        "timing": json.loads((artifact.path / "timing.json").read_bytes()),
    }
    assert trained(numtok, "--format", "json").out == ran.out
    table = dict(list(csv.reader(io.StringIO(trained(numtok, "--format", "csv").out)))[1:])
    assert (table["ref"], table["steps"]) == (ref, "4")
    assert f"| ref | {ref} |" in trained(numtok, "--format", "md").out.splitlines()


@pytest.mark.parametrize(
    "more",
    [
        ("--steps", "3"),
        ("--tokens", "1500", "--objective", "ar", "--seed", "5", "--clip", "0", "--name", "mine"),
        ("--minutes", "0.000123456789", "--lr", "0.00123456789", "--precision", "bfloat16"),
        ("--steps", "2", "--head", "scalar,layers=1", "--warmup", "0.3", "--weight-decay", "0.1"),
        ("--steps", "2", "--batch", "100", "--accumulate", "3"),
    ],
)
def test_show_prints_a_command_line_that_makes_the_model_again(
    numtok: Shell, store: Store, more: tuple[str, ...]
) -> None:
    ran = numtok("train", "arithmetic-xval", "--preset", TINY, *more)
    ref = ran.out.strip()
    before = contents(store.resolve(ref))
    command = shlex.split(numtok("show", ref).out.splitlines()[0])
    assert numtok("rm", ref).code == 0
    again = numtok(*command[1:])
    assert (again.code, again.out) == (0, ran.out)
    assert "trained\n" in again.err
    if "--minutes" not in more:
        assert contents(store.resolve(ref)) == before


def test_the_command_line_of_a_model_names_the_model_it_began_with(
    numtok: Shell, store: Store
) -> None:
    first = trained(numtok).out.strip()
    second = trained(numtok, "--init", first, "--name", "second").out
    command = shlex.split(numtok("show", second.strip()).out.splitlines()[0])
    assert command[command.index("--init") + 1] == first
    assert numtok(*command[1:]).out == second
    lineage = numtok("lineage", second.strip()).out
    assert first in lineage and store.resolve("arithmetic-xval").ref in lineage


def test_speeds_and_memory_are_beside_the_content(store: Store) -> None:
    artifact = train(store, tiny())
    timing = json.loads((artifact.path / "timing.json").read_bytes())
    seconds, trained = timing["seconds"], read_model(artifact, CPU).trained
    assert timing["tokens_per_second"] == pytest.approx(trained.tokens / seconds)
    assert timing["numbers_per_second"] == pytest.approx(trained.tokens / 2 / seconds)  # of 6, 3
    assert timing["flops_per_second"] == pytest.approx(trained.flops / seconds)
    assert timing["matmul_flops_per_second"] > 1e8
    assert timing["mfu"] == timing["flops_per_second"] / timing["matmul_flops_per_second"]
    assert timing["peak_memory"] > 1 << 20
    assert "timing.json" not in contents(artifact)


def test_a_model_of_an_earlier_numtok_is_shown_without_what_is_not_known_of_it(
    numtok: Shell, store: Store
) -> None:
    path = store.resolve(trained(numtok).out.strip()).path / "timing.json"
    path.write_text('{"seconds": 2.5, "tokens_per_second": 1000.0, "device": "cpu", "threads": 1}')
    ran = trained(numtok)
    assert ran.code == 0
    shown = dict(re.split(r"\s{2,}", line.strip()) for line in ran.err.splitlines()[3:] if line)
    assert (shown["tokens a second"], shown["MFU"], shown["peak memory"]) == ("1,000", "-", "-")


def test_a_profile_has_a_trace_and_a_table_and_changes_nothing(
    numtok: Shell, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    first = trained(numtok)
    before = contents(store.resolve(first.out.strip()))
    assert numtok("rm", first.out.strip()).code == 0
    trace = tmp_path / "trace.json"
    ran = trained(numtok, "--profile", str(trace), "--checkpoint-every", "1")
    assert (ran.code, ran.out) == (0, first.out)
    assert contents(store.resolve(first.out.strip())) == before
    names = [event["name"] for event in json.loads(trace.read_bytes())["traceEvents"]]
    assert names.count("Optimizer.step#AdamW.step") == 5
    title, columns, _, *lines = ran.err.splitlines()
    assert (title, columns.split()) == ("what a step costs", ["operation", "ms", "share", "calls"])
    costs = [re.split(r"\s{2,}", line.strip()) for line in lines[: lines.index("")]]
    assert {cost[0] for cost in costs} <= set(names)
    shares = [float(cost[2].removesuffix("%")) for cost in costs]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 100.5


def test_nothing_is_profiled_where_nothing_is_trained(
    numtok: Shell, store: Store, tmp_path: Path
) -> None:
    nowhere = tmp_path / "none" / "trace.json"
    ran = trained(numtok, "--profile", str(nowhere))
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("numtok: cannot write ") and "No such file" in ran.err
    ref = trained(numtok).out.strip()
    ran = trained(numtok, "--profile", str(tmp_path / "trace.json"))
    message = (
        f"--profile: {ref} is there already, so nothing is trained that could be profiled; "
        "add --force"
    )
    assert (ran.code, ran.out, ran.err) == (2, "", f"numtok: {message}\n")
    assert (
        trained(numtok, "--quiet", "--force", "--profile", str(tmp_path / "trace.json")).err == ""
    )


def test_verify_and_lineage_know_models(numtok: Shell, store: Store) -> None:
    ref = trained(numtok).out.strip()
    assert numtok("verify", ref).code == 0
    lineage = numtok("lineage", ref).out
    for parent in ("arithmetic-xval", "arithmetic"):
        assert any(one.ref in lineage for one in store.artifacts() if one.name == parent)
    weights = store.resolve(ref).path / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    assert numtok("verify", ref).code == 1


def test_other_data_can_be_encoded_like_a_model_and_train_it_further(
    numtok: Shell, store: Store, tmp_path: Path
) -> None:
    ref = trained(numtok).out.strip()
    rows = [{"text": f"({row}.5 + 1) = {row + 1}.5"} for row in range(20)]
    (tmp_path / "more.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    encoded = numtok("encode", "--like", ref, "more.jsonl")
    assert encoded.code == 0, encoded.err
    more = numtok("train", encoded.out.strip(), "--init", ref, "--preset", TINY, "--steps", "2")
    assert more.code == 0, more.err


def test_force_makes_the_same_model_again_and_keeps_the_first(numtok: Shell, store: Store) -> None:
    first = trained(numtok)
    artifact = store.resolve(first.out.strip())
    before = (artifact.path / WEIGHTS).stat().st_ino
    ran = trained(numtok, "--force")
    assert (ran.code, ran.out) == (0, first.out)
    assert (artifact.path / WEIGHTS).stat().st_ino == before
    (artifact.path / LOG_FILE).write_bytes(b"{}\n")
    ran = trained(numtok, "--force")
    assert ran.code == 1
    assert f"made again, {artifact.ref} differs in metrics.jsonl" in ran.err


def test_every_option_has_a_help_text_and_the_command_an_example(numtok: Shell) -> None:
    ran = numtok("train", "--help")
    assert ran.code == 0
    assert all(declaration.help for _, declaration in declarations(Config))
    assert "Example: numtok train " in (command.__doc__ or "")
    assert max(map(len, ran.out.splitlines())) <= 80


def test_numtok_toml_gives_defaults(numtok: Shell, store: Store, tmp_path: Path) -> None:
    (tmp_path / "numtok.toml").write_text(
        f'[train]\npreset = "{TINY}"\nsteps = 4\nbatch = 64\nlr = 1e-3\ncheckpoint-every = 2\n'
    )
    assert numtok("train", "arithmetic-xval").out == trained(numtok).out


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    update = TrainingProgress(
        3, 1200, 0.125, Speed(12_345.6, 2.5e6, 1e11, 0.625), 1_250_000_000, 61.0
    )
    shown = {}
    for stream in (_Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with TrainingBar(quiet) as bar:
            bar(update)
        shown[type(stream)] = stream.getvalue()
    assert shown[io.StringIO] == ""
    if quiet:
        assert shown[_Terminal] == ""
    else:
        assert "step 3/1,200" in shown[_Terminal]
        told = "1:01 left  loss 0.125  2.5M num/s  12.3k tok/s  62% MFU  1.25 GB"
        assert told in shown[_Terminal]


def test_updates_say_where_training_stands(store: Store) -> None:
    updates: list[Any] = []
    run(tiny(steps=5), store, updates.append)
    assert [(one.step, one.steps) for one in updates] == [(step, 5) for step in range(1, 6)]
    for one in updates:
        speed = one.speed
        assert speed.tokens_per_second > 0
        assert speed.numbers_per_second == pytest.approx(speed.tokens_per_second / 2)  # of 6, 3
        assert 0 < speed.mfu <= 1
        assert one.peak_memory > 1 << 20
    assert updates[-1].seconds_left == 0


# --- what is refused ---------------------------------------------------------------------------

SCHEDULE = "is not possible; it is"
REFUSED: dict[tuple[str, ...], str] = {
    ("--steps", "1", "--minutes", "1"): "--steps and --minutes are two budgets; give one of "
    "--steps, --tokens and --minutes",
    ("--steps", "1", "--tokens", "1"): "--steps and --tokens are two budgets; give one of "
    "--steps, --tokens and --minutes",
    ("--steps", "0"): f"--steps 0 {SCHEDULE} above 0",
    ("--tokens", "-5"): f"--tokens -5 {SCHEDULE} above 0",
    ("--minutes", "0"): f"--minutes 0.0 {SCHEDULE} above 0 and finite",
    ("--minutes", "nan"): f"--minutes nan {SCHEDULE} above 0 and finite",
    ("--minutes", "inf"): f"--minutes inf {SCHEDULE} above 0 and finite",
    ("--batch", "0"): f"--batch 0 {SCHEDULE} above 0",
    ("--accumulate", "0"): f"--accumulate 0 {SCHEDULE} 1 or more",
    ("--accumulate", "65", "--batch", "64"): f"--accumulate 65 {SCHEDULE} from 1 to --batch (64)",
    ("--checkpoint-every", "0"): f"--checkpoint-every 0 {SCHEDULE} above 0",
    ("--batch-workers", "-1"): f"--batch-workers -1 {SCHEDULE} 0 or more",
    ("--lr", "0"): f"--lr 0.0 {SCHEDULE} above 0 and below 1",
    ("--lr", "1"): f"--lr 1.0 {SCHEDULE} above 0 and below 1",
    ("--lr", "nan"): f"--lr nan {SCHEDULE} above 0 and below 1",
    ("--warmup", "1"): f"--warmup 1.0 {SCHEDULE} 0 or more and below 1",
    ("--weight-decay", "-1"): f"--weight-decay -1.0 {SCHEDULE} 0 or more and finite",
    ("--clip", "-1"): f"--clip -1.0 {SCHEDULE} 0 or more",
    ("--precision", "float16"): "--precision 'float16' is not possible; allowed are auto, float32 "
    "and bfloat16",
    ("--device", "gpu"): "--device 'gpu' is not possible; allowed are auto, cpu and cuda",
    ("--name", "My Model"): "--name 'My Model' cannot be used; allowed are lower-case letters, "
    "digits and ._- after a first letter or digit",
    ("--preset", "nanno"): "unknown preset 'nanno'; did you mean 'nano'? known: "
    + ", ".join(sorted([*PRESETS, *TRUNKS])),
    ("--preset", "nano,layer=2"): "unknown setting of preset 'nano' 'layer'; did you mean "
    "'layers'? known: context, dropout, head_layers, heads, layers, learning_rate, positions, "
    "tied, width",
    ("--preset", "nano,layers=two"): "transformer: layers='two' is not an integer",
    ("--preset", "nano,width=30"): "width=30 is not possible with 4 heads; it is a multiple of 8",
    ("--objective", "mlmm"): f"unknown objective 'mlmm'; did you mean 'mlm'? {known('objective')}",
    ("--objective", "mlm:words"): "mlm: mask=words is not possible; allowed are numbers, tokens "
    "and targets",
    ("--embedder", "scale"): "unknown embedder 'scale'; did you mean 'scaled'? "
    + known("embedder"),
    ("--head", "scaler"): f"unknown head 'scaler'; did you mean 'scalar'? {known('head')}",
    ("--preset", "nano,positions=rotary"): "--embedder scaled does not go with positions=rotary: "
    "layer norm would take the value away, since it is seen only beside an added position; use "
    "learned or sinusoidal",
}  # fmt: skip


@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_settings_that_cannot_be_are_refused_in_one_line(
    numtok: Shell, store: Store, arguments: tuple[str, ...]
) -> None:
    budget = () if {"--steps", "--tokens", "--minutes"} & {*arguments} else ("--steps", "2")
    ran = numtok("train", "arithmetic-xval", *arguments, *budget)
    assert (ran.code, ran.out, ran.err) == (2, "", f"numtok: {REFUSED[arguments]}\n")
    assert {one.kind for one in store.artifacts()} == {"data", "encoded"}


def test_a_gpu_that_is_not_there_is_refused(
    numtok: Shell, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    ran = trained(numtok, "--device", "cuda")
    message = "--device cuda: this PyTorch sees no GPU; give --device cpu"
    assert (ran.code, ran.err) == (2, f"numtok: {message}\n")


def test_without_a_compiler_nothing_is_compiled(
    numtok: Shell, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    ran = trained(numtok, "--compile")
    message = (
        "--compile needs a C++ compiler, and there is no 'no-such-compiler'; install one, name it "
        "in the environment variable CXX, or leave --compile out"
    )
    assert (ran.code, ran.out, ran.err) == (2, "", f"numtok: {message}\n")


def test_only_encoded_data_can_be_learnt(numtok: Shell, store: Store) -> None:
    ran = numtok("train", "arithmetic", "--steps", "1")
    message = "'arithmetic' is of kind data; here it must be encoded or table"
    assert (ran.code, ran.err) == (2, f"numtok: {message}\n")
    ran = numtok("train", "arithmetic-xvall", "--steps", "1")
    assert ran.code == 2
    assert "no artifact 'arithmetic-xvall' in artifacts; did you mean 'arithmetic-xval'?" in ran.err


def test_data_without_what_is_asked_for_is_refused(
    numtok: Shell, store: Store, tmp_path: Path
) -> None:
    ref = texts(store, tmp_path, sentences(20)).ref
    for objective, wanted in (("mlm:targets", "targets"), ("ar:answer", "answer_start")):
        ran = numtok("train", "texts", "--steps", "1", "--objective", objective)
        message = (
            f"--objective {objective} needs {wanted} in every row, {ref} has rows without; encode "
            f"data with {wanted}, or give another --objective"
        )
        assert (ran.code, ran.err) == (3, f"numtok: {message}\n")
    rows: list[dict[str, object]] = [{"text": "at 1.5 m", "split": "test"}]
    test_only = texts(store, tmp_path, rows, scheme=None, like="texts", name="other").ref
    ran = numtok("train", "other", "--steps", "1")
    message = f"{test_only} has no split 'train' to learn from; encode one"
    assert (ran.code, ran.err) == (3, f"numtok: {message}\n")


@pytest.mark.parametrize(("objective", "tokens"), [("mlm", 6), ("ar", 7)])
def test_a_row_longer_than_the_context_is_refused(
    numtok: Shell, store: Store, objective: str, tokens: int
) -> None:
    size = f"{TINY},context={tokens - 1}"
    run = ("train", "arithmetic-xval", "--steps", "1", "--objective", objective)
    ran = numtok(*run, "--preset", size)
    ref = store.resolve("arithmetic-xval").ref
    message = (
        f"{ref} has a row of {tokens} tokens, --preset {size} reads {tokens - 1}; "
        f"give the preset context={tokens}"
    )
    assert (ran.code, ran.err) == (3, f"numtok: {message}\n")
    assert numtok(*run, "--preset", f"{TINY},context={tokens}").code == 0


@pytest.mark.parametrize(
    ("file", "typed"), [("steps = 7", ("--tokens", "900")), ("minutes = 2", ("--steps", "3"))]
)
def test_a_budget_that_is_typed_takes_the_place_of_that_of_the_file(
    numtok: Shell, store: Store, file: str, typed: tuple[str, str]
) -> None:
    Path("numtok.toml").write_text(f'[train]\n{file}\npreset = "{TINY}"\n')
    ran = numtok("train", "arithmetic-xval", "--batch", "64", *typed)
    assert ran.code == 0
    command = store.resolve(ran.out.strip()).manifest.command
    assert command[command.index(typed[0]) + 1] == typed[1]
    both = numtok("train", "arithmetic-xval", "--steps", "1", "--tokens", "9")
    assert (both.code, both.err.count("are two budgets")) == (2, 1)


def test_init_refuses_another_encoding(numtok: Shell, store: Store) -> None:
    first = trained(numtok).out.strip()
    ran = trained(numtok, "--init", first, scheme="p1000")
    message = (
        f"--init {first} was trained on another encoding than "
        f"{store.resolve('arithmetic-p1000').ref}; `numtok encode --like {first}` encodes data "
        "for it"
    )
    assert (ran.code, ran.err) == (2, f"numtok: {message}\n")


def test_init_refuses_another_shape(numtok: Shell, store: Store) -> None:
    first = trained(numtok).out.strip()
    advice = "leave --preset, --embedder and --head out: they are that model's"
    for more, name, there, here in (
        (("--preset", "nano,layers=1,width=48,heads=2"), "embedder.table.weight", "32", "48"),
        (("--preset", f"{TINY},context=9"), "trunk.positions", (16, 32), (9, 32)),
        (("--head", "scalar,layers=1"), "value_head.module.0.bias", (128,), "not there"),
    ):
        ran = trained(numtok, "--init", first, *more)
        shapes = f"its {name} is {there}, here it is {here};"
        if name == "embedder.table.weight":
            shapes = shapes.replace("32", "(271, 32)").replace("48", "(271, 48)")
        message = f"--init {first} has another shape: {shapes} {advice}"
        assert (ran.code, ran.err) == (2, f"numtok: {message}\n")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--warmup", "2"), "--warmup 2.0 is not possible"),
        (("--clip", "-1"), "--clip -1.0 is not possible"),
        (("--preset", "nano,positions=rotary"), "does not go with positions=rotary"),
        (
            ("--head", "token"),
            "--head token cannot read xval, whose tokens alone do not say a number; give one "
            "that reads values, such as scalar",
        ),
        (("--preset", "nano,heads=3"), "width=128 is not possible with 3 heads"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_begun(
    numtok: Shell, store: Store, options: tuple[str, ...], told: str
) -> None:
    ran = trained(numtok, *options)
    assert (ran.code, ran.out) == (2, "") and told in ran.err
    assert not (store.root / MODEL).exists()


@pytest.mark.parametrize("name", ["timing.json", LOG_FILE])
def test_a_found_model_with_a_damaged_file_is_told(numtok: Shell, store: Store, name: str) -> None:
    path = store.resolve(trained(numtok).out.strip()).path / name
    path.write_bytes(path.read_bytes()[:-5])
    ran = trained(numtok)
    assert ran.code == 4
    assert re.search(rf"{re.escape(name)} is damaged: (line \d+: )?it is not JSON", ran.err)


# --- training that fails -----------------------------------------------------------------------


def test_a_loss_that_is_not_finite_ends_training_with_advice(
    numtok: Shell, store: Store, tmp_path: Path
) -> None:
    rows: list[dict[str, object]] = [{"text": f"at {row}.5e35 m"} for row in range(1, 20)]
    texts(store, tmp_path, rows, normalize="none")
    ran = numtok("train", "texts", "--preset", TINY, "--steps", "40", "--lr", "0.01")
    message = (
        "the loss is not finite at step 1; give a smaller --lr (it was 0.01), a longer --warmup, "
        "or a --normalize that keeps numbers small"
    )
    assert (ran.code, ran.out, ran.err) == (5, "", f"numtok: {message}\n")


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate"),
    ],
    ids=["device", "python", "allocator"],
)
def test_a_lack_of_memory_is_told_with_advice(
    numtok: Shell, store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(Model, "losses", fail)
    again, smaller = "--recompute, the same steps in more time", "a smaller --preset"
    parts = "the same steps in smaller parts"
    for given, advice in (
        ("", f"; give --accumulate 2, {parts}, or {again}, or {smaller}"),
        (" --accumulate 3", f"; give --accumulate 6, {parts}, or {again}, or {smaller}"),
        (" --accumulate 40", f"; give --accumulate 64, {parts}, or {again}, or {smaller}"),
        (" --accumulate 64", f"; give {again}, or {smaller}"),
    ):
        ran = trained(numtok, *given.split())
        message = f"numtok: out of memory with --batch 64{given}{advice}\n"
        assert (ran.code, ran.out, ran.err) == (5, "", message)
    ran = trained(numtok, "--accumulate=64", "--recompute")
    message = f"numtok: out of memory with --batch 64 --accumulate 64; give {smaller}\n"
    assert ran.err == message


def test_any_other_error_of_pytorch_is_a_bug(
    numtok: Shell, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("mat1 and mat2")

    monkeypatch.setattr(Model, "losses", fail)
    assert trained(numtok).code == 70


def test_memory_that_is_really_out_is_told(store: Store) -> None:
    # 128 terabytes of positions: more than any machine promises, so that none is ever taken.
    config = tiny(preset=TINY + ",context=1000000000000")
    with pytest.raises(TrainingFailed, match=r"^out of memory with --batch 64; give "):
        run(config, store, lambda update: None)


# --- damage ------------------------------------------------------------------------------------


def damaged(artifact: Artifact) -> NumtokError:
    with pytest.raises(NumtokError) as caught:
        read_model(artifact, CPU)
    assert str(caught.value).isprintable()
    return caught.value


def test_a_model_is_read_as_it_was_written(store: Store) -> None:
    artifact = train(store, tiny(preset=TINY + ",dropout=0.1"))
    loaded = read_model(artifact, CPU)
    weights = load_file(artifact.path / WEIGHTS)
    assert {name: p.dtype for name, p in loaded.model.named_parameters()} == {
        name: torch.float32 for name in weights
    }
    for name, parameter in loaded.model.named_parameters():
        assert torch.equal(parameter, weights[name])
    assert not loaded.model.training
    assert transformer(loaded.model).shape.dropout == 0.1
    assert loaded.codec.digest == read_codec(store.resolve("arithmetic-xval")).digest


@pytest.mark.parametrize("left", [0, 5, 300, -1])
def test_weights_that_end_early_are_refused(store: Store, left: int) -> None:
    artifact = train(store, tiny(steps=1))
    path = artifact.path / WEIGHTS
    path.write_bytes(path.read_bytes()[:left])
    error = damaged(artifact)
    assert isinstance(error, StoreError)
    assert str(error).startswith(f"{path} cannot be read: ")
    assert str(error).endswith("; `numtok verify` says which files are damaged")


def test_weights_that_are_not_there_are_named(store: Store) -> None:
    artifact = train(store, tiny(steps=1))
    (artifact.path / WEIGHTS).unlink()
    error = damaged(artifact)
    assert isinstance(error, StoreError)
    assert str(error).startswith(f"{artifact.path / WEIGHTS} cannot be read: ")


Tensors = dict[str, torch.Tensor]
NORM = "trunk.norm.weight"
CHANGES: dict[str, tuple[Callable[[Tensors], object], str]] = {
    "missing": (lambda all: all.pop(NORM), f"'{NORM}' is None, expected ('F32', 32)"),
    "too many": (
        lambda all: all.update(zzz=torch.zeros(2)), "'zzz' is ('F32', 2), expected None",
    ),
    "another shape": (
        lambda all: all.update({NORM: torch.zeros(33)}),
        f"'{NORM}' is ('F32', 33), expected ('F32', 32)",
    ),
    "another type": (
        lambda all: all.update({NORM: torch.zeros(32, dtype=torch.float64)}),
        f"'{NORM}' is ('F64', 32), expected ('F32', 32)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_weights_of_another_model_are_refused(store: Store, change: str) -> None:
    artifact = train(store, tiny(steps=1))
    path = artifact.path / WEIGHTS
    weights = load_file(path)
    alter, told = CHANGES[change]
    alter(weights)
    save_file(weights, path)
    error = damaged(artifact)
    assert isinstance(error, StoreError)
    assert str(error) == (
        f"{path} does not belong to its model.json: {told}; `numtok verify` says which file is "
        "damaged"
    )


def edited(artifact: Artifact, edit: Callable[[dict[str, Any]], object]) -> NumtokError:
    """What reading says after a change of model.json."""
    path = artifact.path / MODEL_FILE
    content = json.loads(path.read_bytes())
    edit(content)
    path.write_text(json.dumps(content))
    return damaged(artifact)


def test_a_newer_format_of_a_model_is_refused_by_name(store: Store) -> None:
    artifact = train(store, tiny(steps=1))
    error = edited(artifact, lambda content: content.update(format=3, new_field=[]))
    assert isinstance(error, StoreError)
    assert str(error) == (
        f"{artifact.path / MODEL_FILE} has format 3, this numtok knows up to 2; use the numtok "
        "that made it, or a newer one"
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is not JSON (Input data was truncated)"),
        (
            b"\xff\xfe",
            "it is not JSON ('utf-8' codec can't decode byte 0xff in position 0: "
            "invalid start byte)",
        ),
        (b'{"a":' * 100_000, "it is nested too deep"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "it does not say which version of such a file it is"),
        (b'{"format": 1}', "Object missing required field `settings`"),
    ],
)
def test_a_model_file_that_is_none_is_refused(store: Store, content: bytes, why: str) -> None:
    artifact = train(store, tiny(steps=1))
    path = artifact.path / MODEL_FILE
    path.write_bytes(content)
    error = damaged(artifact)
    assert isinstance(error, StoreError)
    assert str(error) == f"{path} is damaged: {why}; `numtok verify` says which files are damaged"


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda model: model["settings"].pop("tied"), "Object missing required field `tied`"),
        (lambda model: model["settings"].update(trunk=[]), "Expected `object`, got `array`"),
        (lambda model: model["settings"]["trunk"].update(width="32"), "Expected `int`, got `str`"),
        (lambda model: model["trained"].update(steps=None), "Expected `int`, got `null`"),
        (lambda model: model["trained"].update(more=1), "Object contains unknown field `more`"),
    ],
)
def test_wrong_fields_of_a_model_file_are_named(
    store: Store, edit: Callable[[dict[str, Any]], object], why: str
) -> None:
    error = edited(train(store, tiny(steps=1)), edit)
    assert isinstance(error, StoreError)
    assert why in str(error)


def test_a_setting_that_a_part_has_not_is_named(store: Store) -> None:
    error = edited(
        train(store, tiny(steps=1)), lambda model: model["settings"]["trunk"].update(more=1)
    )
    assert isinstance(error, UsageError)
    assert f"{MODEL_FILE}: unknown setting of 'transformer' 'more'; known: " in str(error)


def test_sizes_of_a_model_file_are_checked_before_memory_is_taken(store: Store) -> None:
    artifact = train(store, tiny(steps=1))
    error = edited(artifact, lambda model: model["settings"]["trunk"].update(width=64))
    assert isinstance(error, StoreError)
    assert "its model.json: 'embedder.table.weight' is ('F32', 271, 32)" in str(error)


@pytest.mark.parametrize(
    ("what", "size"),
    [("width", 1 << 40), ("width", 10**30), ("layers", 10**6), ("context", 10**9)],
)
def test_a_model_of_sizes_that_its_weights_cannot_have_is_not_made(
    store: Store, what: str, size: int
) -> None:
    artifact = train(store, tiny(steps=1))
    error = edited(artifact, lambda model: model["settings"]["trunk"].update({what: size}))
    assert isinstance(error, StoreError)
    path = artifact.path / MODEL_FILE
    assert str(error).startswith(f"{path} is of no model that can be ({what} is {size:,}, ")


def test_an_encoding_of_another_model_is_refused(store: Store) -> None:
    artifact = train(store, tiny(steps=1))
    other = store.resolve("arithmetic-p1000").path / "scheme.json"
    shutil.copy(other, artifact.path / "scheme.json")
    error = damaged(artifact)
    assert isinstance(error, StoreError)
    assert str(error) == (
        f"{artifact.path / MODEL_FILE} is for 271 tokens, scheme.json beside it has 1189; "
        f"`numtok verify {artifact.ref}` says which is damaged"
    )


@pytest.mark.parametrize("split", ["train", "validation"])
@pytest.mark.parametrize("objective", [(), ("--objective", "mlm")], ids=["default", "mlm"])
def test_damaged_data_are_refused_in_one_line(
    numtok: Shell, store: Store, split: str, objective: tuple[str, ...]
) -> None:
    (shard,) = store.resolve("arithmetic-xval").path.glob(f"{split}-*.parquet")
    shard.write_bytes(shard.read_bytes()[:-100])
    ran = trained(numtok, *objective)
    assert (ran.code, ran.out) == (4, "")
    assert re.fullmatch(r"numtok: .* cannot be read: .*`numtok verify` says .*\n", ran.err)
