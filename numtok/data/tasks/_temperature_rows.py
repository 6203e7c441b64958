"""The rows of ``temperature``: which window and stations each has, what is read, how it is written.

Rows of a split are spread evenly over its windows: the n-th of N owns the n-th of N equal parts
of them, and takes one at random (or, where there are fewer windows than rows, shares one). They
are numbered so that 32 of them in a row are next to each other in time, which are read together,
and such blocks are in random order.
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
from numtok.registry import Range

_ORDER = {"train": 0, "validation": 1, "test": 3}  # others are between the last two
_order = lru_cache(random_order)  # asked for row by row


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
        """Lay the parts out for ``usable`` times together; the last ends too late if there are
        fewer."""
        found, begin, done = [], 0, 0
        for place in shares:
            end = begin + usable * place // SHARES - done
            found.append(TimeRange(begin, end))
            done += end - begin
            last = hours[min(max(end, begin + 1), len(hours)) - 1]
            begin = int(np.searchsorted(hours, last + gap, "right"))
        return found

    # The number of times in a gap depends on its place, because hours may be missing in it.
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


_BLOCK = 32  # rows


class Climate(NamedTuple):
    """What is known of the train split.

    by_month
        Whether the hours of each month are apart from those of others.
    sums, counts
        Of the standardised values of each season (:func:`seasons`), [seasons, cells] and [seasons].
    """

    mean: float
    deviation: float
    by_month: bool
    sums: NDArray[np.float64]
    counts: NDArray[np.float64]


def seasons(hours: NDArray[np.int64], by_month: bool) -> NDArray[np.int64]:
    """The season of each hour since 1970: the hour of the day, or ``24 * month + hour``.

    >>> seasons(np.array([0, 25, 32 * 24 + 3]), by_month=True)  # the last in February
    array([ 0,  1, 27])
    """
    month = hours.astype("datetime64[h]").astype("datetime64[M]").astype(np.int64) % 12
    return hours % 24 + 24 * month * by_month


def step_offsets(days: int, every: int) -> NDArray[np.int64]:
    """int64[n]: the hours from its first step on that a row is read at: those of its steps, and of
    a row of one day the step before it, which is 24 hours before the last.

    >>> step_offsets(1, 6), step_offsets(2, 12)
    (array([-6,  0,  6, 12, 18]), array([ 0, 12, 24, 36]))
    """
    return every * np.arange(-1 if days == 1 else 0, days * 24 // every)


class Drawn(NamedTuple):
    """What a row is of: the times [n] that are read for it (:func:`step_offsets`), by index, and
    its cells [m]."""

    days: int
    times: NDArray[np.int64]
    cells: NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class TemperatureRows(TextTask):
    """``windows`` are those of each split, [w, 2]: the first hour and the number of days, in the
    order of time."""

    unit_rows = 256

    field: Field
    stations: Range
    every: int
    places: int
    climate: Climate
    windows: Mapping[str, NDArray[np.int64]]

    @cached_property
    def has_climatology(self) -> bool:
        """Whether the train split says for every row what is usual, for its own without their
        day."""
        climate = self.climate
        for split, windows in self.windows.items():
            asked = windows[:, 0] + windows[:, 1] * 24 - self.every
            least = climate.counts[np.unique(seasons(asked, climate.by_month))].min()
            if least < 1 + (split == TRAIN):
                return False
        return True

    def unit(self, seed: int, split: TaskSplit, index: int) -> Made:
        first = index * self.unit_rows
        numbers = range(first, first + self.rows_of(split, index))
        drawn = [self.drawn(seed, split, number) for number in numbers]
        read = zip(numbers, drawn, self._values(drawn), strict=True)
        lines = [self._line(split.name, number, one, values) for number, one, values in read]
        return Made("".join(lines).encode(), {})

    def drawn(self, seed: int, split: TaskSplit, number: int) -> Drawn:
        """The window and the stations of one row."""
        windows, rows = self.windows[split.name], split.rows
        place, many = _place(seed, split, number), len(windows)
        window, rank = place * many // rows, 0
        if rows <= many:
            among = (place + 1) * many // rows - window
            (share,) = uniforms_of_rows(f"windows {split.name} {seed}", range(place, place + 1), 1)
            window += int(share[0] * among)
        else:
            rank = place - -(-window * rows // many)
        begin, days = windows[window].tolist()
        times = np.searchsorted(self.field.hours, begin + step_offsets(days, self.every))
        purpose = f"stations {split.name} {window} {seed}"
        ends = int(self.stations.low), int(self.stations.high)
        return Drawn(days, times, _StationSets(self.field.cells, *ends, purpose).at(rank))

    def _values(self, drawn: Sequence[Drawn]) -> list[NDArray[np.float64]]:
        """What the stations [m] of each row measure at its steps [n]: [m, n], standardised.

        Whatever is stored together is read once, for all rows, and no more than that is held.
        """
        field = self.field
        found = [np.empty((len(one.cells), len(one.times))) for one in drawn]
        pieces = np.unique(np.concatenate([one.times for one in drawn]) // STEPS)
        for begin in (pieces * STEPS).tolist():
            end = min(begin + STEPS, len(field.hours))
            values = (field.read(begin, end) - self.climate.mean) / self.climate.deviation
            for one, out in zip(drawn, found, strict=True):
                inside = np.flatnonzero((one.times >= begin) & (one.times < end))
                if len(inside):
                    out[:, inside] = values[np.ix_(one.times[inside] - begin, one.cells)].T
        return found

    def _line(self, split: str, number: int, drawn: Drawn, values: NDArray[np.float64]) -> str:
        """A row as a line of JSON; ``values`` [m, n] are those at the times that were read."""
        field, first = self.field, values.shape[1] - drawn.days * 24 // self.every
        latitudes, longitudes = (
            np.deg2rad(of[drawn.cells]) for of in (field.latitudes, field.longitudes)
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
        told = ",".join(
            f'"{name}":[{",".join(self._words(floor))}]'
            for name, floor in self._floors(split, drawn, hour, values).items()
        )
        return (
            f'{{"id":"{split}-{number}","text":"{text}","targets":{{"t":[{",".join(spans)}]}},'
            f'"floors":{{"t":{{{told}}}}},"group":{{"hour":{hour % 24},"days":{drawn.days}}},'
            f'"cluster":"{np.datetime64(hour, "h").astype("datetime64[D]")}"}}\n'
        )

    def _floors(
        self, split: str, drawn: Drawn, hour: int, values: NDArray[np.float64]
    ) -> dict[str, NDArray[np.float64]]:
        """What else predicts the last of the values [m, n] that were read for a row, [m] each."""
        floors = {"persistence": values[:, -2]}
        if (day := 24 // self.every) > 1:
            floors["daily-persistence"] = values[:, -1 - day]
        if self.has_climatology:
            season = int(seasons(np.array([hour]), self.climate.by_month)[0])
            total, count = self.climate.sums[season, drawn.cells], self.climate.counts[season]
            if split == TRAIN:  # whose own value would tell something of itself
                total, count = total - values[:, -1], count - 1
            floors["climatology"] = total / count
        return floors

    def _rows(self, values: NDArray[np.float64]) -> list[list[str]]:
        """Each row of [m, n] as words."""
        words, width = self._words(values.ravel()), values.shape[1]
        return [words[k : k + width] for k in range(0, len(words), width)]

    def _words(self, values: NDArray[np.float64]) -> list[str]:
        """Numbers [n] with so many decimal places at most, and one at least: ``0.25``, ``1.0``."""
        rounded = (np.round(values, self.places) + 0.0).tolist()  # no -0.0
        words = list(map(repr, rounded))
        if self.places > 4 and any("e" in word for word in words):  # as what is below 0.0001
            words = [f"{value:.{self.places}f}".rstrip("0") for value in rounded]
            words = [f"{word}0" if word.endswith(".") else word for word in words]
        return words


@lru_cache(maxsize=32)  # windows: a unit has rows of a few
class _StationSets:
    """The sets of stations of one window, from ``low`` to ``high`` of so many cells, no two the
    same, in the order in which they are drawn.

    Rows are asked for one after the other, so what was tried before is remembered: of each set
    that was new, the attempt, from which it is drawn again.
    """

    def __init__(self, cells: int, low: int, high: int, purpose: str) -> None:
        self._cells, self._low, self._high, self._purpose = cells, low, high, purpose
        self._attempts: list[int] = []
        self._seen: set[bytes] = set()
        self._tried = 0

    def at(self, rank: int) -> NDArray[np.int64]:
        """The set of that rank, from 0 on."""
        while (left := rank + 1 - len(self._attempts)) > 0:
            attempts = range(self._tried, self._tried + left)
            for attempt, cells in zip(attempts, self._drawn(attempts), strict=True):
                key = np.sort(cells).astype(np.int32).tobytes()
                if key not in self._seen:
                    self._seen.add(key)
                    self._attempts.append(attempt)
            self._tried = attempts.stop
        attempt = self._attempts[rank]
        (cells,) = self._drawn(range(attempt, attempt + 1))
        return cells

    def _drawn(self, attempts: range) -> Iterator[NDArray[np.int64]]:
        """A set of cells for each attempt, in random order: a shuffle that ends when there are
        enough."""
        for drawn in uniforms_of_rows(self._purpose, attempts, 1 + self._high).T.tolist():
            moved: dict[int, int] = {}
            chosen = []
            for k in range(self._low + int(drawn[0] * (self._high - self._low + 1))):
                at = k + int(drawn[1 + k] * (self._cells - k))
                chosen.append(moved.get(at, at))
                moved[at] = moved.get(k, k)
            yield np.array(chosen, np.int64)


def _place(seed: int, split: TaskSplit, number: int) -> int:
    """Where among the windows a row is, from 0 to the number of rows: blocks are shuffled."""
    blocks = split.rows // _BLOCK  # the last rows may be fewer, and stay where they are
    block, within = divmod(number, _BLOCK)
    if block == blocks:
        return number
    return int(_order(f"blocks {split.name} {seed}", blocks)[block]) * _BLOCK + within


def _moment(hour: int) -> tuple[float, float, float, float]:
    """Sine and cosine of the time of day, and of the time of the year, of an hour since 1970."""
    time = np.datetime64(hour, "h")
    since = int((time - time.astype("datetime64[Y]")).astype(np.int64))
    day, year = tau * (hour % 24) / 24, tau * since / (365 * 24)
    return sin(day), cos(day), sin(year), cos(year)
