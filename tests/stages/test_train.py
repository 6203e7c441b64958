"""``numtok train``: results, output and errors. Faults are tested in test_train_faults.py."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from numtok.cli.output.train import TrainingBar
from numtok.encoding import splits
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schema import TokenIds
from numtok.encoding.splits import read_split
from numtok.encoding.stored_codec import read_codec
from numtok.errors import DataError, NumtokError, StoreError, TrainingFailed, UsageError
from numtok.models.flops import ModelFlops
from numtok.models.model import Model
from numtok.models.presets import preset
from numtok.stages import train as stage
from numtok.stages.train import Config, pace, run
from numtok.store.artifact import MODEL, Artifact
from numtok.store.store import Store
from numtok.store.verification import verify
from numtok.training import device as devices
from numtok.training import loop, text_learner
from numtok.training.device import MatmulRate
from numtok.training.examples import SplitExamples
from numtok.training.log import LOG_FILE
from numtok.training.loop import Speed, TrainingProgress
from numtok.training.model_files import read_model, read_regressor
from numtok.training.model_json import MODEL_FILE
from numtok.training.weights import WEIGHTS
from tests.cases import case
from tests.chain import contents, encoded, generated, jsonl, quiet, timing_of
from tests.fakemodels import transformer
from tests.forged import forged
from tests.messages import Says
from tests.shell import Ran, Shell

TINY = "nano,layers=1,width=32,heads=2"
CPU = torch.device("cpu")
Row = dict[str, object]
CONTENT = {WEIGHTS, MODEL_FILE, LOG_FILE, "scheme.json"}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use one thread: more threads slow down such small models, and their number changes bytes."""
    threads = torch.get_num_threads()
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    torch.set_num_threads(1)  # also if the fixture ``numtok`` unsets the variable
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with sums and products in three encodings, with 480 of 600 rows in train."""
    root = tmp_path_factory.mktemp("data") / "artifacts"
    generated(Store(root), "arithmetic,operands=2", 600)
    for scheme in ("numvalue", "p1000", "xval"):
        encoded(Store(root), "arithmetic", scheme=scheme)
    return root


@pytest.fixture
def store(data: Path, tmp_path: Path) -> Store:
    """Return a copy of that store for one test, in the working folder of ``numtok``."""
    shutil.copytree(data, tmp_path / "artifacts")
    return Store(tmp_path / "artifacts")


@pytest.fixture(scope="module")
def taught(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of that store with the model that ``trained`` makes."""
    root = tmp_path_factory.mktemp("taught") / "artifacts"
    shutil.copytree(data, root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        train(Store(root), tiny(steps=4))
    return root


@pytest.fixture
def learnt(taught: Path, tmp_path: Path) -> Artifact:
    """Return the model in another copy for one test, in the working folder of ``numtok``."""
    shutil.copytree(taught, tmp_path / "artifacts")
    return Store(tmp_path / "artifacts").resolve("arithmetic-xval-nano")


def tiny(scheme: str = "xval", **options: Any) -> Config:
    """Return settings for a few steps with a tiny model. An epoch has 8 steps."""
    budget = {} if {"tokens", "minutes"} & options.keys() else {"steps": 6}
    chosen: dict[str, Any] = {"preset": TINY, "batch": 64} | budget | options
    return Config(f"arithmetic-{scheme}", **chosen)


def train(store: Store, config: Config) -> Artifact:
    result = run(config, store, quiet)
    assert result.made
    assert verify(result.artifact).problems == []
    return result.artifact


def records(artifact: Artifact, split: str) -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl for a split."""
    lines = map(msgspec.json.decode, (artifact.path / LOG_FILE).read_bytes().splitlines())
    return [line for line in lines if line["split"] == split]


def texts(store: Store, rows: Sequence[Mapping[str, object]], **options: Any) -> Artifact:
    """Encode rows of text under the name ``texts``."""
    path = jsonl(store.root.parent / "texts.jsonl", rows)
    return encoded(store, path, **{"scheme": "xval", "name": "texts"} | options)


def sentences(rows: int) -> list[Row]:
    """Return rows of very different lengths, without targets."""
    return [{"text": f"at {row}.5 m" + " and so on" * (row * row % 17)} for row in range(rows)]


@pytest.mark.parametrize(("rate", "told"), [(0.6e9, True), (200e9, False)])
def test_a_cpu_that_has_no_bfloat16_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch, rate: float, told: bool
) -> None:
    monkeypatch.setattr(MatmulRate, "_measured", {})
    monkeypatch.setattr(
        devices, "measured_matmul_rate", lambda _, bfloat16, tries: rate if bfloat16 else 60e9
    )
    notes: list[str] = []
    run(tiny(precision="bfloat16", steps=1), Store(store.root, notes.append), quiet)
    assert any("bfloat16 is 100 times slower than float32" in note for note in notes) == told


@pytest.mark.parametrize(
    ("normalize", "has_note"),
    [("scale:5", True), ("signed-log", True), ("affine", True), ("affine,by=answer", False)],
)
def test_a_target_that_hardly_varies_has_a_note(
    tmp_path: Path, normalize: str, has_note: bool
) -> None:
    rows: list[Row] = []
    for k in range(60):
        text = f"sold for {1000 * k} in "
        span = [len(text), len(text) + 4]
        targets = {"year": [span]}
        rows.append({"text": f"{text}{1990 + k % 7}", "targets": targets, "answer_start": span[0]})
    notes: list[str] = []
    store = Store(tmp_path / "s", notes.append)
    data = encoded(store, jsonl(tmp_path / "a.jsonl", rows), scheme="xval", normalize=normalize)
    run(Config(data.ref, preset=TINY, batch=8, steps=1), store, quiet)
    assert any("'year'" in note and "affine,by=answer" in note for note in notes) == has_note


# --- results -----------------------------------------------------------------------------------


def test_a_model_holds_its_weights_settings_losses_and_encoding(store: Store) -> None:
    artifact = train(store, tiny())
    assert contents(artifact).keys() == CONTENT
    encoded = store.resolve("arithmetic-xval")
    scheme, same = ((one.path / "scheme.json").read_bytes() for one in (artifact, encoded))
    assert scheme == same
    assert artifact.manifest.parents == (encoded.as_parent(),)
    assert artifact.manifest.seed == 0
    model = read_model(artifact, CPU)
    parameters, _ = model.model.parameter_counts()
    assert artifact.manifest.counts == {
        "rows": 480, "steps": 6, "samples": 384, "tokens": 384 * 6, "parameters": parameters,
    }  # fmt: skip
    trained = model.trained
    assert (trained.steps, trained.samples, trained.tokens) == (6, 384, 384 * 6)
    samples = read_split(encoded, "train")
    examples = SplitExamples(samples, read_codec(encoded), model.model.objective, 64, 0)
    given = model.model.on_host(examples.training_batch(0))
    assert trained.flops == 3 * 6 * ModelFlops(model.model)(given).total
    answers = [float(literal.as_py()) for literal in samples.target_literal]
    assert len(answers) == 480 and trained.train_mean == pytest.approx(np.mean(answers))
    learnt = trained.configuration
    parts = [learnt[part] for part in ("objective", "embedder", "head")]
    assert parts == ["mlm:targets", "scaled", "scalar"]
    timing = timing_of(artifact)
    seconds = timing["seconds"]
    assert timing["tokens_per_second"] == pytest.approx(trained.tokens / seconds)
    assert timing["numbers_per_second"] == pytest.approx(trained.tokens / 2 / seconds)  # 3 of 6
    assert timing["flops_per_second"] == pytest.approx(trained.flops / seconds)
    assert timing["matmul_flops_per_second"] > 1e8
    assert timing["mfu"] == timing["flops_per_second"] / timing["matmul_flops_per_second"]
    assert timing["peak_memory"] > 1 << 20


def test_an_epoch_ends_with_a_smaller_batch_that_is_counted_so(store: Store) -> None:
    assert train(store, tiny(steps=8)).manifest.counts["samples"] == 480
    assert train(store, tiny(steps=9)).manifest.counts["samples"] == 480 + 64


@pytest.mark.parametrize("scheme", ["p1000", "xval"])
def test_a_model_learns(store: Store, scheme: str) -> None:
    artifact = train(store, tiny(scheme, steps=40, learning_rate=0.02))
    for split in ("train", "validation"):
        losses = [record["loss"] for record in records(artifact, split)]
        assert losses[-1] < 0.8 * losses[0], (split, losses)


def test_without_targets_every_number_is_learnt(store: Store) -> None:
    texts(store, sentences(40))
    artifact = train(store, Config("texts", preset=TINY, steps=3, batch=16))
    trained = read_model(artifact, CPU).trained
    assert trained.configuration["objective"] == "mlm"
    assert trained.calibrated_on == "train"
    assert records(artifact, "validation") == []
    assert len(records(artifact, "train")) == 3


def test_losses_are_of_both_splits_and_the_head_is_calibrated_on_validation(store: Store) -> None:
    artifact = train(store, tiny(steps=12))
    assert [record["step"] for record in records(artifact, "train")] == list(range(1, 13))
    # Validation costs a third of a step and may take a tenth of the time, so it runs every 3 steps.
    assert [record["step"] for record in records(artifact, "validation")] == [3, 6, 9, 12]
    for record in records(artifact, "validation"):
        assert record["loss"] == record["token_loss"] + record["value_loss"]
        assert record["tokens"] == records(artifact, "train")[record["step"] - 1]["tokens"]
    trained = read_model(artifact, CPU).trained
    assert trained.calibrated_on == "validation"
    # The standard deviation is measured on the same rows as the last loss of the value head.
    last = records(artifact, "validation")[-1]["value_loss"]
    assert trained.calibration["deviation"] == pytest.approx(last**0.5, rel=1e-6)


def test_without_numbers_in_channels_nothing_is_calibrated(store: Store) -> None:
    trained = read_model(train(store, tiny("p1000")), CPU).trained
    assert (trained.calibration, trained.calibrated_on) == ({}, None)
    texts(store, [{"text": "no number"}, {"text": "here"}] * 8, normalize="none")
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


@pytest.mark.parametrize("objective", ["ar", "mlm,rate=1"])  # ar reads the number, mlm masks it
@pytest.mark.parametrize("others", [0, 5])
def test_numbers_too_large_for_float32_do_not_spoil_a_model_that_never_learnt_them(
    store: Store, objective: str, others: int
) -> None:
    numbers = [f"at {row}.5 m" for row in range(20 + others)] + ["at 1e30 or so"]
    splits = ["train"] * 20 + ["validation"] * (others + 1)
    rows = [{"text": text, "split": one} for text, one in zip(numbers, splits, strict=True)]
    texts(store, rows, normalize="none")
    config = Config("texts", preset=TINY, objective=objective, steps=3, checkpoint_steps=1)
    artifact = train(store, config)
    last = records(artifact, "validation")[-1]
    assert (last["loss"], last["value_loss"]) == (None, None)
    assert np.isfinite([record["loss"] for record in records(artifact, "train")]).all()
    assert np.isfinite(read_model(artifact, CPU).trained.calibration["deviation"])


@pytest.mark.parametrize(("scheme", "steps"), [("p1000", 10), ("xval", 11)])
def test_threads_that_prepare_batches_change_nothing(
    store: Store, tmp_path: Path, scheme: str, steps: int
) -> None:
    made = []
    for workers in (0, 1, 3):
        root = tmp_path / f"workers {workers}"
        shutil.copytree(store.root, root)
        # With two steps per epoch, the threads are often in different epochs.
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
        assert not run(replace(config, **change), store, quiet).made, change
    named = train(store, replace(config, name="mine"))
    assert (named.name, named.version) == ("mine", run(config, store, print).artifact.version)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which(os.environ.get("CXX", "g++")), reason="no C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from PyTorch's compiler
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
def test_a_budget_of_tokens_ends_with_its_last_batch(store: Store, objective: str) -> None:
    texts(store, sentences(150))
    for tokens in (1, 700, 8_000):
        config = Config("texts", preset=TINY, objective=objective, tokens=tokens, batch=16)
        artifact = train(store, config)
        seen = [record["tokens"] for record in records(artifact, "train")]
        assert seen[-1] == artifact.manifest.counts["tokens"] >= tokens
        assert ([0, *seen])[-2] < tokens


def test_a_budget_in_minutes_is_measured_and_is_what_the_version_depends_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = train(store, tiny(minutes=0.004))
    assert made.manifest.settings["budget"] == {"minutes": 0.004}
    steps = made.manifest.counts["steps"]
    assert steps > 1
    # The budget is 0.24 seconds, but other processes may use the CPU.
    assert 0.024 < timing_of(made)["seconds"] < 6
    store.remove(made)
    monkeypatch.setattr(loop, "seconds_per_step", lambda *_: 0.004 * 60 / 4)
    slower = train(store, tiny(minutes=0.004))
    assert slower.version == made.version
    assert slower.manifest.counts["steps"] == 4


def test_a_pace_is_measured_and_nothing_is_kept_of_it(store: Store) -> None:
    before = [one.ref for one in store.artifacts()]
    seconds = pace(tiny(), store, 0.01)
    assert 0 < seconds < 5
    assert [one.ref for one in store.artifacts()] == before
    with pytest.raises(UsageError, match="token"):  # like training
        pace(tiny(head="token"), store, 0.01)


def test_the_budget_is_five_minutes_unless_said() -> None:
    assert Config("x").budget == {"minutes": 5.0}
    assert Config("x", tokens=10).budget == {"tokens": 10}


# --- from another model ------------------------------------------------------------------------


def test_init_begins_with_the_weights_of_a_model(store: Store) -> None:
    first = train(store, tiny(steps=12))
    again = train(store, tiny(steps=1, init=first.ref, learning_rate=1e-9, name="again"))
    assert again.manifest.parents[1] == first.as_parent()
    # Such a low rate does not change the weights.
    last = records(first, "validation")[-1]["loss"]
    assert records(again, "validation")[0]["loss"] == pytest.approx(last, rel=1e-5)
    fresh = train(store, tiny(steps=1, learning_rate=1e-9, name="fresh"))
    assert records(fresh, "validation")[0]["loss"] > records(again, "validation")[0]["loss"]
    configuration, before = (read_model(one, CPU).trained.configuration for one in (again, first))
    expected = {f"init.{key}": before[key] for key in before if f"init.{key}" in configuration}
    expected["init.data"] = first.manifest.parents[0].where
    assert configuration == before | configuration
    assert {key: one for key, one in configuration.items() if key[:5] == "init."} == expected
    assert set(before) - {key[5:] for key in expected} == {"scheme", "normalize", "text_tokenizer"}


def test_init_brings_the_range_that_its_head_says_numbers_by(store: Store) -> None:
    rows, more_rows = ([of_x(n * factor / 40) for n in range(1, 40)] for factor in (1, 1000))
    small = texts(store, rows, name="small", normalize="none")
    large = texts(store, more_rows, name="large", scheme=None, like=small.ref)
    common: dict[str, Any] = {"preset": TINY, "head": "riemann:9", "steps": 1, "batch": 8}
    first = train(store, Config(small.ref, **common))
    more: dict[str, Any] = {"init": first.ref, "learning_rate": 1e-9, "name": "second"}
    second = train(store, Config(large.ref, **common, **more))
    one, other = (read_model(artifact, CPU).model for artifact in (first, second))
    assert one.settings.scaling == other.settings.scaling is not None
    # Both heads have the same number of outputs, but the outputs have other meanings.
    told = "does not match: its head is riemann:9, but the new model's is mdn:3"
    with pytest.raises(UsageError, match=told):
        train(store, Config(small.ref, **common | more | {"head": "mdn:3", "name": "third"}))


def of_x(value: float) -> Row:
    """Return a row such as ``x = 7`` with the target x."""
    return {"id": f"{value}", "text": f"x = {value}", "targets": {"x": [[4, 4 + len(f"{value}")]]}}


def test_a_validation_split_of_which_nothing_is_asked_has_no_loss(store: Store) -> None:
    rows: list[Row] = [
        *map(of_x, range(10, 40)),
        {"id": "v", "text": "x = 7", "split": "validation"},
    ]
    artifact = texts(store, rows)
    model = train(store, Config(artifact.ref, preset=TINY, objective="mlm:targets", steps=2))
    told = records(model, "validation")
    assert told and all(line["loss"] is None for line in told)
    assert all(line["loss"] is not None for line in records(model, "train"))


def test_init_brings_the_context_unless_the_preset_says_one_and_any_objective(store: Store) -> None:
    nine = TINY + ",context=9"
    first = train(store, tiny(preset=nine))
    models = [
        read_model(train(store, tiny(init=init, preset=preset, name="n", **more)), CPU).model
        for init, preset, more in (
            (None, TINY, {}),
            (first.ref, TINY, {}),
            (first.ref, nine, {}),
            (first.ref, nine, {"objective": "ar"}),
        )
    ]
    assert [one.settings.context for one in models] == [16, 9, 9, 9]
    assert [one.objective.causal for one in models] == [False] * 3 + [True]


def test_init_brings_preset_embedder_and_head(store: Store) -> None:
    own = {"preset": TINY + ",positions=rotary", "embedder": "fourier", "head": "mdn:3"}
    first = train(store, tiny(**own))
    second = train(store, tiny(preset=None, init=first.ref, name="second"))
    assert second.name == "second"
    one, other = (read_model(model, CPU) for model in (first, second))
    assert other.model.settings == one.model.settings
    told = {key: other.trained.configuration[key] for key in own}
    assert told == {key: one.trained.configuration[key] for key in own}
    said = run(tiny(**own, init=first.ref, name="second"), store, quiet)
    assert (said.made, said.artifact) == (False, second)
    assert train(store, tiny(preset=None, init=first.ref, seed=1)).name == "arithmetic-xval-nano"


def test_init_refuses_rows_longer_than_its_places(store: Store, says: Says) -> None:
    short = texts(store, [{"id": f"{n}", "text": f"x = {n}"} for n in range(9)])
    first = train(store, Config(short.ref, preset=TINY + ",context=8", steps=1, name="first"))
    rows = [{"id": f"{n}", "text": f"x = {n}" + " = x" * 4} for n in range(9)]
    long = texts(store, rows, scheme=None, like=first.ref, name="long")
    for size in (None, TINY, TINY + ",context=32"):
        with pytest.raises(DataError) as caught:
            train(store, Config(long.ref, preset=size, init=first.ref, steps=1, name="second"))
        text = str(caught.value).replace(long.ref, "LONG").replace(first.ref, "FIRST")
        says(text, "LONG has a row of 19", "--init-from FIRST", "8 trained positions", "context=19")


def test_init_refuses_a_model_of_tables(numtok: Shell, store: Store) -> None:
    Path("t.csv").write_text("x,y\n" + "".join(f"{n},{n * n}\n" for n in range(40)), "utf-8")
    ref = numtok("train", "t.csv", "--target", "y", "--epochs", "1").out.split()[-1]
    ran = trained(numtok, "--init-from", ref)
    assert (ran.code, ran.out) == (2, "")
    assert f"--init-from {ref} is a table model" in ran.err


# --- the command -------------------------------------------------------------------------------

ARGUMENTS = ("--preset", TINY, "--steps", "4", "--batch", "64")


def trained(numtok: Shell, *more: str, scheme: str = "xval") -> Ran:
    return numtok("train", f"arithmetic-{scheme}", *ARGUMENTS, *more)


def figures(ran: Ran) -> dict[str, str]:
    """Return the table that training printed."""
    return dict(re.split(r"\s{2,}", line.strip()) for line in ran.err.splitlines()[3:] if line)


def test_train_prints_the_ref_and_what_it_did(numtok: Shell, store: Store) -> None:
    ran = trained(numtok)
    (artifact,) = (one for one in store.artifacts() if one.kind == "model")
    assert (ran.code, ran.out) == (0, artifact.ref + "\n")
    assert artifact.name == "arithmetic-xval-nano"
    assert ran.err.startswith("trained\n")
    table = figures(ran)
    assert list(table) == [
        "parameters", "steps", "examples", "tokens", "context", "training loss",
        "validation loss", "time", "tokens/s", "MFU", "peak memory",
    ]  # fmt: skip
    assert (table["steps"], table["examples"]) == ("4", "256")
    assert float(table["training loss"]) == pytest.approx(
        records(artifact, "train")[-1]["loss"], 1e-3
    )


def test_a_rerun_finds_the_model_without_training(
    numtok: Shell, learnt: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*arguments: object) -> None:
        raise AssertionError("nothing should be read or trained")

    monkeypatch.setattr(text_learner, "read_split", forbidden)
    monkeypatch.setattr(text_learner, "Training", forbidden)
    ran = trained(numtok)
    assert (ran.code, ran.out) == (0, f"{learnt.ref}\n")
    assert ran.err.startswith("already trained\n")
    assert trained(numtok, "--quiet").err == ""


def test_train_prints_for_programs(numtok: Shell, learnt: Artifact) -> None:
    ref, splits = learnt.ref, ("train", "validation")
    ran = trained(numtok, "--json")
    assert ran.err == ""
    assert json.loads(ran.out) == {
        "schema": 1, "ref": ref, "made": False, "counts": learnt.manifest.counts,
        "losses": {split: records(learnt, split)[-1]["loss"] for split in splits},
        "timing": timing_of(learnt),
    }  # fmt: skip
    assert trained(numtok, "--format", "json").out == ran.out
    table = dict(list(csv.reader(io.StringIO(trained(numtok, "--format", "csv").out)))[1:])
    assert (table["ref"], table["steps"]) == (ref, "4")
    assert f"| ref | {ref} |" in trained(numtok, "--format", "md").out.splitlines()


@pytest.mark.parametrize(
    "more",
    [
        ("--steps", "3"),
        (
            "--tokens",
            "1500",
            "--objective",
            "ar",
            "--seed",
            "5",
            "--grad-clip",
            "0",
            "--name",
            "mine",
        ),
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


def test_the_command_of_a_model_names_its_init(numtok: Shell, learnt: Artifact) -> None:
    first = learnt.ref
    second = trained(numtok, "--init-from", first, "--name", "second").out
    command = shlex.split(numtok("show", second.strip()).out.splitlines()[0])
    assert command[command.index("--init-from") + 1] == first
    assert numtok(*command[1:]).out == second
    lineage = numtok("lineage", second.strip()).out
    assert first in lineage and learnt.manifest.parents[0].where in lineage


def test_files_of_a_found_model_may_lack_what_is_not_known_of_it_but_not_be_damaged(
    numtok: Shell, learnt: Artifact
) -> None:
    path = learnt.path / "timing.json"
    path.write_text('{"seconds": 2.5, "tokens_per_second": 1000.0, "device": "cpu", "threads": 1}')
    ran = trained(numtok)
    assert ran.code == 0
    shown = figures(ran)
    assert (shown["tokens/s"], shown["MFU"], shown["peak memory"]) == ("1,000", "-", "-")
    for name in ("timing.json", LOG_FILE):
        path, content = learnt.path / name, (learnt.path / name).read_bytes()
        path.write_bytes(content[:-5])
        ran = trained(numtok)
        assert ran.code == 4
        assert re.search(rf"{re.escape(name)} is damaged: (line \d+: )?it is not JSON", ran.err)
        path.write_bytes(content)


def test_a_profile_has_a_trace_and_a_table_and_changes_nothing(
    numtok: Shell, learnt: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    before = contents(learnt)
    assert numtok("rm", learnt.ref).code == 0
    trace = tmp_path / "trace.json"
    ran = trained(numtok, "--trace", str(trace), "--checkpoint-every", "1")
    assert (ran.code, ran.out) == (0, f"{learnt.ref}\n")
    assert contents(learnt) == before
    names = [event["name"] for event in json.loads(trace.read_bytes())["traceEvents"]]
    assert names.count("Optimizer.step#AdamW.step") == 5
    title, columns, _, *lines = ran.err.splitlines()
    assert (title, columns.split()) == (
        "cost of a step",
        ["operation", "ms", "of", "step", "calls"],
    )
    costs = [re.split(r"\s{2,}", line.strip()) for line in lines[: lines.index("")]]
    assert {cost[0] for cost in costs} <= set(names)
    shares = [float(cost[2].removesuffix("%")) for cost in costs]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 100.5


def test_a_profile_needs_training(
    numtok: Shell, learnt: Artifact, tmp_path: Path, says: Says
) -> None:
    nowhere = tmp_path / "none" / "trace.json"
    ran = trained(numtok, "--seed", "1", "--trace", str(nowhere))
    says.refused(ran, 2, "--trace", f"{nowhere.parent} is not a folder")
    ran = trained(numtok, "--trace", str(tmp_path / "trace.json"))
    says.refused(ran, 2, f"--trace: {learnt.ref} already exists", "add --force")
    ran = trained(numtok, "--quiet", "--force", "--trace", str(tmp_path / "trace.json"))
    assert ran.err == ""


def test_verify_and_lineage_know_models(numtok: Shell, learnt: Artifact) -> None:
    ref, store = learnt.ref, Store(Path("artifacts"))
    assert numtok("verify", ref).code == 0
    lineage = numtok("lineage", ref).out
    for parent in ("arithmetic-xval", "arithmetic"):
        assert any(one.ref in lineage for one in store.artifacts() if one.name == parent)
    weights = learnt.path / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    assert numtok("verify", ref).code == 1


def test_other_data_can_train_a_model_further(numtok: Shell, learnt: Artifact) -> None:
    ref = learnt.ref
    rows = [{"text": f"({row}.5 + 1) = {row + 1}.5"} for row in range(20)]
    jsonl(Path("more.jsonl"), rows)
    encoded = numtok("encode", "--reuse-encoding", ref, "more.jsonl")
    assert encoded.code == 0, encoded.err
    more = numtok(
        "train", encoded.out.strip(), "--init-from", ref, "--preset", TINY, "--steps", "2"
    )
    assert more.code == 0, more.err


def test_force_makes_the_same_model_again(numtok: Shell, learnt: Artifact) -> None:
    before = (learnt.path / WEIGHTS).stat().st_ino
    ran = trained(numtok, "--force")
    assert (ran.code, ran.out) == (0, f"{learnt.ref}\n")
    assert (learnt.path / WEIGHTS).stat().st_ino == before
    (learnt.path / LOG_FILE).write_bytes(b"{}\n")
    ran = trained(numtok, "--force")
    assert ran.code == 1
    assert f"made again, {learnt.ref} differs in metrics.jsonl" in ran.err


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
        step=3, steps=1200, loss=0.125, speed=Speed(12_345.6, 2.5e6, 1e11, 0.625),
        peak_memory=1_250_000_000, seconds_left=61.0,
    )  # fmt: skip
    shown = {}
    for stream in (_Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with TrainingBar(quiet) as bar:
            bar(update)
        shown[type(stream)] = stream.getvalue()
    assert shown[io.StringIO] == ""
    told = "1:01 left  loss 0.125  12,346 tok/s  62% MFU  peak 1.25 GB"
    assert ("step 3/1,200" in shown[_Terminal]) == (told in shown[_Terminal]) == (not quiet)
    assert bool(shown[_Terminal]) != quiet


def test_updates_say_where_training_stands(store: Store) -> None:
    updates: list[Any] = []
    run(tiny(steps=5), store, updates.append)
    assert [(one.step, one.steps) for one in updates] == [(step, 5) for step in range(1, 6)]
    for one in updates:
        speed = one.speed
        assert speed.tokens_per_second > 0
        assert speed.numbers_per_second == pytest.approx(speed.tokens_per_second / 2)  # 3 of 6
        assert 0 < speed.mfu <= 1
        assert one.peak_memory > 1 << 20
    assert updates[-1].seconds_left == 0


# --- errors ------------------------------------------------------------------------------------

#: Invalid options, and parts of their error messages.
REFUSED: tuple[tuple[str, *tuple[str, ...]], ...] = (
    ("--steps 1 --minutes 1", "--steps and --minutes", "cannot be combined"),
    ("--steps 1 --tokens 1", "--steps and --tokens", "cannot be combined"),
    ("--steps 0", "--steps must be above 0"),
    ("--tokens -5", "--tokens must be above 0"),
    ("--minutes 0", "--minutes must be above 0 and finite"),
    ("--minutes nan", "--minutes must be above 0 and finite"),
    ("--minutes inf", "--minutes must be above 0 and finite"),
    ("--batch 0", "--batch must be above 0"),
    ("--accumulate 0", "--accumulate must be at least 1 (got "),
    ("--accumulate 65 --batch 64", "--accumulate must be from 1 to --batch, 64"),
    ("--checkpoint-every 0", "--checkpoint-every must be above 0"),
    ("--batch-workers -1", "--batch-workers must be at least 0 (got "),
    ("--lr 0", "--lr must be above 0 and below 1"),
    ("--lr 1", "--lr must be above 0 and below 1"),
    ("--lr nan", "--lr must be above 0 and below 1"),
    ("--warmup 1", "--warmup must be at least 0 and below 1"),
    ("--warmup 2", "--warmup must be at least 0 and below 1"),
    ("--weight-decay -1", "--weight-decay must be at least 0 and finite"),
    ("--grad-clip -1", "--grad-clip must be at least 0 (got "),
    ("--precision float16", "'float16'", "auto, float32 or bfloat16"),
    ("--device gpu", "'gpu'", "auto, cpu, cuda, cuda:N and mps"),
    ("--name 'My Model'", "--name must be lower-case", "'My Model'"),
    ("--preset nanno", "'nanno'", "Did you mean 'nano'?"),
    ("--preset nano,layer=2", "'layer'", "Did you mean 'layers'?"),
    ("--preset nano,layers=two", "layers must be an integer", "'two'"),
    ("--preset nano,width=30", "width", "4 heads", "a multiple of 8", "got 30"),
    ("--preset nano,heads=3", "width", "3 heads", "got 128"),
    ("--objective mlmm", "'mlmm'", "Did you mean 'mlm'?", "ar"),
    ("--objective mlm:words", "mask must be", "numbers, tokens or targets"),
    ("--embedder scale", "'scale'", "Did you mean 'scaled'?"),
    ("--head scaler", "'scaler'", "Did you mean 'scalar'?"),
    ("--head token", "--head token", "xval", "such as scalar"),
    ("--preset nano,positions=rotary", "positions=rotary", "positions=learned"),
)


def test_settings_that_cannot_be_are_refused_before_anything_is_begun(
    numtok: Shell, store: Store, says: Says
) -> None:
    for options, *parts in REFUSED:
        with case(options=options):
            arguments = shlex.split(options)
            budget = () if {"--steps", "--tokens", "--minutes"} & {*arguments} else ("--steps", "2")
            ran = numtok("train", "arithmetic-xval", *arguments, *budget)
            says.refused(ran, 2, *parts)
    assert not (store.root / MODEL).exists()


def test_what_the_machine_or_the_data_do_not_have_is_refused(
    numtok: Shell, store: Store, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setenv("CXX", "no-such-compiler")
    for words, *parts in (
        ("arithmetic-xval --device cuda", "--device cuda", "Use --device cpu"),
        # PyTorch cannot reset the generator of MPS, so recomputed dropout would differ.
        (f"arithmetic-xval --preset {TINY},dropout=0.1 --device mps --recompute",
         "--recompute", "--device mps", "dropout=0"),
        ("arithmetic-xval --compile", "--compile", "'no-such-compiler'", "CXX"),
        ("arithmetic", "'arithmetic' is unencoded data", "encoded data or a table"),
        ("arithmetic-xvall", "'arithmetic-xvall' in artifacts", "Did you mean 'arithmetic-xval'?"),
    ):  # fmt: skip
        with case(words=words):
            says.refused(numtok("train", *words.split(), "--steps", "1"), 2, *parts)


def test_data_without_what_is_asked_for_is_refused(numtok: Shell, store: Store, says: Says) -> None:
    ref = texts(store, sentences(20)).ref
    for objective, wanted in (("mlm:targets", "targets"), ("ar:answer", "answer_start")):
        ran = numtok("train", "texts", "--steps", "1", "--objective", objective)
        says.refused(ran, 3, f"--objective {objective} needs {wanted}", ref, "another --objective")
    rows = [{"text": "at 1.5 m", "split": "test"}]
    test_only = texts(store, rows, scheme=None, like="texts", name="other").ref
    ran = numtok("train", "other", "--steps", "1")
    says.refused(ran, 3, f"{test_only} has no split 'train'", "Encode one")


@pytest.mark.parametrize(("objective", "tokens"), [("mlm", 6), ("ar", 7)])
def test_a_row_longer_than_the_context_is_refused(
    numtok: Shell, store: Store, says: Says, objective: str, tokens: int
) -> None:
    size = f"{TINY},context={tokens - 1}"
    run = ("train", "arithmetic-xval", "--steps", "1", "--objective", objective)
    ref = store.resolve("arithmetic-xval").ref
    parts = (f"{ref} has a row of {tokens}", f"--preset {size} reads {tokens - 1}")
    says.refused(numtok(*run, "--preset", size), 3, *parts, f"Set context={tokens} in the preset")
    assert numtok(*run, "--preset", f"{TINY},context={tokens}").code == 0


@pytest.mark.parametrize("objective", ["mlm", "ar"])
def test_the_context_covers_other_splits(numtok: Shell, store: Store, objective: str) -> None:
    rows = [{"text": f"at 1.{k} m", "split": "train"} for k in range(8)]
    rows.append({"text": "at 2.5 m" + " and 1 m" * 30, "split": "ood"})
    data = texts(store, rows, name="long")
    longest = read_split(data, "ood").longest + (objective == "ar")
    run = ("train", data.ref, "--steps", "1", "--objective", objective, "--format", "table")
    ran = numtok(*run, "--preset", TINY)
    reads = re.search(r"context +(\d+) tokens", ran.out + ran.err)
    assert ran.code == 0 and reads and longest <= int(reads[1]) < longest + 16, ran
    assert "split 'ood'" not in ran.err
    ran = numtok(*run, "--preset", f"{TINY},context={longest - 1}")
    assert ran.code == 0 and f"context={longest}" in ran.err, ran


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
    assert (both.code, both.err.count("cannot be combined")) == (2, 1)


def test_init_refuses_other_encoding_or_shape(numtok: Shell, learnt: Artifact, says: Says) -> None:
    first, other = learnt.ref, Store(Path("artifacts")).resolve("arithmetic-p1000").ref
    ran = trained(numtok, "--init-from", first, scheme="p1000")
    says.refused(ran, 2, f"--init-from {first}", other, f"`numtok encode --reuse-encoding {first}`")
    for option, spec, *told in (
        (
            "--preset",
            "nano,layers=1,width=48,heads=2",
            "is (271, 32)",
            "is (271, 48)",
        ),
        ("--preset", f"{TINY},context=9", "trunk.positions is (16, 32)", "is (9, 32)"),
        ("--head", "scalar,layers=1", "bias is (128,)", "is missing"),
    ):
        ran = trained(numtok, "--init-from", first, option, spec)
        says.refused(ran, 2, f"--init-from {first} does not match", *told, "Remove --preset")


# --- training that fails -----------------------------------------------------------------------


def test_an_infinite_loss_ends_with_advice(numtok: Shell, store: Store, says: Says) -> None:
    texts(store, [{"text": f"at {row}.5e35 m"} for row in range(1, 20)], normalize="none")
    ran = numtok("train", "texts", "--preset", TINY, "--steps", "40", "--lr", "0.01")
    says.refused(ran, 5, "not finite at step 1", "--lr (it was 0.01)", "--warmup", "--normalize")


def test_a_lack_of_memory_is_told_with_advice_and_any_other_error_is_a_bug(
    numtok: Shell, store: Store, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    # The position embeddings would take 128 terabytes. No system grants that much memory.
    config = tiny(preset=TINY + ",context=1000000000000")
    with pytest.raises(TrainingFailed, match=r"^out of memory with --batch 64\. Use "):
        run(config, store, quiet)
    allocator = "[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate"
    error: Exception = torch.OutOfMemoryError("CUDA out of memory")

    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(Model, "losses", fail)
    batch, again = "out of memory with --batch 64", "--recompute"
    for given, *advice in (
        ("", "Use --accumulate 2", again),
        ("--accumulate 3", "--accumulate 3", "Use --accumulate 6", again),
        ("--accumulate 40", "--accumulate 40", "Use --accumulate 64", again),
        ("--accumulate 64", "--accumulate 64", f"Use {again}"),
        ("--accumulate 64 --recompute", "--accumulate 64. Use a smaller --preset"),
    ):
        ran = trained(numtok, *given.split())
        says.refused(ran, 5, batch, *advice, "a smaller --preset")
    for other in (MemoryError(), RuntimeError(allocator)):
        error = other
        says.refused(trained(numtok), 5, batch, "Use --accumulate 2")
    error = RuntimeError("mat1 and mat2")
    assert trained(numtok).code == 70


# --- damage ------------------------------------------------------------------------------------


def damaged(says: Says, model: Artifact, *parts: str, kind: type[NumtokError] = StoreError) -> None:
    with pytest.raises(kind) as caught:
        read_model(model, CPU)
    assert str(caught.value).isprintable()
    says(caught, *parts)


def test_a_model_is_read_as_it_was_written(store: Store) -> None:
    artifact = train(store, tiny(preset=TINY + ",dropout=0.1"))
    loaded = read_model(artifact, CPU)
    weights = load_file(artifact.path / WEIGHTS)
    parameters = dict(loaded.model.named_parameters())
    assert parameters.keys() == weights.keys()
    assert {parameter.dtype for parameter in parameters.values()} == {torch.float32}
    assert all(torch.equal(parameter, weights[name]) for name, parameter in parameters.items())
    assert not loaded.model.training
    assert transformer(loaded.model).shape.dropout == 0.1
    assert loaded.codec.digest == read_codec(store.resolve("arithmetic-xval")).digest


def test_weights_that_end_early_or_are_not_there_are_refused(learnt: Artifact) -> None:
    path = learnt.path / WEIGHTS
    whole = path.read_bytes()
    for left in (0, 5, 300, -1, None):
        with case(left=left):
            path.unlink() if left is None else path.write_bytes(whole[:left])
            with pytest.raises(StoreError) as caught:
                read_model(learnt, CPU)
            told = str(caught.value)
            assert told.isprintable() and told.startswith(f"{path} cannot be read: ")
            assert left is None or "`numtok verify`" in told


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


def test_weights_of_another_model_are_refused(learnt: Artifact, says: Says) -> None:
    path = learnt.path / WEIGHTS
    weights = load_file(path)
    for change, (alter, told) in CHANGES.items():
        with case(change=change):
            altered = dict(weights)
            alter(altered)
            save_file(altered, path)
            what = f"{path} does not match its model.json"
            damaged(says, learnt, what, told, "`numtok verify`")


Edit = Callable[[dict[str, Any]], object]


def trunk(**changes: Any) -> Edit:
    return lambda model: model["settings"]["trunk"].update(changes)


NO_MODEL = "does not describe a valid model"
#: Changes of model.json, and parts of the error messages.
EDITS: dict[str, tuple[Edit, *tuple[str, ...]]] = {
    "a newer format": (
        lambda model: model.update(format=2, new_field=[]), "has format 2", "reads up to 1"
    ),
    "no tied": (lambda model: model["settings"].pop("tied"), "missing required field `tied`"),
    "no trunk": (lambda model: model["settings"].update(trunk=[]), "`object`, got `array`"),
    "width a text": (trunk(width="32"), "Expected `int`, got `str`"),
    "no steps": (lambda model: model["trained"].update(steps=None), "Expected `int`, got `null`"),
    "one more": (lambda model: model["trained"].update(more=1), "unknown field `more`"),
    # Sizes are checked before memory is allocated.
    "another width": (trunk(width=64), "'embedder.table.weight' is ('F32', 271, 32)"),
    "a large width": (trunk(width=1 << 40), NO_MODEL, "(width is 1,099,511,627,776, "),
    "a huge width": (trunk(width=10**30), NO_MODEL, f"(width is {10**30:,}, "),
    "many layers": (trunk(layers=10**6), NO_MODEL, "(layers is 1,000,000, "),
    "a long context": (trunk(context=10**9), NO_MODEL, "(context is 1,000,000,000, "),
}  # fmt: skip


def test_wrong_fields_of_a_model_file_are_named(learnt: Artifact, says: Says) -> None:
    path = learnt.path / MODEL_FILE
    content = path.read_bytes()
    unknown = f"{MODEL_FILE}: unknown setting of 'transformer' 'more'. Known: "
    for name, (edit, *parts) in (EDITS | {"one setting more": (trunk(more=1), unknown)}).items():
        with case(edit=name):
            model = json.loads(content)
            edit(model)
            path.write_text(json.dumps(model))
            kind = UsageError if parts == [unknown] else StoreError
            damaged(says, forged(learnt), *parts, "model.json", kind=kind)


def test_a_model_of_texts_is_not_read_as_one_of_tables(learnt: Artifact) -> None:
    with pytest.raises(UsageError, match=r"is a text model"):
        read_regressor(learnt, CPU)


def test_a_model_file_that_is_none_is_refused(learnt: Artifact, says: Says) -> None:
    path = learnt.path / MODEL_FILE
    for content, why in (
        (b"", "not JSON (Input data was truncated)"),
        (b"\xff\xfe", "not JSON ('utf-8' codec can't decode byte 0xff in position 0"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[]", "got `array`"),
        (b"{}", "has no version"),
        (b'{"format": 1}', "missing required field `reads`"),
    ):
        with case(content=content[:20]):
            path.write_bytes(content)
            damaged(says, learnt, f"{path} is damaged: ", why, "`numtok verify`")


def test_an_encoding_of_another_model_is_refused(learnt: Artifact, says: Says) -> None:
    other = Store(learnt.path.parents[2]).resolve("arithmetic-p1000").path / "scheme.json"
    shutil.copy(other, learnt.path / "scheme.json")
    verify = f"`numtok verify {learnt.ref}`"
    damaged(says, learnt, "scheme.json is damaged", "checksum")
    damaged(says, forged(learnt), "model.json", "271 tokens", "has 1189", verify)


@pytest.mark.parametrize("split", ["train", "validation"])
@pytest.mark.parametrize("objective", [(), ("--objective", "mlm")], ids=["default", "mlm"])
def test_damaged_data_are_refused_in_one_line(
    numtok: Shell, store: Store, split: str, objective: tuple[str, ...]
) -> None:
    (shard,) = store.resolve("arithmetic-xval").path.glob(f"{split}-*.parquet")
    shard.write_bytes(shard.read_bytes()[:-100])
    ran = trained(numtok, *objective)
    assert (ran.code, ran.out) == (4, "")
    assert re.fullmatch(r"numtok: .* cannot be read: .*`numtok verify`\n", ran.err)


def test_files_of_ranks_are_in_a_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "artifacts")
    folders: list[Path] = []

    def killed(count: int, work: object, arguments: object, told: object, folder: Path) -> None:
        folders.append(folder)
        assert folder.is_dir()
        raise TrainingFailed("rank 1 died (SIGKILL)")

    monkeypatch.setattr(stage, "launch", killed)
    resolved: Any = SimpleNamespace(devices=2, config=Config("d"))
    failing = pytest.raises(TrainingFailed, match="SIGKILL")
    with store.draft(MODEL, "m", {}, [], []) as draft, failing:
        assert not isinstance(draft, Artifact)
        stage._launch(resolved, store, draft, lambda _: None)
    assert [(one.parent, one.name[:7]) for one in folders] == [(store.root, ".spool-")]
