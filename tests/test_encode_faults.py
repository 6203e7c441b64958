"""Encode under faults: whatever fails or dies, nothing half-made shows, and a rerun ends the same.

The quick tests strike at every n-th operation, another n-th for each kind; the
slow ones at every operation there is. ``pytest -s`` prints points reached over
points existing.
"""

import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok import files
from numtok.artifact import MANIFEST, RECEIPTS, TIMING, Artifact, verify
from numtok.errors import DataError, NumtokError, StoreError
from numtok.provenance import provenance
from numtok.stages.encode import Config, run
from numtok.store import Store
from tests.faults import Plan, installed, points

ROOT = Path(__file__).resolve().parents[1]
SLOW = pytest.mark.slow
_LAUNCH = "fork"  # how this file is started as a program


def silent(note: str) -> None:
    raise AssertionError(f"nothing should be said: {note}")


def encode(config: Config, root: Path) -> Artifact:
    result = run(config, Store(root, silent), lambda what, done, total: None)
    assert result.artifact is not None
    return result.artifact


# --- what is made ------------------------------------------------------------------------------


def lines(first: int, rows: int) -> bytes:
    """Some rows of JSONL, the second malformed, the third with a number that is clipped."""
    made = [
        json.dumps(
            {
                "id": f"row {first + row}",
                "text": f"body {row}: x = {-6.02e1 * (row + 1):.3e} km, {row}.5 h, 100 %",
                "group": {"digits": row % 3},
                "split": "test" if row % 4 == 3 else "train",
            }
        )
        for row in range(rows)
    ]
    made[1] = '{"id": "bad", "text": 5}'
    made[2] = '{"id": "far", "text": "1e400, then 2"}'
    return "\n".join(made).encode() + b"\n"


def write_inputs(folder: Path) -> tuple[str, ...]:
    """Three small files, one of each way of reading; units are the first, and the others."""
    folder.mkdir()
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines(0, 6), mtime=0))
    (folder / "b.jsonl").write_bytes(lines(10, 6))
    texts = ["from 1.25 to 2.5", None, "at 1e4"]
    pq.write_table(pa.table({"id": ["p", "q", "r"], "text": texts}), folder / "c.parquet")
    return tuple(str(folder / name) for name in ("a.jsonl.gz", "b.jsonl", "c.parquet"))


@dataclass(frozen=True)
class Scenario:
    """One way of running encode, as it goes when nothing fails.

    ``before`` is the store that it starts from, ``stdin`` a file to be read as
    standard input; ``whole`` holds what comes out, ``trace`` the operations.
    """

    config: Config
    before: Path
    stdin: Path
    whole: dict[str, bytes]
    trace: tuple[str, ...] = ()

    def start(self, root: Path) -> None:
        shutil.copytree(self.before, root)

    def encode(self, root: Path) -> Artifact:
        with reading(self.stdin):
            return encode(self.config, root)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Standard input is this file while the block runs."""
    kept, fd = os.dup(0), os.open(path, os.O_RDONLY)
    os.dup2(fd, 0)
    try:
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(fd)


def contents(artifact: Artifact) -> dict[str, bytes]:
    """All of an artifact that has to come out the same each time: everything but its clocks."""
    return {
        str(path.relative_to(artifact.path)): path.read_bytes()
        for path in sorted(artifact.path.rglob("*"))
        if path.is_file() and path.name != TIMING
    }


def content_digest(artifact: Artifact) -> str:
    return artifact.manifest.content


SCENARIOS = ("from nothing", "continued", "standard input", "made again by force", "like another")


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scenario]:
    """Each scenario by its name, run twice undisturbed: to warm up, and to be traced."""
    folder = tmp_path_factory.mktemp("scenarios")
    provenance()  # asked for once a process, and not through the seam
    inputs = write_inputs(folder / "inputs")
    empty, stdin = folder / "empty", folder / "inputs" / "b.jsonl"
    empty.mkdir()
    config = Config(inputs, scheme="xval", on_error="skip")
    plain = encode(config, folder / "made")
    made: dict[str, Scenario] = {}

    def make(name: str) -> Scenario:
        before, chosen = empty, config
        if name == "continued":
            before = folder / "begun"
            with installed(Plan("trace")) as whole:
                encode(config, folder / "trial")
            # The last fsync but a few: both units are done, or one if the first of these is taken.
            second = [at for at, op in enumerate(whole.trace, 1) if op == "fsync"]
            at = second[len(second) * 2 // 3]
            with installed(Plan("eio", at)), pytest.raises(StoreError):
                encode(config, before)
            assert len(receipts(before)) == 2, receipts(before)
        elif name == "standard input":
            chosen = Config(("-",), scheme="p1000", text_tokenizer="bytes", on_error="skip")
        elif name == "made again by force":
            before, chosen = folder / "made", replace(config, force=True)
        elif name == "like another":
            before = folder / "made"
            chosen = Config(inputs[1:2], like=plain.ref, on_error="skip", name="second")
        for attempt in ("warm-up", "traced"):
            root = folder / f"{name} {attempt}"
            shutil.copytree(before, root)
            with reading(stdin), installed(Plan("trace")) as faults:
                artifact = encode(chosen, root)
        assert verify(artifact).problems == []
        return Scenario(chosen, before, stdin, contents(artifact), tuple(faults.trace))

    def get(name: str) -> Scenario:
        if name not in made:
            made[name] = make(name)
        return made[name]

    return get


def receipts(root: Path) -> list[Path]:
    """Those of drafts."""
    return sorted(root.glob(f"*/*/.draft-*/{RECEIPTS}/[!.]*.json"))


def finished(root: Path) -> dict[str, tuple[int, int]]:
    """What drafts hold of finished units: the receipts and the files they list, each with its
    inode and time, which tell whether the file was written again."""
    found = {}
    for receipt in receipts(root):
        draft = receipt.parent.parent
        outputs = [output["path"] for output in json.loads(receipt.read_bytes())["outputs"]]
        for path in (f"{RECEIPTS}/{receipt.name}", *outputs):
            status = (draft / path).stat()
            found[path] = (status.st_ino, status.st_mtime_ns)
    return found


def hidden(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob(".*"))


def check_nothing_half_made(root: Path) -> None:
    """Every file that can be seen belongs to an artifact, and every artifact is what it was."""
    if not root.exists():
        return
    artifacts = Store(root, silent).artifacts()
    for artifact in artifacts:
        assert verify(artifact).problems == []
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        if path.is_file() and not any(part.startswith(".") for part in parts):
            assert any(path.is_relative_to(artifact.path) for artifact in artifacts), path


def check_after_fault(scenario: Scenario, root: Path) -> None:
    """Nothing half-made is visible; run again, it ends the same and redoes no finished unit."""
    check_nothing_half_made(root)
    kept = {} if scenario.config.force else finished(root)
    artifact = scenario.encode(root)
    assert contents(artifact) == scenario.whole
    for path, before in kept.items():
        status = (artifact.path / path).stat()
        assert (status.st_ino, status.st_mtime_ns) == before, f"{path} was made again"
    check_nothing_half_made(root)
    Store(root, silent).collect()
    assert hidden(root) == []


def test_the_scenarios_reach_every_part_of_encode(
    scenarios: Callable[[str], Scenario],
) -> None:
    scenario = scenarios("from nothing")
    assert {path.rpartition("-")[0] or path for path in scenario.whole} == {
        "train", "test", "clipped", "rejected", "scheme.json", "files.jsonl", MANIFEST,
        f"{RECEIPTS}/fit.json", f"{RECEIPTS}/00000.json", f"{RECEIPTS}/00001.json",
    }  # fmt: skip
    manifest = json.loads(scenario.whole[MANIFEST])
    assert manifest["counts"]["rejected"] == 3
    assert manifest["counts"]["positive_overflow"] > 0
    assert manifest["settings"]["encoding"]["normalize"]["name"] == "scale"
    assert "tokenizer.json" in scenarios("standard input").whole
    assert set(scenario.trace) >= {"read", "read_at", "write", "fsync", "rename", "lock"}
    assert len(scenarios("continued").trace) < len(scenario.trace)


# --- operations that fail ----------------------------------------------------------------------

# How many operations apart: enough of them for a quick run, and all of them.
QUICK, ALL = 12, 1
SHARES = [pytest.param(QUICK, id="some"), pytest.param(ALL, id="all", marks=SLOW)]
KINDS = ("eio", "enospc", "short", "torn")


def chosen(kind: str, scenario: Scenario, share: int) -> list[int]:
    """Every share-th point of a kind, beginning elsewhere for each kind."""
    places = points(kind, list(scenario.trace))
    return places[sum(kind.encode()) % share % len(places) :: share]


def told(name: str, kind: str, reached: int, scenario: Scenario) -> None:
    existing = len(points(kind.removesuffix("+"), list(scenario.trace)))
    print(f"\nencode, {name}, {kind}: {reached} points reached of {existing}")


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("onward", [False, True], ids=["once", "onward"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_any_operation_may_fail(
    tmp_path: Path,
    scenarios: Callable[[str], Scenario],
    name: str,
    kind: str,
    onward: bool,
    share: int,
) -> None:
    scenario = scenarios(name)
    places = chosen(kind, scenario, share * (2 if onward and share > 1 else 1))
    reached = 0
    for at in places:
        root = tmp_path / str(at)
        scenario.start(root)
        before = os.listdir("/dev/fd")
        problem: NumtokError | None = None
        with installed(Plan(kind, at, onward)) as faults:
            try:
                scenario.encode(root)
            except NumtokError as error:
                problem = error
        assert len(os.listdir("/dev/fd")) == len(before), (at, problem)
        reached += faults.reached
        check_problem(problem, kind, scenario.trace[at - 1])
        check_after_fault(scenario, root)
        shutil.rmtree(root)
    told(name, kind + "+" * onward, reached, scenario)
    assert reached == len(places)


def check_problem(problem: NumtokError | None, kind: str, operation: str) -> None:
    if kind == "short":
        assert problem is None
    if problem is None:
        return
    assert isinstance(problem, StoreError), repr(problem)
    assert str(problem).isprintable()
