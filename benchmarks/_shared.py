"""Helpers of all benchmarks: tables, and the best time of several tries."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich import box
from rich.table import Table


def table(title: str, texts: Sequence[str], figures: Sequence[str], **more: str) -> Table:
    """Return an empty table, with columns of text on the left and of numbers on the right."""
    # Without lines between columns, nine columns of numbers fit into 80 characters.
    made = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0), **more)  # type: ignore[arg-type]
    for heading in texts:
        made.add_column(heading, overflow="fold")
    for heading in figures:
        made.add_column(heading, justify="right")
    return made


def best(
    work: Callable[[], Any], tries: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the shortest of several tries, in seconds of a clock."""
    seconds = []
    for _ in range(tries):
        started = clock()
        work()
        seconds.append(clock() - started)
    return min(seconds)
