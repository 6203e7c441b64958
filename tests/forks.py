"""Run numtok in processes forked from a warm one: a fork takes milliseconds, a start seconds.

``python -m tests.forks FILE`` is the server. It runs the command lines of FILE (JSON), one after
the other, and then forks for each line of standard input.
"""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import psutil

from numtok.cli import main
from numtok.store.provenance import provenance
from tests.chain import there
from tests.faults import Plan, installed

ROOT = Path(__file__).resolve().parents[1]
_SPARE = 4 << 30  # bytes of data that a run may use beyond those of the warm process


@dataclass(frozen=True)
class Run:
    """One run of numtok in a folder, and its fault.

    It starts after ``delay`` seconds, under ``plan``, a plan of ``tests.faults``. ``after`` seconds
    into the run, it receives the ``signal``; with ``worker``, one of its worker processes does.
    ``until`` is a file pattern: as soon as a file in the folder matches, the run is killed.
    """

    folder: str
    command: tuple[str, ...]
    limit: float = 10.0
    until: str = ""
    plan: str = "trace"
    delay: float = 0.0
    signal: int = 0
    after: float = 0.0
    worker: bool = False


@dataclass(frozen=True)
class Ended:
    """How a run ended: exit code (negative for a signal), output, seconds and peak memory, and file
    operations unless it was killed."""

    code: int
    out: str
    err: str
    seconds: float
    mebibytes: float
    trace: list[str]


@contextmanager
def serving(*program: str, **variables: str) -> Iterator[Callable[[Any], Any]]:
    """Run a test module as a server that answers each JSON request with one line of JSON."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMTOK_STORE", "COLUMNS")}
    with subprocess.Popen(
        [sys.executable, "-m", *program],
        cwd=ROOT,
        env=kept | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:

        def ask(request: Any) -> Any:
            print(json.dumps(request), file=server.stdin, flush=True)
            return json.loads(there(server.stdout).readline())

        yield ask


class Forks:
    """Runs numtok in folders, each run with a time limit."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self._ask = ask

    def together(self, *runs: Run) -> list[Ended]:
        """Run all at the same time."""
        return [Ended(**ended) for ended in self._ask([asdict(run) for run in runs])]

    def __call__(self, folder: Path, *command: str, limit: float = 10.0, until: str = "") -> Ended:
        (ended,) = self.together(Run(str(folder), command, limit, until))
        return ended


@contextmanager
def forking(
    folder: Path,
    warm: Sequence[Sequence[str]],
    build: Sequence[Sequence[str]] = (),
    **variables: str,
) -> Iterator[Forks]:
    """Provide a warm process that has run command lines in ``folder``: first those of ``build``,
    which must succeed, then those of ``warm``."""
    script = folder / "warm.json"
    script.write_text(json.dumps([build, warm]))
    with serving("tests.forks", str(script), NUMTOK_THREADS="1", **variables) as ask:
        yield Forks(ask)


def _serve(script: Path) -> None:
    os.fsync = lambda fd: None
    os.chdir(script.parent)
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    build, warm = json.loads(script.read_text())
    for command in build:
        assert _code(command) == 0, command
    for command in warm:
        _code(command)
    provenance()
    gc.freeze()
    with os.fdopen(answers, "w") as out:
        for line in sys.stdin:
            runs = [Run(**run) for run in json.loads(line)]
            # The locale here may encode paths differently than in the client.
            runs = [replace(run, folder=os.fsdecode(run.folder.encode())) for run in runs]
            print(json.dumps(_ended(runs)), file=out, flush=True)


def _code(command: Sequence[str]) -> object:
    sys.argv = ["numtok", "-q", *command]
    try:
        main.main()
    except SystemExit as stop:
        return stop.code
    return 0


def _ended(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Run all at the same time, and return how each ended."""
    begin = time.monotonic()
    children = [_Child(run, index) for index, run in enumerate(runs)]
    while not all([child.ended(time.monotonic() - begin) for child in children]):
        time.sleep(0.002)
    return [asdict(there(child.found)) for child in children]


class _Child:
    """A run, which is forked after its delay."""

    def __init__(self, run: Run, index: int) -> None:
        self.run = run
        self.found: Ended | None = None
        self._streams = [Path(run.folder, f"{name}-{index}") for name in ("out", "err", "trace")]
        self._pid = 0

    def ended(self, now: float) -> bool:
        run, seconds = self.run, now - self.run.delay
        if self.found is not None or seconds < 0:
            return self.found is not None
        if not self._pid:
            # Interrupts are blocked until the child is about to run numtok.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            self._pid = os.fork()
            if not self._pid:
                _run(run, self._streams)
        pid, status, usage = os.wait4(self._pid, os.WNOHANG)
        if pid:
            out, err, trace = (
                path.read_text("utf-8", "replace") if path.exists() else ""
                for path in self._streams
            )
            code, mebibytes = os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024
            self.found = Ended(code, out, err, seconds, mebibytes, trace.split())
            for path in self._streams:
                path.unlink(missing_ok=True)
        elif seconds > run.limit or (run.until and any(Path(run.folder).glob(run.until))):
            os.kill(self._pid, signal.SIGKILL)
        elif run.signal and seconds > run.after:
            for pid in (_workers(self._pid) if run.worker else [self._pid])[:1]:
                os.kill(pid, run.signal)
                self.run = replace(run, signal=0)
        return self.found is not None


def _workers(pid: int) -> list[int]:
    """Return the worker processes of a command, without Python's resource tracker: if that is
    killed, Python starts another one, which prints a traceback for each name it does not know."""
    return [child.pid for child in psutil.Process(pid).children() if not _is_tracker(child)]


def _is_tracker(child: psutil.Process) -> bool:
    try:
        return "resource_tracker" in " ".join(child.cmdline())
    except psutil.Error:  # it has just ended
        return False


def _run(run: Run, streams: Sequence[Path]) -> NoReturn:
    code = 70
    try:
        for fd, path in enumerate(streams[:2], 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), fd)
        # Limit data, not address space: the engine that draws figures reserves a terabyte of that.
        taken = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (taken + _SPARE, taken + _SPARE))
        os.chdir(run.folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        sys.argv = ["numtok", "-q", *run.command]
        with installed(Plan.parse(run.plan)) as faults:
            try:
                main.main()
            finally:
                streams[2].write_text("\n".join(faults.trace))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
