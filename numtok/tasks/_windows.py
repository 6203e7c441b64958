"""Stretches of time for splits, apart from each other, and the windows within each.

A split owns a part of the time, in the order train, validation, others, test; between two parts
lies a gap. A window is a number of steps ``every`` hours apart, all of which are there and in one
part, so no time is in windows of two splits.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.tasks.base import SHARES, Split

_ORDER = {"train": 0, "validation": 1, "test": 3}  # others are between the last two


class Part(NamedTuple):
    """The times ``begin <= time < end`` of a field, by index."""

    begin: int
    end: int


def parts(hours: NDArray[np.int64], splits: Sequence[Split], gap: int) -> dict[str, Part]:
    """The part of each split, in the order of time, by its share of what the gaps leave.

    The last hour of a part and the first of the next are more than ``gap`` hours apart. All parts
    are empty where the gaps leave nothing.

    >>> splits = [Split("test", 10, 0, SHARES // 4), Split("train", 30, SHARES // 4, SHARES)]
    >>> parts(np.arange(100), splits, 20)
    {'train': Part(begin=0, end=60), 'test': Part(begin=80, end=100)}
    """
    step = resolution(hours)
    between = -(-gap // step)
    usable = max(0, len(hours) - between * (len(splits) - 1))
    found, done = {}, 0
    ordered = sorted(splits, key=lambda split: (_ORDER.get(split.name, 2), split.name))
    for number, split in enumerate(ordered):
        share, begin = split.end - split.begin, number * between
        ends = (usable * place // SHARES for place in (done, done + share))
        found[split.name] = Part(*(begin + end for end in ends))
        done += share
    return found


def resolution(hours: NDArray[np.int64]) -> int:
    """How many hours two neighbouring times are apart, at least; 1 for a single one."""
    return int(np.diff(hours).min(initial=hours[-1] - hours[0] or 1))


def starts(hours: NDArray[np.int64], part: Part, steps: int, every: int) -> NDArray[np.int64]:
    """The hours [n], rising, at which a window of so many steps can begin within a part.

    >>> starts(np.array([0, 1, 2, 3, 6, 7, 8, 9]), Part(0, 8), 2, 3).tolist()  # 4 and 5 are missing
    [0, 3, 6]
    """
    mine = hours[part.begin : part.end]
    if not len(mine):
        return mine
    there = np.zeros(int(mine[-1] - mine[0]) + 1 + (steps - 1) * every, np.bool_)
    there[mine - mine[0]] = True
    possible = there[mine - mine[0]]
    for k in range(1, steps):
        possible &= there[mine - mine[0] + k * every]
    found: NDArray[np.int64] = mine[possible]
    return found
