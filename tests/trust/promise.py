"""Promises of numtok: their tests, and the counts of a run.

A case is a pure function of the promise, a seed and the case number, so every case can be repeated
in isolation.
"""

import itertools
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

_MEMORY = Path("/dev/shm")
_FOLDERS = re.compile(r'(?<=File ")[^"]*?(?=(?:numtok|lib/python[0-9.]+)/)')  # local paths
_MOST = 10  # a run ends after this many broken cases


class Lost(AssertionError):
    """Raised by a case if finished work is gone or damaged. Other assertions mean wrong results."""


class Crashed(AssertionError):
    """Raised by a case if a command ended with a traceback."""


class Broken(NamedTuple):
    """A failed case: its number, its kind (lost, wrong or traceback) and the error message."""

    case: int
    kind: str
    what: str

    @classmethod
    def of(cls, number: int, error: Exception) -> "Broken":
        if isinstance(error, AssertionError) and not isinstance(error, Crashed):
            return cls(number, "lost" if isinstance(error, Lost) else "wrong", str(error)[:1500])
        what = _FOLDERS.sub("", str(error)) if isinstance(error, Crashed) else repr(error)
        return cls(number, "traceback", what[-1500:])


@dataclass
class Count:
    """The number of checks in a run, and the failed cases."""

    done: int = 0
    broken: list[Broken] = field(default_factory=list)


@dataclass(frozen=True)
class Promise:
    """A promise and its test.

    says, how
        Sentences for the page: what is promised, and how it is tested.
    aim, unit
        The target number of checks over all runs, and the noun for one check.
    world
        Sets up the shared state of the cases in an empty folder. Promises may share a world.
    case
        Runs one case, given the world and a generator, and returns the number of its checks.
        Raises AssertionError if the promise is broken.
    """

    name: str
    says: str
    how: str
    aim: int
    unit: str
    world: Callable[[Path], AbstractContextManager[Any]]
    case: Callable[[Any, random.Random], int]

    def run(
        self, seed: int, seconds: float, worlds: "Worlds", numbers: Iterable[int] | None = None
    ) -> Count:
        """Run cases until the seconds are over, but at least one."""
        count, world = Count(), worlds.of(self)
        end = time.monotonic() + seconds
        for number in itertools.count() if numbers is None else numbers:
            try:
                count.done += self.case(world, random.Random(f"{self.name} {seed} {number}"))
            except Exception as error:
                count.broken.append(Broken.of(number, error))
            if time.monotonic() > end or len(count.broken) >= _MOST:
                break
        return count


class Worlds(ExitStack):
    """The worlds of a run. Each is set up once, in a folder in memory if there is room."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Any, Any] = {}

    def of(self, promise: Promise) -> Any:
        """Return the world of a promise, and set it up if necessary."""
        if promise.world not in self._known:
            has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 4 << 30
            made = tempfile.TemporaryDirectory(
                prefix="trust-", dir=_MEMORY if has_room else None, ignore_cleanup_errors=True
            )
            folder = Path(self.enter_context(made))
            self._known[promise.world] = self.enter_context(promise.world(folder))
        return self._known[promise.world]
