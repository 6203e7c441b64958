"""Evaluation, prediction, probes and folds of a table on several devices: the same results as with
one process, and clean exits if a process ends."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from numtok.errors import DataError, UsageError
from numtok.evaluation import reporting, table_rows, tables, text_rows
from numtok.evaluation.devices import Devices, devices
from numtok.settings.predict import Config as PredictConfig
from numtok.stages import eval, predict, probe, table, train
from numtok.store.artifact import Artifact
from numtok.store.engines.local import Workers
from numtok.store.store import Store
from numtok.training import table_folds
from numtok.training.device import device_count
from tests.chain import contents, jsonl, quiet, there, timing_of
from tests.stages.test_eval import World, equation, one_thread

one_thread = one_thread
ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")
TINY = "nano,layers=1,width=16,heads=2"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> World:
    """Return a world whose rows have three numbers, two of them targets, a label and an answer."""
    made = World(tmp_path_factory.mktemp("devices"))
    rows = []
    for index in range(60):
        split = ("train", "train", "validation", "test", "test")[index % 5]
        numbers = f"{index % 7}", f"{index}.5", f"{index + index % 7}.5"
        more = {"split": split, "label": ("even", "odd")[index % 2]}
        rows.append(equation(index, *numbers, targets={"b": 1, "sum": 2}, **more))
    made.write("sums", rows)
    return made


@pytest.fixture(scope="module")
def two() -> Iterator[Devices]:
    """Yield two processes that all tests of this module share."""
    with Workers(2) as workers:
        yield Devices(workers)


@pytest.fixture
def shared(two: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``--devices 2`` use the shared processes, and use small batches."""

    @contextmanager
    def some(asked: str, device: torch.device) -> Iterator[Devices]:
        with Workers(1) as one:
            yield two if device_count(asked, device) == 2 else Devices(one)

    for stage in (reporting, probe, text_rows, table_rows):
        monkeypatch.setattr(stage, "devices", some)
    monkeypatch.setattr(text_rows, "_ROWS", 5)
    monkeypatch.setattr(table_rows, "AT_ONCE", 4)
    monkeypatch.setattr(tables, "AT_ONCE", 4)


def encoded(world: World, scheme: str) -> Artifact:
    return world.encoded(scheme, str(world.root / "sums.jsonl"), name=f"sums-{scheme}")


def on_both(work: Callable[[str], Artifact]) -> Artifact:
    """Run ``work`` with one device and with two, and check that both artifacts have the same
    version and files. ``work`` must give each its own name."""
    one, several = work("1"), work("2")
    assert several.path != one.path and several.version == one.version
    assert contents(several) == contents(one)
    assert timing_of(several)["devices"] == 2
    return several


def evaluate(world: World, model: Artifact, **options: Any) -> Artifact:
    def work(devices: str) -> Artifact:
        name = f"{model.name}-{devices}"
        more: dict[str, Any] = {"batch": 4, "device": "cpu"} | options
        config = eval.Config(model.ref, devices=devices, name=name, **more)
        return eval.run(config, world.store, quiet).artifact

    return on_both(work)


def test_reports_are_those_of_one_device(world: World, shared: None) -> None:
    """This holds for samples, distributions calibrated per target, labels and answers."""
    for scheme, objective, options in (
        ("digits", "ar", {"draws": 3, "point": "mean", "rows": 10}),
        ("xval", "mlm:targets", {}),
        ("xval", "classify", {}),
        ("digits", "ar", {"fill": "answers"}),
    ):
        name = f"of-{scheme}-{'-'.join([objective.partition(':')[0], *options])}"
        model = world.model(encoded(world, scheme), objective, preset=TINY, steps=2, name=name)
        evaluate(world, model, **options)


@pytest.fixture
def folds(world: World) -> Path:
    """Return the file of a table with two folds, and add the table to the store."""
    path = world.root / "table.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "y", "split_0", "split_1"])
        for index in range(60):
            tested = [("train", "test")[index % 2 == fold] for fold in range(2)]
            rows.writerow([index % 9, 2 * (index % 9) + index / 60, *tested])
    table.run(table.Config(str(path), target="y"), world.store)
    return path


def of_folds(name: str = "fitted", **options: Any) -> train.Config:
    how: dict[str, Any] = {"preset": "mlp,layers=1,width=8", "epochs": 4, "device": "cpu"}
    return train.Config("table", head="decoder:ud", name=name, **how | options)


def test_tables_are_those_of_one_device(world: World, shared: None, folds: Path) -> None:
    model = train.run(of_folds(), world.store, quiet).artifact
    evaluate(world, model, draws=4)
    asked = PredictConfig(model.ref, str(folds), fold=1, draws=4, device="cpu")
    assert lines(world, asked, devices="2") == lines(world, asked)


def test_folds_side_by_side_are_those_of_one_device(
    world: World, two: Devices, folds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results are also the same if one device began the training."""

    class Stopped(Exception):
        pass

    def stop(progress: Any) -> None:
        if (progress.fold, progress.epoch.epoch) == (1, 2):
            raise Stopped

    alone = train.run(of_folds(), world.store, quiet).artifact
    monkeypatch.setattr(table_folds, "Workers", lambda *_: nullcontext(two.workers))
    for name in ("together", "begun"):
        if name == "begun":
            with pytest.raises(Stopped):
                train.run(of_folds(name), world.store, stop)
            drafts = (world.store.root / "model" / name).glob(".draft-*/*.safetensors")
            kept = ["checkpoint-fold0-000000004.safetensors"]
            assert [one.name for one in drafts] == kept
        told: list[Any] = []
        made = train.run(of_folds(name, devices="3"), world.store, told.append).artifact
        assert contents(made) == contents(alone)
        assert {(one.fold, one.folds, one.epoch.epoch) for one in told} == {(0, 2, 4), (1, 2, 4)}
        assert timing_of(made)["devices"] == 2  # at most one per fold
        assert [one.name for one in (made.path / "receipts").iterdir()] == ["model.json"]


def lines(world: World, config: PredictConfig, devices: str = "1") -> list[bytes]:
    return list(predict.run(replace(config, devices=devices), world.store))


def test_rows_without_truth_come_out_in_order(world: World, shared: None, tmp_path: Path) -> None:
    data = encoded(world, "digits")
    model = world.model(data, "ar", preset=TINY, steps=2, name="asked")
    rows = [{"id": index, "text": f"({index} + [?]) = [?]"} for index in range(23)]
    path = jsonl(tmp_path / "rows.jsonl", rows)
    asked = PredictConfig(model.ref, str(path), draws=2, device="cpu")
    found = lines(world, asked, devices="2")
    assert [json.loads(line)["id"] for line in found] == list(range(23))
    assert found == lines(world, asked)

    with path.open("a") as file:
        file.write("no row\n")
    begun = []
    with pytest.raises(DataError, match=":24:"):
        for line in predict.run(replace(asked, devices="2"), world.store):
            begun.append(line)
    assert begun == found[:20]  # all batches before the error, as with one process


def test_probes_are_those_of_one_device(world: World, shared: None) -> None:
    for scheme, objective, kind, options in (
        ("p1000", "mlm:targets", "examples", {"target": "sum"}),
        ("digits", "ar", "examples", {"target": "sum"}),
        ("digits", "ar", "confidence", {"points": 300, "row": "3"}),
    ):
        data = encoded(world, scheme)
        model = world.by_chance(data, objective)
        config = probe.Config(kind, model.ref, data.ref, device="cpu", options=options)
        on_both(partial(probed, world, replace(config, name=f"{kind}-{scheme}")))


def probed(world: World, config: probe.Config, devices: str) -> Artifact:
    config = replace(config, devices=devices, name=f"{config.name}-{devices}")
    return probe.run(config, world.store, quiet).artifact


def test_a_probe_of_the_model_alone_needs_one_device(world: World) -> None:
    model = world.by_chance(encoded(world, "p1000"), "mlm:targets")
    with pytest.raises(UsageError, match="--devices does not apply to probe pca"):
        probe.run(probe.Config("pca", model.ref, devices="2"), world.store, quiet)


def test_devices_are_as_many_as_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    cuda = torch.device("cuda")
    assert [device_count(asked, cuda) for asked in ("1", "2", "all")] == [1, 2, 3]
    monkeypatch.setattr("numtok.store.engines.workers.cores", lambda: 2)
    assert [device_count(asked, CPU) for asked in ("all", "5")] == [1, 5]
    for asked, device, told in (
        ("9", CPU, "--devices 9 is too many processes for 2 cores"),
        ("4", cuda, "--devices 4: PyTorch finds 3 GPUs"),
        ("2", torch.device("cuda:1"), "--devices 2 cannot be combined with --device cuda:1"),
    ):
        with pytest.raises(UsageError, match=told):
            device_count(asked, device)
    assert device_count("all", torch.device("cuda:1")) == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,6,7")
    with devices("2", cuda) as these:
        assert (these.count, these.workers.gpus) == (2, ["5", "6"])


@pytest.mark.slow
@pytest.mark.parametrize("end", ["worker", "interrupted", "terminated", "killed"])
def test_nobody_is_left_and_the_same_command_does_it(world: World, end: str) -> None:
    """However the command ends, no process is left. The death of a worker is reported in a line."""
    data = encoded(world, "digits")
    model = world.model(data, "ar", preset=TINY, steps=2, name=f"for-{end}")
    rows = ({"id": index, "text": f"({index} + [?]) = [?]"} for index in range(40_000))
    path = jsonl(world.root / f"{end}.jsonl", rows)
    words = ["predict", model.ref, str(path), "--devices", "2", "--device", "cpu"]
    process = subprocess.Popen(
        [sys.executable, "-m", "numtok", *words],
        cwd=world.root,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    first = there(process.stdout).readline()  # after the first line, both workers are running
    children = psutil.Process(process.pid).children(recursive=True)
    workers = [one for one in children if "spawn_main" in " ".join(one.cmdline())]
    assert len(workers) == 2
    if end == "worker":
        workers[0].kill()
    elif end == "interrupted":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGTERM if end == "terminated" else signal.SIGKILL)
    _, told = process.communicate(timeout=60)
    codes = {"worker": 4, "interrupted": 130, "terminated": 143, "killed": -signal.SIGKILL}
    assert process.returncode == codes[end]
    if end == "worker":
        assert told.decode().count("\n") == 1
        assert "died (killed, or out of memory). Run the same command again" in told.decode()
    elif end != "killed":
        assert told.decode() == f"numtok: {end}\n"
    deadline = time.monotonic() + 20
    while any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in workers):
        assert time.monotonic() < deadline, "a worker is left"
        time.sleep(0.1)
    again = predict.run(PredictConfig(model.ref, str(path), device="cpu"), Store(world.store.root))
    assert next(again) == first
    again.close()
