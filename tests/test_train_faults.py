"""Training under faults: whatever fails or dies, the same command goes on and ends in the same
bytes.

The quick tests strike at some steps and at every n-th file operation; the slow ones at all of
them. ``pytest -s`` prints points reached over points existing.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest

from numtok.artifact import RECEIPTS, Artifact, verify
from numtok.errors import NumtokError, StoreError
from numtok.provenance import provenance
from numtok.stages._training import Training, Update
from numtok.stages.train import Config, run
from numtok.store import Store
from tests import test_train
from tests.faults import Plan, installed, points
from tests.test_cli_store import Shell
from tests.test_train import TINY, contents, tiny, train

ROOT = Path(__file__).resolve().parents[1]
SLOW = pytest.mark.slow

data, numtok, one_thread = test_train.data, test_train.numtok, test_train.one_thread


def silent(note: str) -> None:
    raise AssertionError(f"nothing should be said: {note}")


# --- one way of training -----------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """A store to train in, and what comes out where nothing fails."""

    config: Config
    before: Path
    whole: dict[str, bytes]
    trace: tuple[str, ...]

    def start(self, root: Path) -> Path:
        shutil.copytree(self.before, root)
        return root

    def train(self, root: Path) -> tuple[Artifact, list[Update]]:
        updates: list[Update] = []
        result = run(self.config, Store(root, silent), updates.append)
        return result.artifact, updates


def scenario(data: Path, folder: Path, config: Config) -> Scenario:
    """Train twice undisturbed: to warm up, and to be traced."""
    provenance()  # asked for once a process, and not through the seam
    for attempt in ("warm-up", "traced"):
        root = folder / attempt
        shutil.copytree(data, root)
        with installed(Plan("trace")) as faults:
            artifact = train(Store(root, silent), config)
    return Scenario(config, data, contents(artifact), tuple(faults.trace))


def steps_kept(root: Path) -> int:
    """The step of the checkpoint that a dead run left: 0 where there is none."""
    receipts = list(root.glob(f"model/*/.draft-*/{RECEIPTS}/checkpoint.json"))
    assert len(receipts) <= 1
    return json.loads(receipts[0].read_bytes())["facts"]["step"] if receipts else 0


def is_finished(root: Path) -> bool:
    """Whether a dead run left a whole model, published or not."""
    place = [*root.glob("model/*/.draft-*/"), *root.glob("model/*/[0-9a-f]*/")]
    return any((folder / RECEIPTS / "model.json").exists() for folder in place)


def check_goes_on(scenario: Scenario, root: Path) -> int:
    """The same command continues from the last checkpoint and ends in the same bytes; from where.

    Nothing half-made is seen before it, and nothing hidden is left after it.
    """
    for artifact in Store(root, silent).artifacts():
        assert verify(artifact).problems == []
    kept, finished, steps = steps_kept(root), is_finished(root), scenario.config.steps
    assert steps is not None
    artifact, updates = scenario.train(root)
    assert contents(artifact) == scenario.whole
    assert verify(artifact).problems == []
    learnt = [update.step for update in updates]
    assert learnt == ([] if finished else list(range(kept + 1, steps + 1)))
    Store(root, silent).collect()
    assert sorted(path.name for path in root.rglob(".*")) == []
    return kept


# --- other processes ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """One run in a process of its own: a plan of faults, or a signal at the end of a step."""

    root: str
    plan: str = "trace"
    signal: int = 0
    step: int = 0


def forked(config: Config, attempts: list[Attempt]) -> list[int]:
    """The exit codes of attempts, each in a process forked from one that is warm: milliseconds."""
    job = {"config": asdict(config), "attempts": [asdict(one) for one in attempts]}
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_train_faults"],
        cwd=ROOT,
        input=json.dumps(job),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=600,
    )
    codes: list[int] = json.loads(done.stdout)
    return codes


def _fork_each() -> None:
    """This file as a program: the other end of ``forked``."""
    job = json.load(sys.stdin)
    os.fsync = lambda fd: None
    config = Config(**job["config"])
    provenance()
    codes = []
    for attempt in (Attempt(**one) for one in job["attempts"]):
        child = os.fork()
        if child == 0:
            code = 70
            try:
                _attempt(config, attempt)
                code = 0
            except NumtokError as error:
                code = error.exit_code
            finally:
                os._exit(code)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(json.dumps(codes))


def _attempt(config: Config, attempt: Attempt) -> None:
    def progress(update: Update) -> None:
        if update.step == attempt.step:
            os.kill(os.getpid(), attempt.signal)

    with installed(Plan.parse(attempt.plan)):
        run(config, Store(Path(attempt.root)), progress)


def killed(config: Config, root: Path, step: int) -> None:
    """Train in another process, which is killed (kill -9) at the end of a step."""
    attempt = Attempt(str(root), signal=signal.SIGKILL, step=step)
    assert forked(config, [attempt]) == [-signal.SIGKILL]


# --- kill -9 after some steps ------------------------------------------------------------------

DROPOUT = TINY + ",dropout=0.2"
CELLS = [
    (scheme, objective)
    for scheme in ("xval", "p1000")
    for objective in ("mlm:targets", "mlm", "mlm:tokens", "ar", "ar:answer")
]
QUICK = [("xval", "mlm"), ("p1000", "ar:answer")]


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(
    ("scheme", "objective"),
    [cell if cell in QUICK else pytest.param(*cell, marks=SLOW) for cell in CELLS],
)
def test_a_killed_run_ends_in_the_bytes_of_one_that_was_not(
    data: Path, tmp_path: Path, scheme: str, objective: str, every: int
) -> None:
    # Eight steps are an epoch.
    config = tiny(scheme, steps=12, objective=objective, preset=DROPOUT, checkpoint_steps=every)
    undisturbed = scenario(data, tmp_path, config)
    steps = range(1, 13) if every == 3 else (1, 8, 12)
    roots = {step: undisturbed.start(tmp_path / f"step {step}") for step in steps}
    attempts = [Attempt(str(root), "trace", signal.SIGKILL, at) for at, root in roots.items()]
    assert forked(config, attempts) == [-signal.SIGKILL] * len(attempts)
    for step, root in roots.items():
        # The signal comes before the checkpoint of its own step.
        assert check_goes_on(undisturbed, root) == (step - 1) // every * every


@pytest.mark.parametrize(
    ("scheme", "objective"), [("xval", "ar"), pytest.param("p1000", "mlm", marks=SLOW)]
)
def test_a_run_that_is_killed_again_and_again_gets_there(
    data: Path, tmp_path: Path, scheme: str, objective: str
) -> None:
    config = tiny(scheme, steps=20, objective=objective, preset=DROPOUT, checkpoint_steps=2)
    undisturbed = scenario(data, tmp_path, config)
    root = undisturbed.start(tmp_path / "killed")
    deaths = [Attempt(str(root), "trace", signal.SIGKILL, at) for at in (3, 4, 9, 10, 17, 20)]
    assert forked(config, deaths) == [-signal.SIGKILL] * len(deaths)
    assert check_goes_on(undisturbed, root) == 18


def test_without_a_checkpoint_a_killed_run_starts_anew(data: Path, tmp_path: Path) -> None:
    undisturbed = scenario(data, tmp_path, tiny(steps=6))
    root = undisturbed.start(tmp_path / "killed")
    killed(undisturbed.config, root, 5)
    assert check_goes_on(undisturbed, root) == 0


def test_the_options_that_change_no_bytes_may_change_on_the_way(data: Path, tmp_path: Path) -> None:
    config = tiny(steps=12, objective="mlm", preset=DROPOUT)
    undisturbed = scenario(data, tmp_path, config)
    root = undisturbed.start(tmp_path / "killed")
    killed(replace(config, checkpoint_steps=4), root, 6)
    other = replace(config, batch_workers=2, checkpoint_steps=1)
    assert check_goes_on(replace(undisturbed, config=other), root) == 4


def test_a_run_from_other_weights_continues_as_well(data: Path, tmp_path: Path) -> None:
    before = tmp_path / "with a model"
    shutil.copytree(data, before)
    first = train(Store(before), tiny(steps=3))
    config = tiny(steps=6, init=first.ref, name="second", checkpoint_steps=2)
    undisturbed = scenario(before, tmp_path, config)
    root = undisturbed.start(tmp_path / "killed")
    killed(config, root, 5)
    assert check_goes_on(undisturbed, root) == 4


def test_minutes_are_measured_once(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(minutes=0.02, checkpoint_steps=1)
    root = tmp_path / "artifacts"
    shutil.copytree(data, root)
    killed(config, root, 2)
    (receipt,) = root.glob(f"model/*/.draft-*/{RECEIPTS}/budget.json")
    steps = json.loads(receipt.read_bytes())["facts"]["steps"]
    assert steps > 2
    assert steps_kept(root) >= 1

    def forbidden(self: Training, budget: float) -> float:
        raise AssertionError("the time a step takes is known")

    monkeypatch.setattr(Training, "_seconds_per_step", forbidden)
    updates: list[Update] = []
    artifact = run(config, Store(root), updates.append).artifact
    assert artifact.manifest.counts["steps"] == steps
    assert {update.steps for update in updates} == {steps}
    assert updates[0].step > 1
    straight = tiny(steps=steps, name="straight")
    assert (train(Store(root), straight).path / "weights.safetensors").read_bytes() == (
        artifact.path / "weights.safetensors"
    ).read_bytes()


def test_restart_discards_what_a_killed_run_left(data: Path, tmp_path: Path) -> None:
    config = tiny(steps=6, checkpoint_steps=2)
    undisturbed = scenario(data, tmp_path, config)
    root = undisturbed.start(tmp_path / "killed")
    killed(config, root, 5)
    assert steps_kept(root) == 4
    again = replace(undisturbed, config=replace(config, restart=True))
    artifact, updates = again.train(root)
    assert [update.step for update in updates] == [1, 2, 3, 4, 5, 6]
    assert contents(artifact) == undisturbed.whole


def test_time_is_added_up_over_runs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(steps=6, checkpoint_steps=3)
    root = tmp_path / "artifacts"
    shutil.copytree(data, root)
    killed(config, root, 4)
    (receipt,) = root.glob(f"model/*/.draft-*/{RECEIPTS}/checkpoint.json")
    before = json.loads(receipt.read_bytes())["facts"]["seconds"]
    assert before > 0
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)  # no time passes in the second run
    updates: list[Update] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numtok.stages._training._Clock.update", lambda *_: None)
        artifact = run(config, Store(root), lambda update: None).artifact
    timing = json.loads((artifact.path / "timing.json").read_bytes())
    assert timing["seconds"] == before
    assert updates == []


# --- file operations that fail -----------------------------------------------------------------

SOME, ALL = "some", "all"  # of the points that there are
SHARES = [SOME, pytest.param(ALL, marks=SLOW)]
STRUCK = tiny("xval", steps=5, objective="mlm", preset=DROPOUT, checkpoint_steps=2)


@pytest.fixture(scope="module")
def struck(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A short run with two checkpoints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        patch.setattr(os, "fsync", lambda fd: None)
        return scenario(data, tmp_path_factory.mktemp("struck"), STRUCK)


def chosen(kind: str, struck: Scenario, share: str) -> list[int]:
    """The points to strike at: all, or a dozen at equal distances, from another first one a kind."""
    places = points(kind, list(struck.trace))
    apart = 1 if share == ALL else max(1, len(places) // 12)
    return places[sum(kind.encode()) % apart :: apart]


# What only tidies up may fail without a word: closing what was read, removing a lock.
TIDYING = {"close", "unlink"}


def told(kind: str, reached: int, struck: Scenario) -> None:
    print(f"\ntrain, {kind}: {reached} points reached of {len(points(kind, list(struck.trace)))}")


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", ["eio", "enospc", "short", "torn"])
def test_any_operation_may_fail(tmp_path: Path, struck: Scenario, kind: str, share: str) -> None:
    places = chosen(kind, struck, share)
    for at in places:
        root = struck.start(tmp_path / str(at))
        problem: NumtokError | None = None
        with installed(Plan(kind, at)) as faults:
            try:
                struck.train(root)
            except NumtokError as error:
                problem = error
        assert faults.reached, at
        if problem is None:
            assert kind == "short" or struck.trace[at - 1] in TIDYING, (at, struck.trace[at - 1])
        else:
            assert kind != "short", problem
            assert isinstance(problem, StoreError), repr(problem)
            assert str(problem).isprintable()
        check_goes_on(struck, root) if problem else struck.train(root)
        shutil.rmtree(root)
    told(kind, len(places), struck)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", ["kill", "killtorn"])
def test_any_operation_may_be_the_last(
    tmp_path: Path, struck: Scenario, kind: str, share: str
) -> None:
    places = chosen(kind, struck, share)
    roots = {at: struck.start(tmp_path / str(at)) for at in places}
    attempts = [Attempt(str(root), f"{kind}@{at}") for at, root in roots.items()]
    assert forked(STRUCK, attempts) == [-signal.SIGKILL] * len(places)
    kept = [check_goes_on(struck, root) for root in roots.values()]
    # The later it dies, the more is kept; behind the last checkpoint nothing is learnt anew.
    finished = kept.index(4) if 4 in kept else len(kept)
    assert kept[:finished] == sorted(kept[:finished])
    told(kind, len(places), struck)


def test_from_the_first_checkpoint_on_no_death_loses_it(tmp_path: Path, struck: Scenario) -> None:
    """Also not where the model is written and the checkpoint goes: at each operation there is."""
    # From the first write of the model's own files.
    writes = [at for at, name in enumerate(struck.trace, 1) if name == "open_write"]
    places = range(writes[5], len(struck.trace) + 1, 1 if os.environ.get("NUMTOK_ALL") else 3)
    roots = {at: struck.start(tmp_path / str(at)) for at in places}
    attempts = [Attempt(str(root), f"kill@{at}") for at, root in roots.items()]
    assert forked(STRUCK, attempts) == [-signal.SIGKILL] * len(attempts)
    for at, root in roots.items():
        assert is_finished(root) or steps_kept(root) == 4, (at, struck.trace[at - 1])
        check_goes_on(struck, root)


def test_a_full_disk_is_told_in_one_line_and_the_same_command_goes_on(
    numtok: Shell, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "artifacts"
    shutil.copytree(data, root)
    command = ("train", "arithmetic-xval", "--preset", TINY, "--steps", "4", "--batch", "64")
    command += ("--checkpoint-every", "1")
    with installed(Plan("trace")) as faults:
        straight = numtok(*command)
    writes = points("torn", faults.trace)
    shutil.rmtree(root / "model")
    with installed(Plan("torn", at=writes[6])):  # after budget and two checkpoints: the third's
        ran = numtok(*command)
    assert ran.code == 4
    assert ran.err.count("\n") == 1
    assert (
        "checkpoint-000000003.safetensors: No space left on device; free some space, then run "
        "the same command again: what is finished is kept" in ran.err
    )
    assert steps_kept(root) == 2
    again = numtok(*command)
    assert (again.code, again.out) == (0, straight.out)


# --- signals to the real process ---------------------------------------------------------------

COMMAND = (
    "train", "arithmetic-xval", "--preset", DROPOUT, "--steps", "12", "--batch", "64",
    "--objective", "mlm",
)  # fmt: skip
INTERRUPTED = [
    (signal.SIGINT, 130, "numtok: interrupted\n"),
    (signal.SIGTERM, 143, "numtok: terminated\n"),
]

# numtok itself, but that it tells each step, and acts after one of them.
_MAIN = """
import os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
action, at = sys.argv.pop(1), int(sys.argv.pop(1))
from numtok.cli._trained import TrainingBar
from numtok.cli.main import main
from numtok import files
from tests.faults import Faults, Plan

def tell(self, update):
    print("step", update.step, file=sys.stdout, flush=True)
    if update.step == at:
        exec(action)

TrainingBar.__call__ = tell
main()
"""


@contextmanager
def process(root: Path, action: str, at: int, *command: str) -> Iterator[subprocess.Popen[str]]:
    """numtok in a process of its own, which acts at the end of a step."""
    environment = {key: value for key, value in os.environ.items() if key != "NUMTOK_STORE"}
    with subprocess.Popen(
        [sys.executable, "-c", _MAIN, str(ROOT), action, str(at), "--store", str(root), *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        yield running


def ran(root: Path, action: str, at: int, *command: str) -> tuple[int, list[int], str, str]:
    """Exit code, the steps that were taken, what else is on stdout, and stderr."""
    with process(root, action, at, *command) as running:
        out, err = running.communicate(timeout=120)
    lines = out.splitlines()
    steps = [int(line.partition(" ")[2]) for line in lines if line.startswith("step ")]
    return running.returncode, steps, "\n".join(lines[len(steps) :]), err


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """``COMMAND`` where nothing happens."""
    config = tiny(steps=12, preset=DROPOUT, objective="mlm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        return scenario(data, tmp_path_factory.mktemp("undisturbed"), config)


def kill(number: int) -> str:
    return f"os.kill(os.getpid(), {int(number)})"


@pytest.mark.parametrize(("number", "code", "line"), INTERRUPTED)
def test_an_interrupt_is_answered_by_a_checkpoint(
    undisturbed: Scenario, tmp_path: Path, number: int, code: int, line: str
) -> None:
    root = undisturbed.start(tmp_path / "artifacts")
    # There is no --checkpoint-every, and no minute passes: the signal is what makes one.
    assert ran(root, kill(number), 5, *COMMAND) == (code, [1, 2, 3, 4, 5], "", line)
    assert steps_kept(root) == 5
    assert check_goes_on(undisturbed, root) == 5


def test_the_same_command_goes_on_after_an_interrupt(undisturbed: Scenario, tmp_path: Path) -> None:
    root = undisturbed.start(tmp_path / "artifacts")
    assert ran(root, kill(signal.SIGINT), 4, *COMMAND)[:2] == (130, [1, 2, 3, 4])
    assert ran(root, kill(signal.SIGTERM), 12, *COMMAND)[:2] == (143, list(range(5, 13)))
    code, steps, out, err = ran(root, "", 0, *COMMAND)
    assert (code, steps) == (0, [])  # all had been done
    artifact = Store(root).resolve(out)
    assert contents(artifact) == undisturbed.whole
    assert err.startswith("trained\n")


@SLOW
@pytest.mark.parametrize(("number", "code", "line"), INTERRUPTED)
def test_an_interrupt_from_outside_is_answered_at_any_time(
    data: Path, tmp_path: Path, number: int, code: int, line: str
) -> None:
    config = tiny(steps=300, batch=16, preset=DROPOUT)
    undisturbed = scenario(data, tmp_path, config)
    command = ("train", "arithmetic-xval", "--preset", DROPOUT, "--steps", "300", "--batch", "16")
    root = undisturbed.start(tmp_path / "artifacts")
    kept = 0
    for _ in range(3):
        with process(root, "", 0, *command) as running:
            assert running.stdout is not None
            for _ in range(20):
                running.stdout.readline()
            running.send_signal(number)
            _, err = running.communicate(timeout=120)
        assert (running.returncode, err) == (code, line)
        assert kept + 20 <= steps_kept(root) < 300
        kept = steps_kept(root)
    assert check_goes_on(undisturbed, root) == kept


def test_a_second_signal_ends_the_process_at_once(undisturbed: Scenario, tmp_path: Path) -> None:
    root = undisturbed.start(tmp_path / "artifacts")
    twice = f"{kill(signal.SIGINT)}; {kill(signal.SIGINT)}"
    assert ran(root, twice, 5, *COMMAND) == (-signal.SIGINT, [1, 2, 3, 4, 5], "", "")
    assert check_goes_on(undisturbed, root) == 0


def test_a_signal_that_is_ignored_does_not_end_training_early(
    undisturbed: Scenario, tmp_path: Path
) -> None:
    """As under ``nohup``, or in the background of a shell script."""
    root = undisturbed.start(tmp_path / "artifacts")
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    command = [
        sys.executable, "-c", ignored + _MAIN, str(ROOT), kill(signal.SIGINT), "5",
        "--store", str(root), *COMMAND,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:-1] == [f"step {step}" for step in range(1, 13)]
    assert contents(Store(root).resolve(lines[-1])) == undisturbed.whole


def test_a_checkpoint_that_fails_is_told_rather_than_the_interrupt(
    undisturbed: Scenario, tmp_path: Path
) -> None:
    root = undisturbed.start(tmp_path / "artifacts")
    fail = f"{kill(signal.SIGTERM)}; files.system = Faults(Plan('enospc', 1, True))"
    code, steps, out, err = ran(root, fail, 5, *COMMAND)
    assert (code, steps, out) == (4, [1, 2, 3, 4, 5], "")
    assert err.count("\n") == 1
    assert "checkpoint-000000005.safetensors: No space left on device" in err
    assert check_goes_on(undisturbed, root) == 0


def test_restart_discards_the_checkpoint_of_an_interrupt(
    undisturbed: Scenario, tmp_path: Path
) -> None:
    root = undisturbed.start(tmp_path / "artifacts")
    assert ran(root, kill(signal.SIGINT), 5, *COMMAND)[0] == 130
    code, steps, out, _ = ran(root, "", 0, *COMMAND, "--restart")
    assert (code, steps) == (0, list(range(1, 13)))
    assert contents(Store(root).resolve(out)) == undisturbed.whole


if __name__ == "__main__":
    _fork_each()
