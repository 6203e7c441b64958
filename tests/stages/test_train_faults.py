"""Training under faults: after any failure, the same command resumes and gives the same bytes.

These tests strike at selected steps and at every kind of file operation. ``just trust`` strikes at
random ones for as long as you like.
"""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from numtok import files
from numtok.cli import main
from numtok.cli.output.train import TrainingBar
from numtok.declaration import settings_in
from numtok.errors import NumtokError
from numtok.stages.train import Config, run
from numtok.store.artifact import RECEIPTS, Artifact
from numtok.store.provenance import provenance
from numtok.store.store import Store
from numtok.store.verification import verify
from numtok.training import loop
from numtok.training.loop import TrainingProgress
from tests.cases import case
from tests.chain import contents, quiet, timing_of
from tests.faults import Faults, Plan, installed, points, sample
from tests.forged import forge_receipt
from tests.forks import serving
from tests.messages import Says
from tests.shell import Shell
from tests.stages import test_train
from tests.stages.test_encode_faults import check_problem
from tests.stages.test_train import TINY, records, tiny, train

ROOT = Path(__file__).resolve().parents[2]
SLOW = pytest.mark.slow

data, one_thread = test_train.data, test_train.one_thread


def silent(note: str) -> None:
    if not re.fullmatch(r"resumes at step [\d,]+ of [\d,]+", note):
        raise AssertionError(f"nothing should be said: {note}")


# --- scenarios ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """A store to train in, and the result without faults."""

    config: Config
    before: Path
    whole: dict[str, bytes]
    trace: tuple[str, ...]

    def start(self, root: Path) -> Path:
        shutil.copytree(self.before, root)
        return root

    def train(self, root: Path) -> tuple[Artifact, list[Any]]:
        updates: list[Any] = []
        return run(self.config, Store(root, silent), updates.append).artifact, updates


def traced(before: Path, folder: Path, config: Config) -> Scenario:
    """Train without faults in one thread, and record the file operations."""
    provenance()  # cached per process; it does not go through files.system
    root = folder / "undisturbed"
    shutil.copytree(before, root)
    with pytest.MonkeyPatch.context() as patch, installed(Plan("trace")) as faults:
        patch.setenv("NUMTOK_THREADS", "1")
        artifact = run(config, Store(root, silent), quiet).artifact
    assert verify(artifact).problems == []
    return Scenario(config, before, contents(artifact), tuple(faults.trace))


def steps_kept(root: Path) -> int:
    """Return the step of the checkpoint that a dead run left, or 0 if there is none."""
    receipts = list(root.glob(f"model/*/.draft-*/{RECEIPTS}/checkpoint.json"))
    assert len(receipts) <= 1
    return json.loads(receipts[0].read_bytes())["facts"]["learner"]["step"] if receipts else 0


def is_finished(root: Path, name: str | None) -> bool:
    """Return whether a dead run left a complete model, published or not."""
    places = root.glob(f"model/{name or '*'}/*/")  # includes drafts
    return any((folder / RECEIPTS / "model.json").exists() for folder in places)


def check_goes_on(scenario: Scenario, root: Path) -> int:
    """Check that the same command resumes from the last checkpoint and gives the same bytes.

    Return the step from which it resumes, or the last step if the model is complete. Also check
    that nothing incomplete is visible before, and that nothing hidden is left afterwards.
    """
    for artifact in Store(root, silent).artifacts():
        assert verify(artifact).problems == []
    kept, steps = steps_kept(root), scenario.config.steps
    finished = is_finished(root, scenario.config.name)
    assert steps is not None
    artifact, updates = scenario.train(root)
    assert contents(artifact) == scenario.whole
    assert verify(artifact).problems == []
    learnt = [update.step for update in updates]
    assert learnt == ([] if finished else list(range(kept + 1, steps + 1)))
    Store(root, silent).collect()
    assert not list(root.rglob(".*"))
    return steps if finished else kept


# --- other processes ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """A run of numtok in its own process, and its faults.

    ``plan`` is a plan of ``tests.faults``. At the end of ``step``, the process gets the
    ``signals``, and then the disk becomes full if ``full`` is set. If ``ignoring`` is set, SIGINT
    is ignored.
    """

    root: str
    command: tuple[str, ...]
    plan: str = "trace"
    step: int = 0
    signals: tuple[int, ...] = ()
    full: bool = False
    ignoring: bool = False


@dataclass(frozen=True)
class Ended:
    """The exit code of a run, the steps that it took, and its output."""

    code: int
    steps: list[int]
    out: str
    err: str


class Forks:
    """Runs numtok in processes forked from a warm one. A fork takes milliseconds; starting a new
    process would take seconds."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self._ask = ask

    def __call__(self, *attempts: Attempt) -> list[Ended]:
        return [Ended(**one) for one in self._ask([asdict(one) for one in attempts])]

    def killed(self, config: Config, root: Path, *steps: int) -> None:
        """Train and be killed (kill -9) at the end of each of the steps, one run after another."""
        command, signals = command_of(config), (signal.SIGKILL,)
        for step in steps:
            (ended,) = self(Attempt(str(root), command, step=step, signals=signals))
            assert ended.code == -signal.SIGKILL, ended
            for line in ended.err.splitlines():
                silent(line.removeprefix("numtok: "))
            assert ended.steps[-1] == step


def command_of(config: Config) -> tuple[str, ...]:
    """Return the command line of a configuration."""
    words = ["train", config.data]
    for key, one in settings_in(type(config)).items():
        value = getattr(config, key)
        if key != "data" and value != one.default:
            words += [f"--{one.flag}", str(value)]
    return tuple(words)


@pytest.fixture(scope="module")
def forks(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    warm = tmp_path_factory.mktemp("forks") / "artifacts"
    shutil.copytree(data, warm)
    with serving("tests.stages.test_train_faults", str(warm), NUMTOK_THREADS="1") as ask:
        yield Forks(ask)


def _serve() -> None:
    """Run this file as a program: the server side of ``Forks``."""
    os.fsync = lambda fd: None
    os.environ.pop("NUMTOK_STORE", None)
    sys.argv = ["numtok", "-q", "--store", sys.argv[1], *command_of(tiny())]
    with suppress(SystemExit), redirect_stdout(io.StringIO()):
        main.main()  # imports all modules that a run needs
    provenance()
    for line in sys.stdin:
        attempts = [Attempt(**one) for one in json.loads(line)]
        print(json.dumps([asdict(_forked(attempt)) for attempt in attempts]), flush=True)


def _forked(attempt: Attempt) -> Ended:
    folder = Path(attempt.root).parent
    streams = [folder / "stdout", folder / "stderr"]
    child = os.fork()
    if child == 0:
        for fd, path in enumerate(streams, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), fd)
        _run_numtok(attempt)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    out, err = (path.read_text() for path in streams)
    lines = out.splitlines()
    steps = [int(line.partition(" ")[2]) for line in lines if line.startswith("step ")]
    return Ended(code, steps, "\n".join(lines[len(steps) :]), err)


def _run_numtok(attempt: Attempt) -> NoReturn:
    def tell(bar: TrainingBar, update: TrainingProgress) -> None:
        print("step", update.step, flush=True)
        if update.step == attempt.step:
            for number in attempt.signals:
                os.kill(os.getpid(), number)
            if attempt.full:
                files.system = cast(files.FileSystem, Faults(Plan("enospc", 1, onward=True)))

    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if attempt.ignoring:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        TrainingBar.__call__ = tell  # type: ignore[assignment, method-assign]
        sys.argv = ["numtok", "--store", attempt.root, *attempt.command]
        with installed(Plan.parse(attempt.plan)):
            main.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 70
    finally:
        sys.stdout.flush()
        os._exit(code)


# --- kill -9 after some steps ------------------------------------------------------------------

DROPOUT = TINY + ",dropout=0.2"
CELLS = [
    (scheme, objective)
    for scheme in ("xval", "p1000")
    for objective in ("mlm:targets", "mlm", "mlm:tokens", "ar", "ar:answer")
]
SOME = [("xval", "mlm", (4, 12)), ("p1000", "ar:answer", (3, 8))]


@pytest.mark.parametrize(
    ("scheme", "objective", "steps"),
    [*SOME, *(pytest.param(*cell, range(1, 13), marks=SLOW) for cell in CELLS)],
)
def test_a_killed_run_ends_in_the_bytes_of_one_that_was_not(
    data: Path, forks: Forks, tmp_path: Path, scheme: str, objective: str, steps: Sequence[int]
) -> None:
    # An epoch has eight steps.
    config = tiny(scheme, steps=12, objective=objective, preset=DROPOUT, checkpoint_steps=3)
    undisturbed = traced(data, tmp_path, config)
    for step in steps:
        root = undisturbed.start(tmp_path / f"step {step}" / "artifacts")
        forks.killed(config, root, step)
        # The signal arrives before the checkpoint of its own step.
        assert check_goes_on(undisturbed, root) == (step - 1) // 3 * 3


def continued(before: Path, forks: Forks, folder: Path, config: Config, *steps: int) -> int:
    """Train, be killed at each of the steps, and check that the result is the same. Return the step
    from which the last run resumed."""
    undisturbed = traced(before, folder, config)
    root = undisturbed.start(folder / "artifacts")
    forks.killed(config, root, *steps)
    return check_goes_on(undisturbed, root)


AGAIN = {"steps": 20, "checkpoint_steps": 1}
TWO_PASSES = {"scheme": "numvalue", "steps": 8}


@pytest.mark.parametrize(
    ("options", "steps", "kept"),
    [
        (AGAIN | {"objective": "ar"}, (3, 4, 10, 20), 19),
        pytest.param(
            AGAIN | {"scheme": "p1000", "objective": "mlm"}, (3, 4, 10, 20), 19, marks=SLOW
        ),
        ({"steps": 12, "objective": "mlm", "accumulate": 3}, (8,), 6),
        (TWO_PASSES | {"embedder": "numvalue:mlp", "objective": "numvalue"}, (7,), 6),
        (
            TWO_PASSES
            | {"embedder": "numvalue:rnn", "objective": "numvalue:answer,project=answer"},
            (7,),
            6,
        ),
        ({"steps": 6, "preset": TINY, "checkpoint_steps": None}, (5,), 0),
    ],
    ids=["again and again", "slow", "batches in parts", "two passes", "of rnn", "no checkpoint"],
)
def test_a_killed_run_goes_on_from_its_last_checkpoint(
    data: Path,
    forks: Forks,
    tmp_path: Path,
    options: dict[str, Any],
    steps: tuple[int, ...],
    kept: int,
) -> None:
    usual: dict[str, Any] = {"preset": DROPOUT, "checkpoint_steps": 3}
    config = tiny(**usual | options)
    assert continued(data, forks, tmp_path, config, *steps) == kept


def test_a_curriculum_resumes_inside_a_phase(data: Path, forks: Forks, tmp_path: Path) -> None:
    path = tmp_path / "phases.toml"
    path.write_text(
        'restart = true\n[[phase]]\nrows = [{ where = { operator = "+" } }]\n'
        '[[phase]]\nlength = 2\nrows = [{ where = { operator = "*" } }, { weight = 0.5 }]\n'
    )
    config = tiny(
        steps=12, curriculum=str(path), final_rate=1e-5, preset=DROPOUT, checkpoint_steps=3
    )
    # Killed in the first phase and in the second, which begins at step 4.
    assert continued(data, forks, tmp_path, config, 2, 8) == 6


def test_options_that_change_no_bytes_may_change(data: Path, forks: Forks, tmp_path: Path) -> None:
    config = tiny(steps=12, objective="mlm", preset=DROPOUT)
    undisturbed = traced(data, tmp_path, config)
    root = undisturbed.start(tmp_path / "artifacts")
    forks.killed(replace(config, checkpoint_steps=4), root, 6)
    other = replace(config, batch_workers=2, checkpoint_steps=1, recompute=True)
    assert check_goes_on(replace(undisturbed, config=other), root) == 4


def test_a_run_from_other_weights_resumes(data: Path, forks: Forks, tmp_path: Path) -> None:
    before = tmp_path / "with a model"
    shutil.copytree(data, before)
    first = train(Store(before), tiny(steps=3))
    config = tiny(steps=6, init=first.ref, name="second", checkpoint_steps=2)
    assert continued(before, forks, tmp_path, config, 5) == 4


def test_losses_that_are_means_of_several_steps_survive_as_well(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Exception):
        pass

    def stop(progress: Any) -> None:
        if progress.step >= 50:
            raise Stopped

    # A loss is recorded every second step, and the checkpoint is between two of these steps.
    monkeypatch.setattr(loop, "_RECORDS", 45)
    size = "nano,layers=1,width=4,heads=2,dropout=0.1"
    config = tiny(steps=92, preset=size, batch=4, checkpoint_steps=47)
    undisturbed = traced(data, tmp_path, config)
    root = undisturbed.start(tmp_path / "artifacts")
    with pytest.raises(Stopped):
        run(config, Store(root, silent), stop)
    assert steps_kept(root) == 47
    artifact, updates = undisturbed.train(root)
    assert [update.step for update in updates] == list(range(48, 93, 2))
    assert contents(artifact) == undisturbed.whole
    assert [one["step"] for one in records(artifact, "train")] == list(range(2, 93, 2))
    assert [one["step"] for one in records(artifact, "validation")] == [45, 90, 92]


def test_minutes_are_measured_once(
    data: Path, forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny(minutes=0.005, checkpoint_steps=1)
    root = tmp_path / "artifacts"
    shutil.copytree(data, root)
    forks.killed(config, root, 2)
    (receipt,) = root.glob(f"model/*/.draft-*/{RECEIPTS}/budget.json")
    steps = json.loads(receipt.read_bytes())["facts"]["steps"]
    assert steps > 2

    def forbidden(*_: object) -> float:
        raise AssertionError("the time that a step takes is known")

    monkeypatch.setattr(loop, "seconds_per_step", forbidden)
    updates: list[Any] = []
    artifact = run(config, Store(root), updates.append).artifact
    assert artifact.manifest.counts["steps"] == steps
    assert {update.steps for update in updates} == {steps}
    assert updates[0].step > 1
    straight = train(Store(root), tiny(steps=steps, name="straight"))
    assert contents(straight)["weights.safetensors"] == contents(artifact)["weights.safetensors"]


def test_restart_discards_what_a_killed_run_left(data: Path, forks: Forks, tmp_path: Path) -> None:
    config = tiny(steps=6, checkpoint_steps=2)
    undisturbed = traced(data, tmp_path, config)
    root = undisturbed.start(tmp_path / "artifacts")
    forks.killed(config, root, 5)
    assert steps_kept(root) == 4
    (ended,) = forks(Attempt(str(root), (*command_of(config), "--restart")))
    assert (ended.code, ended.steps) == (0, [1, 2, 3, 4, 5, 6])
    assert contents(Store(root).resolve(ended.out)) == undisturbed.whole


def test_time_is_added_up_over_runs(data: Path, forks: Forks, tmp_path: Path) -> None:
    config = tiny(steps=6, checkpoint_steps=3)
    root = tmp_path / "artifacts"
    shutil.copytree(data, root)
    forks.killed(config, root, 4)
    (receipt,) = root.glob(f"model/*/.draft-*/{RECEIPTS}/checkpoint.json")
    assert json.loads(receipt.read_bytes())["facts"]["seconds"] > 0
    forge_receipt(receipt, seconds=5000.0)
    artifact = run(config, Store(root), quiet).artifact
    timing = timing_of(artifact)
    assert 5000 < timing["seconds"] < 5060
    tokens = artifact.manifest.counts["tokens"]
    assert timing["tokens_per_second"] == pytest.approx(tokens / timing["seconds"])


# --- file operations that fail -----------------------------------------------------------------

STRUCK = tiny("xval", steps=5, objective="mlm", preset=DROPOUT, checkpoint_steps=2)


@pytest.fixture(scope="module")
def struck(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Return a short run with two checkpoints."""
    return traced(data, tmp_path_factory.mktemp("struck"), STRUCK)


# Cleanup may fail silently: closing a file after reading, removing a lock.
TIDYING = {"close", "unlink"}


@pytest.mark.parametrize("kind", ["eio", "enospc", "short", "torn"])
def test_any_operation_may_fail(tmp_path: Path, struck: Scenario, kind: str) -> None:
    for at in sample(kind, struck.trace, 3, every=kind == "eio"):
        with case(at=at):
            root = struck.start(tmp_path / str(at))
            problem: NumtokError | None = None
            with installed(Plan(kind, at)) as faults:
                try:
                    struck.train(root)
                except NumtokError as error:
                    problem = error
            assert faults.reached
            check_problem(problem, kind, struck.trace[at - 1], TIDYING)
            check_goes_on(struck, root)
            shutil.rmtree(root)


def test_any_operation_may_be_the_last(tmp_path: Path, forks: Forks, struck: Scenario) -> None:
    command, kept = command_of(STRUCK), []
    # Every write is struck, because there is one between any two checkpoints.
    places = [(at, "killtorn") for at in points("killtorn", struck.trace)]
    places += [(at, "kill") for at in sample("kill", struck.trace, 8)]
    for at, kind in sorted(places):
        root = struck.start(tmp_path / f"{kind} {at}" / "artifacts")
        (ended,) = forks(Attempt(str(root), command, f"{kind}@{at}"))
        assert (ended.code, ended.err) == (-signal.SIGKILL, ""), at
        kept.append(check_goes_on(struck, root))
        shutil.rmtree(root)
    # The later a run dies, the more steps are kept, and in the end the complete model.
    assert kept == sorted(kept)
    assert {0, 2, 4, 5} == set(kept)


def test_a_full_disk_is_one_line_and_resumes(numtok: Shell, data: Path, tmp_path: Path) -> None:
    root = tmp_path / "artifacts"
    shutil.copytree(data, root)
    command = command_of(tiny(steps=4, checkpoint_steps=1))
    with installed(Plan("trace")) as faults:
        straight = numtok(*command)
    writes = points("torn", faults.trace)
    shutil.rmtree(root / "model")
    with installed(Plan("torn", at=writes[5])):  # after budget and two checkpoints with receipts
        ran = numtok(*command)
    assert (ran.code, ran.err.count("\n")) == (4, 1)
    assert "/checkpoint-000000003.safetensors: No space left on device. Free some" in ran.err
    assert "the same command" in ran.err
    assert steps_kept(root) == 2
    again = numtok(*command)
    assert (again.code, again.out) == (0, straight.out)


# --- signals -----------------------------------------------------------------------------------

# Without --checkpoint-every and in less than a minute, only a signal causes a checkpoint.
LONG = tiny(steps=12, preset=DROPOUT, objective="mlm")


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Return ``LONG`` without faults."""
    return traced(data, tmp_path_factory.mktemp("undisturbed"), LONG)


def test_a_signal_is_answered_by_a_checkpoint_and_the_same_command_goes_on(
    undisturbed: Scenario, forks: Forks, tmp_path: Path, says: Says
) -> None:
    root = undisturbed.start(tmp_path / "artifacts")
    first = Attempt(str(root), command_of(LONG), step=5, signals=(signal.SIGINT,))
    second = replace(first, step=9, signals=(signal.SIGTERM,))
    third = replace(first, step=12)
    ended = forks(first, second, third)
    assert [(one.code, one.steps, one.out) for one in ended] == [
        (130, [1, 2, 3, 4, 5], ""), (143, [6, 7, 8, 9], ""), (130, [10, 11, 12], ""),
    ]  # fmt: skip
    says(ended[0].err, "stopped at step 5 of 12", "the same command", "interrupted")
    says(ended[1].err, "resumes at step 5 of 12", "stopped at step 9 of 12", "terminated")
    says(ended[2].err, "resumes at step 9 of 12", "stopped at step 12 of 12")
    assert steps_kept(root) == 12
    (last,) = forks(replace(first, step=0))
    assert (last.code, last.steps) == (0, [])
    assert last.err.startswith("numtok: resumes at step 12 of 12\ntrained\n")
    assert contents(Store(root).resolve(last.out)) == undisturbed.whole
    Store(root, silent).collect()
    assert not list(root.rglob(".*"))


def test_what_follows_the_last_step_can_be_cut_short(
    undisturbed: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = undisturbed.start(tmp_path / "artifacts")

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("numtok.training.text_learner._calibration", cut)
        with pytest.raises(KeyboardInterrupt):
            run(LONG, Store(root), quiet)
    assert check_goes_on(undisturbed, root) == 12


def test_a_second_signal_ends_at_once(undisturbed: Scenario, forks: Forks, tmp_path: Path) -> None:
    root = undisturbed.start(tmp_path / "artifacts")
    twice = (signal.SIGINT, signal.SIGINT)
    (ended,) = forks(Attempt(str(root), command_of(LONG), step=5, signals=twice))
    assert ended == Ended(-signal.SIGINT, [1, 2, 3, 4, 5], "", "")
    assert check_goes_on(undisturbed, root) == 0


def test_a_signal_that_is_ignored_does_not_end_training_early(
    undisturbed: Scenario, forks: Forks, tmp_path: Path
) -> None:
    """Shell scripts start background processes with SIGINT ignored."""
    root = undisturbed.start(tmp_path / "artifacts")
    interrupted = Attempt(str(root), command_of(LONG), step=5, signals=(signal.SIGINT,))
    (ended,) = forks(replace(interrupted, ignoring=True))
    assert (ended.code, ended.steps) == (0, list(range(1, 13)))
    assert contents(Store(root).resolve(ended.out)) == undisturbed.whole


def test_a_checkpoint_that_fails_is_told_rather_than_the_interrupt(
    undisturbed: Scenario, forks: Forks, tmp_path: Path
) -> None:
    root = undisturbed.start(tmp_path / "artifacts")
    signals = (signal.SIGTERM,)
    (ended,) = forks(Attempt(str(root), command_of(LONG), step=5, signals=signals, full=True))
    assert (ended.code, ended.steps, ended.out) == (4, [1, 2, 3, 4, 5], "")
    assert ended.err.count("\n") == 1
    assert ".checkpoint-000000005.safetensors.part: No space left on device. " in ended.err
    assert check_goes_on(undisturbed, root) == 0


@SLOW
@pytest.mark.parametrize(
    ("number", "code", "line"),
    [(signal.SIGINT, 130, "numtok: interrupted\n"), (signal.SIGTERM, 143, "numtok: terminated\n")],
)
def test_an_interrupt_from_outside_is_answered_at_any_time(
    data: Path, tmp_path: Path, number: int, code: int, line: str
) -> None:
    config = tiny(steps=1500, batch=16, preset=DROPOUT, checkpoint_steps=500)
    undisturbed = traced(data, tmp_path, config)
    root = undisturbed.start(tmp_path / "artifacts")
    program = "import signal, sys; sys.path.insert(0, sys.argv.pop(1)); "
    # If the tests run in the background, processes that they start also ignore SIGINT.
    program += "signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "from numtok.cli.main import main; main()"
    command = [sys.executable, "-c", program, str(ROOT), "--store", str(root), *command_of(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        until = time.monotonic() + 60
        while not steps_kept(root) and time.monotonic() < until:
            time.sleep(0.01)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    kept = steps_kept(root)
    told = f"numtok: stopped at step {kept:,} of 1,500. To resume, run the same command again\n"
    assert (running.returncode, out, err.decode()) == (code, b"", told + line)
    assert 500 < kept < 1500  # the signal caused a checkpoint after the first one
    artifact, updates = undisturbed.train(root)
    assert updates[0].step > kept
    assert contents(artifact) == undisturbed.whole


if __name__ == "__main__":
    _serve()
