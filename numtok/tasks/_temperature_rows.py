"""The rows of ``temperature``: which window and stations each has, what is read, how it is written.

Rows of a split are spread evenly over its windows: the n-th of N owns the n-th of N equal parts
of them, and takes one at random (or, where there are fewer windows than rows, shares one). They
are numbered so that 32 of them in a row are next to each other in time, which are read together,
and such blocks are in random order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, cos, sin, tau
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numtok.registry import Range
from numtok.tasks._draws import uniforms_of_rows
from numtok.tasks._field import Field
from numtok.tasks.base import Made, Split, TextTask

_BLOCK = 32  # rows
_MANY = 2**80  # sets of stations: two equal ones are a chance that nobody will meet


class Climate(NamedTuple):
    """What is known of the train split: ``by_hour`` [24, cells] is NaN for hours it lacks."""

    mean: float
    deviation: float
    by_hour: NDArray[np.float32]


class Drawn(NamedTuple):
    """What a row is of: the times of its steps [n], by index, and its cells [m]."""

    days: int
    times: NDArray[np.int64]
    cells: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TemperatureRows(TextTask):
    """``windows`` are those of each split, [w, 2]: the first hour and the number of days, in the
    order of time."""

    unit_rows: ClassVar[int] = 256

    field: Field
    stations: Range
    every: int
    places: int
    climate: Climate
    windows: Mapping[str, NDArray[np.int64]]

    @property
    def possible(self) -> None:
        return None

    def unit(self, seed: int, split: Split, index: int) -> Made:
        first = index * self.unit_rows
        numbers = range(first, first + self.rows_of(split, index))
        drawn = [self.drawn(seed, split, number) for number in numbers]
        read = zip(numbers, drawn, self._values(drawn), strict=True)
        lines = [self._line(f"{split.name}-{number}", one, values) for number, one, values in read]
        return Made("".join(lines).encode(), {})

    def drawn(self, seed: int, split: Split, number: int) -> Drawn:
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
        hours = begin + self.every * np.arange(days * 24 // self.every)
        times = np.searchsorted(self.field.hours, hours)
        return Drawn(days, times, self._stations(f"stations {split.name} {window} {seed}", rank))

    def _stations(self, purpose: str, rank: int) -> NDArray[np.int64]:
        """The cells of the row of that rank among those of a window, no two the same."""
        if self._has_many:
            return self._draw(purpose, rank)
        seen: set[frozenset[int]] = set()
        attempt = 0
        while True:
            cells = self._draw(purpose, attempt)
            attempt += 1
            seen.add(frozenset(cells.tolist()))
            if len(seen) > rank:
                return cells

    @cached_property
    def _has_many(self) -> bool:
        ends = (int(self.stations.low), int(self.stations.high))
        return min(comb(self.field.cells, count) for count in ends) > _MANY

    def _draw(self, purpose: str, attempt: int) -> NDArray[np.int64]:
        """Some of all cells, in random order: a shuffle that ends when there are enough."""
        low, high = int(self.stations.low), int(self.stations.high)
        drawn = uniforms_of_rows(purpose, range(attempt, attempt + 1), 1 + high)[:, 0].tolist()
        moved: dict[int, int] = {}
        chosen = []
        for k in range(low + int(drawn[0] * (high - low + 1))):
            at = k + int(drawn[1 + k] * (self.field.cells - k))
            chosen.append(moved.get(at, at))
            moved[at] = moved.get(k, k)
        return np.array(chosen, np.int64)

    def _values(self, drawn: Sequence[Drawn]) -> list[NDArray[np.float64]]:
        """What the stations [m] of each row measure at its steps [n]: [m, n], standardised.

        Whatever is stored together is read once, for all rows, and no more than that is held.
        """
        field = self.field
        found = [np.empty((len(one.cells), len(one.times))) for one in drawn]
        pieces = np.unique(np.concatenate([one.times for one in drawn]) // field.together)
        for begin in (pieces * field.together).tolist():
            end = min(begin + field.together, len(field.hours))
            values = (field.read(begin, end) - self.climate.mean) / self.climate.deviation
            for one, out in zip(drawn, found, strict=True):
                inside = np.flatnonzero((one.times >= begin) & (one.times < end))
                if len(inside):
                    out[:, inside] = values[np.ix_(one.times[inside] - begin, one.cells)].T
        return found

    def _line(self, id: str, drawn: Drawn, values: NDArray[np.float64]) -> str:
        """A row as a line of JSON."""
        field = self.field
        latitudes, longitudes = (
            np.deg2rad(of[drawn.cells]) for of in (field.latitudes, field.longitudes)
        )
        coords = np.column_stack([np.sin(latitudes), np.sin(longitudes), np.cos(longitudes)])
        start = ", ".join(self._words(np.array(_moment(int(field.hours[drawn.times[0]])))))
        places = ", ".join(f"[{', '.join(words)}]" for words in self._rows(coords))
        text = f"{{'description': {{'coords': [{places}], 'start': [{start}]}}, 'data': ["
        measured = self._rows(values)
        spans, at = [], len(text)
        series = [f"[{', '.join(words)}]" for words in measured]
        for words, written in zip(measured, series, strict=True):
            at += len(written)
            spans.append(f"[{at - 1 - len(words[-1])},{at - 1}]")
            at += len(", ")
        text += ", ".join(series) + "]}"
        hour = int(field.hours[drawn.times[-1]]) % 24
        floors = {"persistence": [words[-2] for words in measured]}
        day = 24 // self.every
        if 1 < day < len(measured[0]):
            floors["daily-persistence"] = [words[-1 - day] for words in measured]
        usual = self.climate.by_hour[hour, drawn.cells].astype(np.float64)
        if not np.isnan(usual).any():
            standardised = (usual - self.climate.mean) / self.climate.deviation
            floors["climatology"] = self._words(standardised)
        told = ",".join(f'"{name}":[{",".join(told)}]' for name, told in floors.items())
        return (
            f'{{"id":"{id}","text":"{text}","targets":{{"t":[{",".join(spans)}]}},'
            f'"floors":{{"t":{{{told}}}}},"group":{{"hour":{hour},"days":{drawn.days}}}}}\n'
        )

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


def _place(seed: int, split: Split, number: int) -> int:
    """Where among the windows a row is, from 0 to the number of rows: blocks are shuffled."""
    blocks = split.rows // _BLOCK  # the last rows may be fewer, and stay where they are
    block, within = divmod(number, _BLOCK)
    if block == blocks:
        return number
    return int(_order(seed, split.name, blocks)[block]) * _BLOCK + within


@lru_cache
def _order(seed: int, split: str, blocks: int) -> NDArray[np.int64]:
    """The numbers below ``blocks`` in random order."""
    drawn = uniforms_of_rows(f"blocks {split} {seed}", range(1), blocks)[:, 0]
    return np.argsort(drawn, kind="stable")


def _moment(hour: int) -> tuple[float, float, float, float]:
    """Sine and cosine of the time of day, and of the time of the year, of an hour since 1970."""
    time = np.datetime64(hour, "h")
    since = int((time - time.astype("datetime64[Y]")).astype(np.int64))
    day, year = tau * (hour % 24) / 24, tau * since / (365 * 24)
    return sin(day), cos(day), sin(year), cos(year)
