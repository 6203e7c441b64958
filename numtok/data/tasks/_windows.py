"""Stretches of time for splits, apart from each other, and the windows within each.

A split owns a part of the time, in the order train, validation, others, test; between two parts
lies a gap. A window is a number of steps ``every`` hours apart, all of which are there and in one
part, so no time is in windows of two splits.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.data.tasks.base import SHARES, TaskSplit

_ORDER = {"train": 0, "validation": 1, "test": 3}  # others are between the last two


class TimeRange(NamedTuple):
    """The times ``begin <= time < end`` of a field, by index."""

    begin: int
    end: int


def parts(hours: NDArray[np.int64], splits: Sequence[TaskSplit], gap: int) -> dict[str, TimeRange]:
    """The part of each split, in the order of time, by its share of what the gaps leave.

    The last hour of a part and the first of the next are more than ``gap`` hours apart, and no
    times between them are left out that need not be. All parts are empty where the gaps leave
    nothing.

    >>> fourth = SHARES // 4
    >>> splits = [TaskSplit("test", 10, 0, fourth), TaskSplit("train", 30, fourth, SHARES)]
    >>> parts(np.arange(100), splits, 20)
    {'train': TimeRange(begin=0, end=60), 'test': TimeRange(begin=80, end=100)}
    """
    ordered = sorted(splits, key=lambda split: (_ORDER.get(split.name, 2), split.name))
    shares = list(accumulate(split.end - split.begin for split in ordered))

    def laid(usable: int) -> list[TimeRange]:
        """The parts if they have so many times in all; the last ends too late where that is too
        many."""
        found, begin, done = [], 0, 0
        for place in shares:
            end = begin + usable * place // SHARES - done
            found.append(TimeRange(begin, end))
            done += end - begin
            last = hours[min(max(end, begin + 1), len(hours)) - 1]
            begin = int(np.searchsorted(hours, last + gap, "right"))
        return found

    # How many times the gaps take depends on where they are, as hours may be missing in them.
    counts = range(len(hours) + 1)
    usable = bisect_right(counts, len(hours), key=lambda count: laid(count)[-1].end) - 1
    return {split.name: part for split, part in zip(ordered, laid(usable), strict=True)}


def resolution(hours: NDArray[np.int64]) -> int:
    """How far apart neighbouring times (int64[n], in hours) are, at least; 1 for a single one."""
    return int(np.diff(hours).min(initial=hours[-1] - hours[0] or 1))


def starts(
    hours: NDArray[np.int64], part: TimeRange, window: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The hours [n], rising, at which a window can begin within a part; ``window`` [k] are the
    hours from there on, 0 among them, at which there must be a time, rising.

    >>> there = np.array([0, 1, 2, 3, 6, 7, 8, 9])  # 4 and 5 are missing
    >>> starts(there, TimeRange(0, 8), np.array([0, 3])).tolist()
    [0, 3, 6]
    >>> starts(there, TimeRange(0, 8), np.array([-1, 0])).tolist()
    [1, 2, 3, 7, 8, 9]
    """
    mine = hours[part.begin : part.end]
    possible = np.ones(len(mine), np.bool_)
    for offset in window.tolist():
        possible &= np.isin(mine + offset, mine, assume_unique=True)
    found: NDArray[np.int64] = mine[possible]
    return found
