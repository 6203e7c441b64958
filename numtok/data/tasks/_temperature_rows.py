"""Rows of ``temperature``: their windows and stations, reading and formatting.

The rows of a split are spread evenly over its windows. The windows are divided into as many equal
parts as there are rows, and each row samples a window from its own part (rows share windows if
there are fewer windows than rows). Blocks of 32 consecutive rows are adjacent in time, so they are
read together; the order of the blocks is random.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from math import cos, sin, tau
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.data.reading.split_rule import TRAIN
from numtok.data.tasks._draws import random_order, uniforms_of_rows
from numtok.data.tasks.base import SHARES, Made, TaskSplit, TextTask
from numtok.data.weather.field import STEPS, Field
from numtok.setting_values import Range

_ORDER = {"train": 0, "validation": 1, "test": 3}  # other splits are before test
_order = lru_cache(random_order)  # called for each row


class TimeRange(NamedTuple):
    """Indices ``begin <= index < end`` of consecutive times of a field."""

    begin: int
    end: int


def parts(hours: NDArray[np.int64], splits: Sequence[TaskSplit], gap: int) -> dict[str, TimeRange]:
    """Divide the times ``hours`` [n] among splits in proportion to their shares, with gaps.

    Consecutive parts are more than ``gap`` hours apart, and no more times than necessary are
    skipped. All parts are empty if no times remain between the gaps.

    >>> fourth = SHARES // 4
    >>> splits = [TaskSplit("test", 10, 0, fourth), TaskSplit("train", 30, fourth, SHARES)]
    >>> parts(np.arange(100), splits, 20)
    {'train': TimeRange(begin=0, end=60), 'test': TimeRange(begin=80, end=100)}
    """
    ordered = sorted(splits, key=lambda split: (_ORDER.get(split.name, 2), split.name))
    shares = list(accumulate(split.end - split.begin for split in ordered))

    def laid(usable: int) -> list[TimeRange]:
        """Lay out parts with ``usable`` times in all; the last ends too late if there are fewer."""
        ranges, begin, done = [], 0, 0
        for share in shares:
            end = begin + usable * share // SHARES - done
            ranges.append(TimeRange(begin, end))
            done += end - begin
            last = hours[min(max(end, begin + 1), len(hours)) - 1]
            begin = int(np.searchsorted(hours, last + gap, "right"))
        return ranges

    # The number of times in a gap depends on its position, because hours may be missing in it.
    counts = range(len(hours) + 1)
    usable = bisect_right(counts, len(hours), key=lambda count: laid(count)[-1].end) - 1
    return {split.name: part for split, part in zip(ordered, laid(usable), strict=True)}


def resolution(hours: NDArray[np.int64]) -> int:
    """Return the smallest step between times (int64[n]), in hours; 1 if there is only one time."""
    return int(np.diff(hours).min(initial=hours[-1] - hours[0] or 1))


def starts(
    hours: NDArray[np.int64], part: TimeRange, window: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the increasing hours [n] at which a window can start within a part.

    ``window`` [k] contains the increasing offsets in hours, including 0, at which the part must
    have a time.

    >>> hours = np.array([0, 1, 2, 3, 6, 7, 8, 9])  # 4 and 5 are missing
    >>> starts(hours, TimeRange(0, 8), np.array([0, 3])).tolist()
    [0, 3, 6]
    >>> starts(hours, TimeRange(0, 8), np.array([-1, 0])).tolist()
    [1, 2, 3, 7, 8, 9]
    """
    within = hours[part.begin : part.end]
    possible = np.ones(len(within), np.bool_)
    for offset in window.tolist():
        possible &= np.isin(within + offset, within, assume_unique=True)
    first_hours: NDArray[np.int64] = within[possible]
    return first_hours


_BLOCK = 32  # rows


class Climate(NamedTuple):
    """Statistics of the train split.

    by_month
        True if each month has separate seasons.
    sums, counts
        Sum of the standardized values [seasons, cells] and number of times [seasons] in each
        season (see :func:`seasons`).
    """

    mean: float
    deviation: float
    by_month: bool
    sums: NDArray[np.float64]
    counts: NDArray[np.float64]


def seasons(hours: NDArray[np.int64], by_month: bool) -> NDArray[np.int64]:
    """Return the season of each time (hours since 1970): its hour, or ``24 * month + hour``.

    >>> seasons(np.array([0, 25, 32 * 24 + 3]), by_month=True)  # the last in February
    array([ 0,  1, 27])
    """
    month = hours.astype("datetime64[h]").astype("datetime64[M]").astype(np.int64) % 12
    return hours % 24 + 24 * month * by_month


def step_offsets(days: int, every: int) -> NDArray[np.int64]:
    """Return the offsets in hours (int64[n]) of the times that are read for a row.

    These are the row's steps. For rows of one day, the step before them is also read, which is 24
    hours before the last step.

    >>> step_offsets(1, 6), step_offsets(2, 12)
    (array([-6,  0,  6, 12, 18]), array([ 0, 12, 24, 36]))
    """
    return every * np.arange(-1 if days == 1 else 0, days * 24 // every)


class Drawn(NamedTuple):
    """Sampled content of a row: its number of days, and indices of its times [n] and cells [m]."""

    days: int
    times: NDArray[np.int64]
    cells: NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class TemperatureRows(TextTask):
    """Task that generates the rows of ``temperature`` from a field.

    ``windows`` contains, for each split, the first hour and the number of days of its windows, in
    chronological order [w, 2].
    """

    unit_rows = 256

    field: Field
    stations: Range
    every: int
    places: int
    climate: Climate
    windows: Mapping[str, NDArray[np.int64]]

    @cached_property
    def has_climatology(self) -> bool:
        """True if a climatology can be computed for every row from the train split (for train
        rows, from the other days)."""
        climate = self.climate
        for split, windows in self.windows.items():
            targets = windows[:, 0] + windows[:, 1] * 24 - self.every
            least = climate.counts[np.unique(seasons(targets, climate.by_month))].min()
            if least < 1 + (split == TRAIN):
                return False
        return True

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        first = index * self.unit_rows
        numbers = range(first, first + self.rows_of(split, index))
        drawn = [self.drawn(seed, split, number) for number in numbers]
        read = zip(numbers, drawn, self._values(drawn), strict=True)
        lines = [self._line(split.name, number, row, values) for number, row, values in read]
        return Made("".join(lines).encode(), {})

    def drawn(self, seed: int, split: TaskSplit, number: int) -> Drawn:
        """Sample the window and the stations of row ``number`` of a split."""
        windows, rows = self.windows[split.name], split.rows
        index, many = _shuffled_index(seed, split, number), len(windows)
        window, rank = index * many // rows, 0
        if rows <= many:
            among = (index + 1) * many // rows - window
            (share,) = uniforms_of_rows(f"windows {split.name} {seed}", range(index, index + 1), 1)
            window += int(share[0] * among)
        else:
            rank = index - -(-window * rows // many)
        begin, days = windows[window].tolist()
        times = np.searchsorted(self.field.hours, begin + step_offsets(days, self.every))
        purpose = f"stations {split.name} {window} {seed}"
        ends = int(self.stations.low), int(self.stations.high)
        return Drawn(days, times, _StationSets(self.field.cells, *ends, purpose).at(rank))

    def _values(self, drawn: Sequence[Drawn]) -> list[NDArray[np.float64]]:
        """Read the standardized values [m, n] of each row's stations [m] at its steps [n].

        Each stored object is read once for all rows, and only one is held in memory.
        """
        field = self.field
        results = [np.empty((len(row.cells), len(row.times))) for row in drawn]
        pieces = np.unique(np.concatenate([row.times for row in drawn]) // STEPS)
        for begin in (pieces * STEPS).tolist():
            end = min(begin + STEPS, len(field.hours))
            values = (field.read(begin, end) - self.climate.mean) / self.climate.deviation
            for row, out in zip(drawn, results, strict=True):
                inside = np.flatnonzero((row.times >= begin) & (row.times < end))
                if len(inside):
                    out[:, inside] = values[np.ix_(row.times[inside] - begin, row.cells)].T
        return results

    def _line(self, split: str, number: int, drawn: Drawn, values: NDArray[np.float64]) -> str:
        """Format a row as a line of JSON; ``values`` [m, n] are the values at all times read."""
        field, first = self.field, values.shape[1] - drawn.days * 24 // self.every
        latitudes, longitudes = (
            np.deg2rad(axis[drawn.cells]) for axis in (field.latitudes, field.longitudes)
        )
        coords = np.column_stack([np.sin(latitudes), np.sin(longitudes), np.cos(longitudes)])
        start = ", ".join(self._words(np.array(_moment(int(field.hours[drawn.times[first]])))))
        places = ", ".join(f"[{', '.join(words)}]" for words in self._rows(coords))
        text = f"{{'description': {{'coords': [{places}], 'start': [{start}]}}, 'data': ["
        measured = self._rows(values[:, first:])
        spans, at = [], len(text)
        series = [f"[{', '.join(words)}]" for words in measured]
        for words, written in zip(measured, series, strict=True):
            at += len(written)
            spans.append(f"[{at - 1 - len(words[-1])},{at - 1}]")
            at += len(", ")
        text += ", ".join(series) + "]}"
        hour = int(field.hours[drawn.times[-1]])
        floors = ",".join(
            f'"{name}":[{",".join(self._words(floor))}]'
            for name, floor in self._floors(split, drawn, hour, values).items()
        )
        return (
            f'{{"id":"{split}-{number}","text":"{text}","targets":{{"t":[{",".join(spans)}]}},'
            f'"floors":{{"t":{{{floors}}}}},"group":{{"hour":{hour % 24},"days":{drawn.days}}},'
            f'"cluster":"{np.datetime64(hour, "h").astype("datetime64[D]")}"}}\n'
        )

    def _floors(
        self, split: str, drawn: Drawn, hour: int, values: NDArray[np.float64]
    ) -> dict[str, NDArray[np.float64]]:
        """Return baseline predictions [m] of the last of a row's values [m, n], by name."""
        floors = {"persistence": values[:, -2]}
        if (day := 24 // self.every) > 1:
            floors["daily-persistence"] = values[:, -1 - day]
        if self.has_climatology:
            season = int(seasons(np.array([hour]), self.climate.by_month)[0])
            total, count = self.climate.sums[season, drawn.cells], self.climate.counts[season]
            if split == TRAIN:  # exclude the row's own value
                total, count = total - values[:, -1], count - 1
            floors["climatology"] = total / count
        return floors

    def _rows(self, values: NDArray[np.float64]) -> list[list[str]]:
        """Format each row of values [m, n]."""
        words, width = self._words(values.ravel()), values.shape[1]
        return [words[k : k + width] for k in range(0, len(words), width)]

    def _words(self, values: NDArray[np.float64]) -> list[str]:
        """Format numbers [n] with 1 to ``places`` decimal places: ``0.25``, ``1.0``."""
        rounded = (np.round(values, self.places) + 0.0).tolist()  # no -0.0
        words = list(map(repr, rounded))
        if self.places > 4 and any("e" in word for word in words):  # such as 1e-05
            words = [f"{value:.{self.places}f}".rstrip("0") for value in rounded]
            words = [f"{word}0" if word.endswith(".") else word for word in words]
        return words


@lru_cache(maxsize=32)  # windows; a unit has rows of only a few
class _StationSets:
    """The distinct sets of ``low`` to ``high`` stations of one window, in sampling order.

    Rows request sets one after the other, so the number of the attempt of each distinct set is
    kept, from which the set is sampled again.
    """

    def __init__(self, cells: int, low: int, high: int, purpose: str) -> None:
        self._cells, self._low, self._high, self._purpose = cells, low, high, purpose
        self._attempts: list[int] = []
        self._keys: set[bytes] = set()
        self._tried = 0

    def at(self, rank: int) -> NDArray[np.int64]:
        """Return the set with this rank, counted from 0."""
        while (left := rank + 1 - len(self._attempts)) > 0:
            attempts = range(self._tried, self._tried + left)
            for attempt, cells in zip(attempts, self._drawn(attempts), strict=True):
                key = np.sort(cells).astype(np.int32).tobytes()
                if key not in self._keys:
                    self._keys.add(key)
                    self._attempts.append(attempt)
            self._tried = attempts.stop
        attempt = self._attempts[rank]
        (cells,) = self._drawn(range(attempt, attempt + 1))
        return cells

    def _drawn(self, attempts: range) -> Iterator[NDArray[np.int64]]:
        """Yield a set of cells in random order for each attempt, by a partial shuffle."""
        for drawn in uniforms_of_rows(self._purpose, attempts, 1 + self._high).T.tolist():
            moved: dict[int, int] = {}
            chosen = []
            for k in range(self._low + int(drawn[0] * (self._high - self._low + 1))):
                at = k + int(drawn[1 + k] * (self._cells - k))
                chosen.append(moved.get(at, at))
                moved[at] = moved.get(k, k)
            yield np.array(chosen, np.int64)


def _shuffled_index(seed: int, split: TaskSplit, number: int) -> int:
    """Return the index of a row in order of time; blocks of rows are shuffled."""
    blocks = split.rows // _BLOCK  # an incomplete last block is not shuffled
    block, within = divmod(number, _BLOCK)
    if block == blocks:
        return number
    return int(_order(f"blocks {split.name} {seed}", blocks)[block]) * _BLOCK + within


def _moment(hour: int) -> tuple[float, float, float, float]:
    """Return sine and cosine of the time of day and of the year, for an hour since 1970."""
    time = np.datetime64(hour, "h")
    since = int((time - time.astype("datetime64[Y]")).astype(np.int64))
    day, year = tau * (hour % 24) / 24, tau * since / (365 * 24)
    return sin(day), cos(day), sin(year), cos(year)
