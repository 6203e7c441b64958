"""Faults in ``encode``: no incomplete artifact is visible, and a rerun gives the same result.

These tests strike at selected operations, at least once per kind of operation. ``just trust
faults`` strikes at many more.
"""

import gc
import gzip
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok.errors import NumtokError, StoreError
from numtok.stages.encode import Config, run
from numtok.store.artifact import MANIFEST, RECEIPTS, Artifact
from numtok.store.provenance import provenance
from numtok.store.store import Store
from numtok.store.verification import verify
from tests.cases import case
from tests.chain import every_file, quiet, standard_input, there
from tests.faults import Plan, installed, points, sample
from tests.forks import serving
from tests.messages import Says

ROOT = Path(__file__).resolve().parents[2]
SLOW = pytest.mark.slow


def silent(note: str) -> None:
    assert note.startswith("waiting for another process"), f"nothing else should be said: {note}"


def nothing_differs(note: str) -> None:
    assert note.endswith(" is identical"), f"nothing else should be said: {note}"


def encode(config: Config, root: Path) -> Artifact:
    heard = nothing_differs if config.force else silent
    return there(run(config, Store(root, heard), quiet).artifact)


# --- inputs and scenarios ----------------------------------------------------------------------


def lines(first: int, rows: int) -> bytes:
    """Return rows of JSONL. The second is malformed, and a number of the third is clipped."""
    made = []
    for row in range(rows):
        text = f"body {row}: x = {-6.02e1 * (row + 1):.3e} km, {row}.5 h, 100 %"
        split = "test" if row % 4 == 3 else "train"
        told = {"id": f"row {first + row}", "text": text, "group": {"digits": row % 3}}
        made.append(json.dumps(told | {"split": split}))
    made[1] = '{"id": "bad", "text": 5}'
    made[2] = '{"id": "far", "text": "1e400, then 2"}'
    return "\n".join(made).encode() + b"\n"


def write_inputs(folder: Path) -> tuple[str, ...]:
    """Write three small files in different formats. The first is a unit, the others another."""
    folder.mkdir()
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines(0, 6), mtime=0))
    (folder / "b.jsonl").write_bytes(lines(10, 6))
    texts = ["from 1.25 to 2.5", None, "at 1e4"]
    pq.write_table(pa.table({"id": ["p", "q", "r"], "text": texts}), folder / "c.parquet")
    return tuple(str(folder / name) for name in ("a.jsonl.gz", "b.jsonl", "c.parquet"))


@dataclass(frozen=True)
class Scenario:
    """A way of running encode, and its result without faults.

    ``before`` is the initial store, and ``stdin`` is a file for standard input. ``whole`` has the
    files of the artifact, and ``trace`` the file operations.
    """

    config: Config
    before: Path
    stdin: Path
    whole: dict[str, bytes]
    trace: tuple[str, ...] = ()

    def start(self, root: Path) -> None:
        shutil.copytree(self.before, root)

    def encode(self, root: Path) -> Artifact:
        with standard_input(self.stdin):
            return encode(self.config, root)


Scenarios = Callable[[str], Scenario]
SCENARIOS = ("from nothing", "continued", "standard input", "made again by force", "like another")


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Scenarios:
    """Return a function that makes a scenario by name. Its command runs twice without faults: once
    to warm up, and once to record the trace."""
    folder = tmp_path_factory.mktemp("scenarios")
    provenance()  # cached per process; it does not go through files.system
    inputs = write_inputs(folder / "inputs")
    empty, stdin = folder / "empty", folder / "inputs" / "b.jsonl"
    empty.mkdir()
    config = Config(inputs, scheme="xval", on_error="skip")
    plain = encode(config, folder / "made")
    made: dict[str, Scenario] = {}

    def make(name: str) -> Scenario:
        before, chosen = empty, config
        if name == "continued":
            before = begun(config, folder)
        elif name == "standard input":
            chosen = Config(("-",), scheme="p1000", text_tokenizer="bytes", on_error="skip")
        elif name == "made again by force":
            before, chosen = folder / "made", replace(config, force=True)
        elif name == "like another":
            before = folder / "made"
            chosen = Config(inputs[:2], like=plain.ref, on_error="skip", name="second")
        for attempt in ("warm-up", "traced"):
            root = folder / f"{name} {attempt}"
            shutil.copytree(before, root)
            with standard_input(stdin), installed(Plan("trace")) as faults:
                artifact = encode(chosen, root)
        assert verify(artifact).problems == []
        return Scenario(chosen, before, stdin, every_file(artifact), tuple(faults.trace))

    def get(name: str) -> Scenario:
        if name not in made:
            made[name] = make(name)
        return made[name]

    return get


def begun(config: Config, folder: Path) -> Path:
    """Return a store as left by a killed run: the fit and one unit are done, another is begun."""
    with installed(Plan("trace")) as faults:
        encode(config, folder / "trial")
    for at in points("eio", faults.trace):
        root = folder / f"begun {at}"
        if faults.trace[at - 1] == "fsync":
            with installed(Plan("eio", at)), pytest.raises(StoreError):
                encode(config, root)
            if len(receipts(root)) == 2:
                draft = receipts(root)[0].parent.parent
                (draft / "test-00001.parquet").write_bytes(b"without a receipt")
                (draft / ".train-00001.parquet.part").write_bytes(b"half")
                return root
    raise AssertionError("no operation is between the receipts of two units")


def receipts(root: Path) -> list[Path]:
    """Return the receipts of drafts."""
    return sorted(root.glob(f"*/*/.draft-*/{RECEIPTS}/[!.]*.json"))


def finished(scenario: Scenario, root: Path) -> dict[str, tuple[int, int]]:
    """Return the files of finished units in a draft: each receipt that is already final, and the
    files that it lists. Their inodes and times reveal whether a file is written again."""
    found = {}
    for receipt in receipts(root):
        content, draft = receipt.read_bytes(), receipt.parent.parent
        if content == scenario.whole[f"{RECEIPTS}/{receipt.name}"]:
            outputs = [output["path"] for output in json.loads(content)["outputs"]]
            for path in (f"{RECEIPTS}/{receipt.name}", *outputs):
                status = (draft / path).stat()
                found[path] = (status.st_ino, status.st_mtime_ns)
    return found


def check_nothing_half_made(root: Path) -> None:
    """Check that every visible file belongs to an artifact and every artifact is undamaged."""
    if not root.exists():
        return
    artifacts = Store(root, silent).artifacts()
    assert not [problem for one in artifacts for problem in verify(one).problems]
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        if path.is_file() and not any(part.startswith(".") for part in parts):
            assert any(path.is_relative_to(artifact.path) for artifact in artifacts), path


def check_after_fault(scenario: Scenario, root: Path) -> None:
    """Check that nothing incomplete is visible, and that a rerun gives the same result without
    redoing finished units."""
    check_nothing_half_made(root)
    kept = {} if scenario.config.force else finished(scenario, root)
    artifact = scenario.encode(root)
    assert every_file(artifact) == scenario.whole
    for path, before in kept.items():
        status = (artifact.path / path).stat()
        assert (status.st_ino, status.st_mtime_ns) == before, f"{path} was made again"
    check_nothing_half_made(root)
    Store(root, silent).collect()
    assert not list(root.rglob(".*"))


def test_the_scenarios_reach_every_part_of_encode(scenarios: Scenarios) -> None:
    scenario = scenarios("from nothing")
    assert {path.rpartition("-")[0] or path for path in scenario.whole} == {
        "train", "test", "clipped/clipped", "rejected/rejected",
        "scheme.json", "files.jsonl", MANIFEST,
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

KINDS = ("eio", "enospc", "short", "torn")
Strike = tuple[str, bool, int]  # the kind of fault, whether it persists, and where


def some_strikes(name: str, scenario: Scenario) -> Iterator[Strike]:
    """Yield every kind of fault at some points; in the first scenario, EIO at every kind of
    operation. Persistent faults are similar in all scenarios, so only two have them."""
    first = name == SCENARIOS[0]
    for kind in KINDS:
        for at in sample(kind, scenario.trace, 5 if first else 2, every=first and kind == "eio"):
            yield kind, False, at
        if name in SCENARIOS[:2]:
            for at in sample(kind, scenario.trace, 2 if first else 1):
                yield kind, True, at


def check_strike(scenario: Scenario, root: Path, kind: str, onward: bool, at: int) -> None:
    scenario.start(root)
    before = len(os.listdir("/dev/fd"))
    problem: NumtokError | None = None
    with installed(Plan(kind, at, onward)) as faults:
        try:
            scenario.encode(root)
        except NumtokError as error:
            problem = error
    assert len(os.listdir("/dev/fd")) == before, problem
    assert faults.reached
    check_problem(problem, kind, scenario.trace[at - 1])
    check_after_fault(scenario, root)
    shutil.rmtree(root)


@pytest.mark.parametrize("name", SCENARIOS)
def test_any_operation_may_fail(tmp_path: Path, scenarios: Scenarios, name: str) -> None:
    scenario = scenarios(name)
    gc.collect()  # closes descriptors of other tests, before this one counts descriptors
    for strike in some_strikes(name, scenario):
        with case(strike=strike):
            check_strike(scenario, tmp_path / "{}-{}-{}".format(*strike), *strike)


# Cleanup may fail silently: closing a file after reading, removing a lock or a spool.
TIDYING = {"close", "unlink", "rmdir", "scandir", "stat"}


def check_problem(
    problem: NumtokError | None, kind: str, operation: str, tidying: set[str] = TIDYING
) -> None:
    """Check that a short read or write is not an error, and that any other fault is reported in one
    line, except in cleanup."""
    if problem is None:
        assert kind == "short" or operation in tidying, operation
    else:
        assert kind != "short", problem
        assert isinstance(problem, StoreError), repr(problem)
        assert str(problem).isprintable()


# --- processes killed at an operation ----------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
def test_any_operation_may_be_the_last(
    tmp_path: Path, scenarios: Scenarios, forks: "Forks", name: str
) -> None:
    scenario, roots = scenarios(name), dict[str, Path]()
    for kind in ("kill", "killtorn"):
        for at in sample(kind, scenario.trace, 4 if name == SCENARIOS[0] else 2):
            roots[f"{kind}@{at}"] = root = tmp_path / f"{kind}@{at}"
            scenario.start(root)
    assert forks(scenario, roots) == dict.fromkeys(roots, -signal.SIGKILL)
    for root in roots.values():
        check_after_fault(scenario, root)


Forks = Callable[[Scenario, dict[str, Path]], dict[str, int]]


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """Yield a function that runs encode once per plan and store, and returns the exit codes.

    Each run is forked from a process that has imported numtok but not used it. A fork takes
    milliseconds; a new process would take a second.
    """
    with serving("tests.stages.test_encode_faults") as ask:

        def codes(scenario: Scenario, roots: dict[str, Path]) -> dict[str, int]:
            runs = [(plan, str(root)) for plan, root in roots.items()]
            job = {"config": asdict(scenario.config), "stdin": str(scenario.stdin), "runs": runs}
            found: dict[str, int] = ask(job)
            return found

        yield codes


def _serve() -> None:
    """Run this file as a program: the server side of ``Forks``."""
    os.fsync = lambda fd: None
    provenance()
    importlib.import_module("numtok.encoding.text_tokenizers.words")  # otherwise imported later
    for line in sys.stdin:
        job = json.loads(line)
        settings: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in job["config"].items()
        }
        config = Config(**settings)
        running = {}
        for plan, root in job["runs"]:
            child = os.fork()
            if child == 0:
                code = 70
                try:
                    with standard_input(Path(job["stdin"])), installed(Plan.parse(plan)):
                        encode(config, Path(root))
                    code = 0
                finally:
                    os._exit(code)
            running[plan] = child
        codes = {
            plan: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            for plan, child in running.items()
        }
        print(json.dumps(codes), flush=True)


# --- other processes ---------------------------------------------------------------------------

# Run this checkout's numtok, even if another one is installed.
_MAIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from numtok.cli.main import main; main()"
NUMTOK = ("-c", _MAIN, str(ROOT))


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a new session, and kill all processes of the session after the block."""
    environment = {key: value for key, value in os.environ.items() if key != "NUMTOK_STORE"}
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            for left in alive(process.pid):
                left.kill()


def alive(session: int) -> list[Any]:
    """Return the processes of a session, except zombies."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def check_nobody_is_left(session: int) -> None:
    deadline = time.monotonic() + 10
    while left := alive(session):
        assert time.monotonic() < deadline, [process.cmdline() for process in left]
        time.sleep(0.05)


@dataclass(frozen=True)
class Large:
    """Four compressed files, which are four units. The first is short, and the others are long."""

    scenario: Scenario

    def command(self, root: Path) -> list[str]:
        """Return arguments of ``started`` that encode the files with two workers."""
        chosen = ["--scheme", "xval", "--on-error", "skip", "--workers", "2"]
        return [*NUMTOK, "--store", str(root), "encode", *chosen, *self.scenario.config.inputs]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Large:
    folder = tmp_path_factory.mktemp("large")
    rows = json.dumps({"text": "at 17.25, " * 40}).encode() + b"\n"
    inputs = []
    for number, copies in enumerate([1, 6_000, 6_000, 6_000]):
        path = folder / f"{number}.jsonl.gz"
        path.write_bytes(gzip.compress(lines(number * 10, 8) + rows * copies, 1, mtime=0))
        inputs.append(str(path))
    (folder / "empty").mkdir()
    config = Config(tuple(inputs), scheme="xval", on_error="skip", workers=1)
    whole = every_file(encode(config, folder / "store"))
    return Large(Scenario(config, folder / "empty", Path(os.devnull), whole))


def wait_for(receipt: str, root: Path, process: subprocess.Popen[str]) -> None:
    while receipt not in [path.name for path in receipts(root)]:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


def wait_for_worker(process: subprocess.Popen[str]) -> Any:
    """Wait until a worker is running, and return it. Each check is slow, so checks are rare."""
    while not (workers := workers_of(process.pid)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return workers[0]


STARTS, DONE = "a worker starts", "a unit is done"


@pytest.mark.parametrize(
    ("number", "when"),
    [
        (signal.SIGTERM, STARTS),
        pytest.param(signal.SIGKILL, DONE, marks=SLOW),
        pytest.param(signal.SIGTERM, DONE, marks=SLOW),
        pytest.param(signal.SIGINT, DONE, marks=SLOW),
        pytest.param(signal.SIGINT, STARTS, marks=SLOW),
    ],
)
def test_a_run_that_is_told_to_end_keeps_what_is_finished(
    tmp_path: Path, large: Large, number: signal.Signals, when: str
) -> None:
    root = tmp_path / "store"
    with started(*large.command(root)) as process:
        if when == STARTS:
            wait_for_worker(process)
            time.sleep(0.1)  # the worker is importing modules
        else:
            wait_for("00000.json", root, process)
        if number == signal.SIGINT:  # a terminal sends it to all processes
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        check_nobody_is_left(process.pid)
    code, said = {
        signal.SIGTERM: (143, "numtok: terminated\n"),
        signal.SIGINT: (130, "numtok: interrupted\n"),
        signal.SIGKILL: (-signal.SIGKILL, err),  # Python's warning about leaked semaphores
    }[number]
    assert (process.returncode, out, err) == (code, "", said)
    check_kept(large, root, when)


def check_kept(large: Large, root: Path, when: str) -> None:
    assert (f"{RECEIPTS}/00000.json" in finished(large.scenario, root)) == (when == DONE)
    check_after_fault(large.scenario, root)


@pytest.mark.parametrize("when", [DONE, pytest.param(STARTS, marks=SLOW)])
def test_a_run_that_loses_a_worker_says_so_and_keeps_what_is_finished(
    tmp_path: Path, large: Large, says: Says, when: str
) -> None:
    root = tmp_path / "store"
    with started(*large.command(root)) as process:
        if when == DONE:
            wait_for("00000.json", root, process)
        wait_for_worker(process).kill()
        out, err = process.communicate(timeout=60)
        check_nobody_is_left(process.pid)
    assert (process.returncode, out) == (4, "")
    check_kept(large, root, when)
    says(err, "worker process died", "same command")


def workers_of(parent: int) -> list[Any]:
    found = []
    with suppress(psutil.Error):
        for child in psutil.Process(parent).children():
            with suppress(psutil.Error):
                if any("spawn_main" in word for word in child.cmdline()):
                    found.append(child)
    return found


WORKER_KINDS = ("eio", "torn", "short", "kill")


@SLOW
@pytest.mark.parametrize("kind", WORKER_KINDS)
def test_any_operation_of_a_worker_may_fail(tmp_path: Path, large: Large, kind: str) -> None:
    """The faults strike at operations that every worker reaches, because the assignment of units to
    workers is random."""
    for at in range(1, 40, 2):
        root = tmp_path / str(at)
        command = ["-m", "tests.faults", f"worker:{kind}@{at}", "--", "numtok"]
        with started(*command, *large.command(root)[len(NUMTOK) :]) as process:
            out, err = process.communicate(timeout=120)
            check_nobody_is_left(process.pid)
        if process.returncode:
            assert (process.returncode, out) == (4, ""), err
            assert err.startswith("numtok: ") and err.count("\n") == 1, err
        check_after_fault(large.scenario, root)
        shutil.rmtree(root)


def test_two_runs_at_once_make_one_artifact(tmp_path: Path, large: Large, forks: Forks) -> None:
    root = tmp_path / "store"
    assert forks(large.scenario, {"trace": root, "trace@0": root}) == {"trace": 0, "trace@0": 0}
    (artifact,) = Store(root, silent).artifacts()
    assert every_file(artifact) == large.scenario.whole
    check_nothing_half_made(root)
    assert not list(root.rglob(".*"))


if __name__ == "__main__":
    _serve()
