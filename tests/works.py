"""Work for processes of an engine, in its own module because each process imports it at start."""

import os
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from numtok.errors import DataError


@dataclass(frozen=True)
class Unpickled:
    """Work that shows how often it was sent to a process: each copy has its own time."""

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
    """Return the working folder of a process, a variable, and the content of a file there."""
    return os.getcwd(), os.environ.get(name), Path("input").read_text()


def divided(unit: int) -> float:
    return 1 / unit
