"""A promise of numtok, how it is tested, and what a run of its tests counts.

A case is a pure function of the promise, a seed and the number of the case, so that each can be
repeated alone.
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
_FOLDERS = re.compile(r'(?<=File ")[^"]*?(?=(?:numtok|site-packages)/)')  # of one machine
_MOST = 10  # broken cases of a run, which then ends


class Lost(AssertionError):
    """Raised by a case if finished work is gone or damaged. Other assertions mean wrong results."""


class Crashed(AssertionError):
    """Raised by a case if a command ended with a traceback."""


class Broken(NamedTuple):
    """A case that failed: its number, lost, wrong or traceback, and what was found."""

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
    """The checks of a run, and the cases that failed."""

    done: int = 0
    broken: list[Broken] = field(default_factory=list)


@dataclass(frozen=True)
class Promise:
    """A promise and its test.

    says, how
        Sentences for the page: what is promised, and how it is tested.
    aim, unit
        The number of checks to reach over all runs, and what is counted.
    world
        Sets up what the cases need in an empty folder. Promises may share a world.
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
        """Run cases, at least one, until the seconds are over."""
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
    """The worlds of a run, each set up once; folders are in memory if there is room."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Any, Any] = {}

    def of(self, promise: Promise) -> Any:
        """Return the world of a promise."""
        if promise.world not in self._known:
            has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 4 << 30
            made = tempfile.TemporaryDirectory(
                prefix="trust-", dir=_MEMORY if has_room else None, ignore_cleanup_errors=True
            )
            folder = Path(self.enter_context(made))
            self._known[promise.world] = self.enter_context(promise.world(folder))
        return self._known[promise.world]
