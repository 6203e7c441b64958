"""``numtok train --devices N`` and torchrun: the same results as one process, and clean exits."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from numtok.store.artifact import MODEL, Artifact
from numtok.store.store import Store
from tests import chain
from tests.chain import encoded, generated, there, timing_of
from tests.shell import Ran, Shell

ROOT = Path(__file__).resolve().parents[2]
TINY = ("--preset", "nano,layers=1,width=16,heads=2", "--batch", "32", "--device", "cpu")
TWO = ("--devices", "2")
LONG = ("--steps", "3000", "--checkpoint-every", "5", "--name", "long")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("devices")
    store = Store(place / "artifacts")
    generated(store, "arithmetic,operands=2", 300)
    encoded(store, "arithmetic", scheme="xval")
    return place


@pytest.fixture
def numtok(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """Return a shell that runs numtok in this process and also captures the output of ranks."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    return Shell(capfd, monkeypatch)


@contextmanager
def begun(
    folder: Path, *options: str, launcher: Sequence[str] = ("-m", "numtok")
) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, *launcher, "train", "arithmetic-xval", *TINY, *options]
    environment = os.environ | {"NUMTOK_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def trained(folder: Path, *options: str, **how: Any) -> Ran:
    """Train in a separate process."""
    with begun(folder, *options, **how) as process:
        out, err = process.communicate(timeout=300)
        return Ran(process.returncode, out, err)


def named(folder: Path, name: str) -> Artifact:
    return Store(folder / "artifacts").resolve(name, {MODEL})


def log(folder: Path, name: str) -> list[dict[str, float]]:
    lines = (named(folder, name).path / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(one).items() if k != "split"} for one in lines]


def until_checkpoint(folder: Path, process: "subprocess.Popen[str]") -> None:
    drafts = folder / "artifacts/model/long"
    while not list(drafts.glob(".draft-*/checkpoint-*")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)


def gone(processes: list[psutil.Process]) -> bool:
    """Return whether the processes end within 20 seconds."""
    return not psutil.wait_procs(processes, timeout=20)[1]


@pytest.mark.parametrize(
    "way",
    ["devices", *(pytest.param(way, marks=pytest.mark.slow) for way in ("shard", "torchrun"))],
)
def test_ranks_make_the_model_that_one_process_makes(folder: Path, numtok: Shell, way: str) -> None:
    options = ["--steps", "20", "--name", f"by-{way}"]
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "numtok")
    if way == "torchrun":
        code, out, err = trained(folder, *options, launcher=torchrun)
    else:
        shard = ["--fsdp"] if way == "shard" else []
        code, out, err = numtok("train", "arithmetic-xval", *TINY, *options, *TWO, *shard)
    assert code == 0, err
    assert out.count(f"by-{way}@") == 1
    store = Store(folder / "artifacts")
    how: dict[str, Any] = {"preset": TINY[1], "batch": 32, "device": "cpu", "steps": 20}
    alone = chain.trained(store, "arithmetic-xval", name="alone", **how)
    for one, two in zip(log(folder, "alone"), log(folder, f"by-{way}"), strict=True):
        assert two == pytest.approx(one, rel=1e-4, abs=1e-6)
    made = named(folder, f"by-{way}")
    assert (timing_of(made)["devices"], made.version) == (2, alone.version)


@pytest.mark.slow
def test_what_was_stopped_goes_on_with_another_number(folder: Path) -> None:
    with begun(folder, *LONG, "--devices", "2") as process:
        until_checkpoint(folder, process)
        ranks = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    ends = [one.partition(" at ")[0] for one in err.splitlines()][-2:]
    assert ends == ["numtok: stopped", "numtok: terminated"]
    assert gone(ranks)
    with begun(folder, *LONG, "--devices", "3") as process:
        assert "resumes at step" in there(process.stderr).readline()
        until_checkpoint(folder, process)
        ranks = psutil.Process(process.pid).children(recursive=True)
        victim = next(one for one in ranks if "spawn_main" in " ".join(one.cmdline()))
        victim.kill()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 5
    assert err.count("\n") == 1 and "died (SIGKILL). To resume" in err
    assert gone(ranks)
    with begun(folder, *LONG) as process:
        assert "resumes at step" in there(process.stderr).readline()


@pytest.mark.slow
def test_a_run_that_is_killed_thirty_times_is_the_same_curve(folder: Path) -> None:
    """The command or a rank is killed at random times. Each rerun has a random number of ranks."""
    steps, random = 600, np.random.default_rng(0)
    # At the default rate, rounding errors alone exceed 1e-4 after a few hundred steps.
    how = ("--steps", str(steps), "--lr", "1e-4")
    options = (*how, "--checkpoint-every", "1", "--name", "killed")
    drafts, done = folder / "artifacts/model/killed", 0
    for kill in range(30):
        count = (1, 2, 4)[int(random.integers(3))]
        shard = ["--fsdp"] if random.random() < 0.5 else []
        with begun(folder, *options, "--devices", str(count), *shard) as process:
            until = done + int(random.integers(1, 5))
            while (now := last_checkpoint(drafts)) < until:
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            assert now < steps
            time.sleep(float(random.uniform(0, 0.2)))
            everyone = [psutil.Process(process.pid)]
            everyone += everyone[0].children(recursive=True)
            of_a_rank = [one for one in everyone if "spawn_main" in " ".join(one.cmdline())]
            victim = of_a_rank[0] if of_a_rank and random.random() < 0.5 else everyone[0]
            victim.kill()
            process.wait(60)
        assert process.returncode != 0, kill
        assert gone(everyone), kill
        assert last_checkpoint(drafts) >= done
        done = last_checkpoint(drafts)
    for last in (options, (*how, "--name", "never-killed")):
        code, _, err = trained(folder, *last)
        assert code == 0, err
    whole = log(folder, "never-killed")
    assert whole[-1]["step"] == steps
    for one, two in zip(whole, log(folder, "killed"), strict=True):
        assert two == pytest.approx(one, rel=1e-4, abs=1e-6)


def last_checkpoint(drafts: Path) -> int:
    """Return the step of the newest checkpoint, or 0 if there is none."""
    while True:
        try:
            found = list(drafts.glob(".draft-*/checkpoint-*.safetensors"))
        except FileNotFoundError:  # the resuming process has just renamed the draft
            continue
        return max((int(one.stem.partition("-")[2]) for one in found), default=0)


def test_a_number_of_devices_that_cannot_be_is_refused(numtok: Shell) -> None:
    for value in ("0", "-1", "some"):
        code, _, err = numtok("train", "arithmetic-xval", *TINY, "--devices", value)
        assert code == 2 and "--devices must " in err and "or all" in err and repr(value) in err
