"""Make the file operations of numtok fail, one at a time.

``Faults`` replaces ``files.system``. It counts the operations, records their names, and applies the
plan at the chosen one. In this process::

    with installed(Plan("eio", at=17)) as faults: ...

In another process, which the plan may kill, including its spawned workers::

    python -m tests.faults kill@17 -- numtok encode ...
    python -m tests.faults worker:torn@3 -- tests.fakestage FOLDER

    python -m tests.faults kill@1 kill@2 -- tests.fakestage FOLDER

The last command runs the program under each plan, in FOLDER/PLAN, and prints the exit codes as
JSON. Its runs are forked from a process that has imported the program: a fork takes milliseconds, a
start takes a second.

A plan is ``[worker:]KIND[@N[+]]``. It applies to the N-th operation of the main process or of each
worker; with ``+``, also to all later ones. Kinds:

    trace      do nothing but count
    eio        the operation fails with EIO (a close closes, then fails)
    enospc     the same with ENOSPC
    erofs      an operation that changes a file or folder fails with EROFS
    short      a read or write transfers only half of the requested bytes
    torn       half of a write is done, then it fails with ENOSPC
    kill       SIGKILL just before the operation
    killtorn   half of a write is done, then SIGKILL

The environment variable NUMTOK_TRACE names a file that receives the operations, one per line:
``main write``.
"""

import errno
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, final

from numtok import files
from numtok.store.provenance import provenance

_PLAN, _TRACE = "NUMTOK_FAULTS", "NUMTOK_TRACE"
_ERRNO = {
    "eio": errno.EIO,
    "enospc": errno.ENOSPC,
    "erofs": errno.EROFS,
    "torn": errno.ENOSPC,
}
_CHANGES = ("open_write", "open_lock", "mkdir", "rename", "unlink", "rmdir")


@dataclass(frozen=True)
class Plan:
    """A kind of fault and the operation at which it happens; ``at`` counts from 1."""

    kind: str
    at: int = 0
    onward: bool = False
    who: str = "main"

    @classmethod
    def parse(cls, text: str) -> "Plan":
        who, _, rest = text.rpartition(":")
        kind, _, where = rest.partition("@")
        return cls(kind, int(where.rstrip("+") or 0), where.endswith("+"), who or "main")

    def applies_to(self, name: str) -> bool:
        """Return whether this kind of fault applies to an operation of that name."""
        if self.kind in ("torn", "killtorn"):
            return name == "write"
        if self.kind == "erofs":
            return name in _CHANGES
        return self.kind != "short" or name in ("read", "read_at", "write")


@final
@dataclass
class Faults:
    """A substitute for ``files.system``; ``trace`` holds the names of the operations so far."""

    plan: Plan
    who: str = "main"
    trace: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(files.FileSystem(), name)

        def call(*arguments: Any) -> Any:
            return self._step(name, operation, arguments)

        return call

    @property
    def reached(self) -> bool:
        """True if the planned operation was reached."""
        at = self.plan.at
        return 0 < at <= len(self.trace) and self.plan.applies_to(self.trace[at - 1])

    def _step(self, name: str, operation: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        self.trace.append(name)
        if _TRACE in os.environ:
            with open(os.environ[_TRACE], "a", encoding="ascii") as log:
                log.write(f"{self.who} {name}\n")
        now, plan = len(self.trace), self.plan
        due = now == plan.at or (plan.onward and now > plan.at > 0)
        if not due or plan.who != self.who or not plan.applies_to(name):
            return operation(*arguments)
        if plan.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "write" and plan.kind in ("short", "torn", "killtorn"):
            half = memoryview(arguments[1])
            done = os.write(arguments[0], half[: max(1, len(half) // 2)])
            if plan.kind == "short":
                return done
            if plan.kind == "killtorn":
                os.kill(os.getpid(), signal.SIGKILL)
        if plan.kind == "short":
            fd, size, *offset = arguments
            return operation(fd, max(1, size // 2), *offset)
        if name == "close":
            operation(*arguments)
        path = [str(one) for one in arguments if isinstance(one, Path)][:1]
        number = _ERRNO[plan.kind]
        raise OSError(number, os.strerror(number), *path)


@contextmanager
def installed(plan: Plan, who: str = "main") -> Iterator[Faults]:
    """Make ``files.system`` fail as planned within the block."""
    real, faults = files.system, Faults(plan, who)
    files.system = cast(files.FileSystem, faults)
    try:
        yield faults
    finally:
        files.system = real


def points(plan_kind: str, trace: Sequence[str]) -> list[int]:
    """Return the operations of a traced run, counted from 1, to which a kind of fault applies."""
    plan = Plan(plan_kind)
    return [at for at, name in enumerate(trace, 1) if plan.applies_to(name)]


def sample(plan_kind: str, trace: Sequence[str], most: int, every: bool = False) -> list[int]:
    """Return up to ``most`` evenly spaced points, with an offset that depends on the kind.

    With ``every``, add the middle point of each operation that these points miss.
    """
    places = points(plan_kind, trace)
    apart = max(1, len(places) // most)
    found = places[sum(plan_kind.encode()) % apart :: apart][:most]
    struck = {trace[at - 1] for at in found}
    for name in sorted({trace[at - 1] for at in places} - struck) if every else []:
        alike = [at for at in places if trace[at - 1] == name]
        found.append(alike[len(alike) // 2])
    return sorted(found)


def _launch() -> None:
    dashes = sys.argv.index("--")
    plans, (program, *arguments) = sys.argv[1:dashes], sys.argv[dashes + 1 :]
    module = importlib.import_module("numtok.cli.main" if program == "numtok" else program)
    if len(plans) > 1:
        (folder,) = arguments
        provenance()  # runs once per process, and not through files.system
        print(json.dumps([_forked(plan, module, [program, f"{folder}/{plan}"]) for plan in plans]))
        return
    # Spawned workers import this file again, as __mp_main__, and read the plan from there.
    os.environ[_PLAN] = plans[0]
    sys.argv = [program, *arguments]
    with installed(Plan.parse(plans[0])):
        module.main()


def _forked(plan: str, module: Any, arguments: list[str]) -> int:
    """Run the program under the plan; return its exit code, negative if a signal ended it."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            sys.argv = arguments
            with installed(Plan.parse(plan)):
                module.main()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    _launch()
elif __name__ == "__mp_main__" and _PLAN in os.environ:
    files.system = cast(files.FileSystem, Faults(Plan.parse(os.environ[_PLAN]), "worker"))
