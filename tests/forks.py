"""numtok in processes forked from one that is warm: that takes milliseconds, where a start takes
seconds.

``python -m tests.forks FILE`` is the other end: it runs the command lines of FILE (JSON), one after
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from numtok.cli import main
from numtok.store.provenance import provenance
from tests.chain import there

ROOT = Path(__file__).resolve().parents[1]
_SPARE = 4 << 30  # bytes of address space that a run may take beyond those of the warm process


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code (minus the signal that ended it), what it printed, its time,
    and the memory that it had at most."""

    code: int
    out: str
    err: str
    seconds: float
    mebibytes: float


@contextmanager
def serving(*program: str, **variables: str) -> Iterator[Callable[[Any], Any]]:
    """Run a module of the tests, which answers each request with a line; both are JSON."""
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
    """Runs numtok in a folder, with a limit on its seconds.

    ``until`` is a pattern of files in the folder: as soon as there is one, the run is killed.
    """

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        self._ask = ask

    def __call__(self, folder: Path, *command: str, limit: float = 10.0, until: str = "") -> Ended:
        return Ended(**self._ask([str(folder), command, limit, until]))


@contextmanager
def forking(
    folder: Path, warm: Sequence[Sequence[str]], build: Sequence[Sequence[str]] = ()
) -> Iterator[Forks]:
    """The warm process, which has run some command lines in ``folder``: first those that ``build``
    something there, which have to end well."""
    script = folder / "warm.json"
    script.write_text(json.dumps([build, warm]))
    with serving("tests.forks", str(script), NUMTOK_THREADS="1") as ask:
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
            folder, *how = json.loads(line)
            print(json.dumps(asdict(_forked(Path(folder), *how))), file=out, flush=True)


def _code(command: Sequence[str]) -> object:
    sys.argv = ["numtok", "-q", *command]
    try:
        main.main()
    except SystemExit as stop:
        return stop.code
    return 0


def _forked(folder: Path, command: Sequence[str], limit: float, until: str) -> Ended:
    streams = [folder / "stdout", folder / "stderr"]
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        _run(folder, command, streams)
    while (ended := os.wait4(child, os.WNOHANG))[0] == 0:
        if time.monotonic() - begin > limit or (until and any(folder.glob(until))):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    seconds = time.monotonic() - begin
    out, err = (path.read_text("utf-8", "replace") for path in streams)
    code = os.waitstatus_to_exitcode(ended[1])
    return Ended(code, out, err, seconds, ended[2].ru_maxrss / 1024)


def _run(folder: Path, command: Sequence[str], streams: Sequence[Path]) -> NoReturn:
    code = 70
    try:
        for fd, path in enumerate(streams, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), fd)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + _SPARE, taken + _SPARE))
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["numtok", "-q", *command]
        main.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
