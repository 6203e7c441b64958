"""Works for processes of an engine, in a module of their own: a process imports it as it starts."""

import os
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from numtok.errors import DataError


@dataclass(frozen=True)
class Unpickled:
    """A work that knows how often it came to a process."""

    factor: int
    content: bytes = b""

    @cached_property
    def copy(self) -> float:
        return time.monotonic()

    def __call__(self, unit: int) -> tuple[int, float, int]:
        if unit < 0:
            raise DataError(f"unit {unit} cannot be")
        if unit == 13:
            os._exit(1)
        return os.getpid(), self.copy, self.factor * unit + len(self.content)


def late(unit: int) -> int:
    time.sleep(0.2 if unit == 0 else 0)
    return unit


def seen(name: str) -> tuple[str, str | None, str]:
    """Where a process stands, and what it reads there."""
    return os.getcwd(), os.environ.get(name), Path("input").read_text()


def divided(unit: int) -> float:
    return 1 / unit
