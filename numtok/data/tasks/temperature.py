"""temperature: what stations measure over some days, and at the last step, in JSON-like text."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from numtok.data.reading.split_rule import TRAIN
from numtok.data.tasks._temperature_rows import (
    Climate,
    TemperatureRows,
    TimeRange,
    parts,
    resolution,
    seasons,
    starts,
    step_offsets,
)
from numtok.data.tasks.base import Derived, DerivedTask, TaskSplit, check_range, setting
from numtok.data.weather.field import EVERY, Field, hour_text
from numtok.errors import DataError, UsageError
from numtok.registry import Range, spec_of
from numtok.store.artifact import FIELD

_YEAR = 366 * 24  # hours


@dataclass(frozen=True)
class Temperature(DerivedTask):
    """Temperatures of random stations over some days, as in xVal: the last step is to be told.

    ``--from REF`` names the field that they are read from (``numtok fetch era5`` makes one). Each
    row has 60 to 90 cells of its grid, and 2 to 4 days in steps of 6 hours, which begin at any hour
    that the field has. The text is that of the paper: of each station the sine of the latitude and
    the sine and cosine of the longitude, then sine and cosine of the time of day and of the year
    (of 365 days) at the first step, then the values of one station after the other:

        {'description': {'coords': [[0.7934, -0.1435, 0.9897], ...],
        'start': [1.0, 0.0, 0.9668, 0.2554]},
        'data': [[-0.9657, 0.2348, 0.4146, ...], ...]}

    The paper's numbers are floats; here they have four decimal places at most, finer than ERA5
    itself is stored, ``--decimals 7`` gives them all. Values are standardised with the mean and
    deviation of the train split, over all cells and times of it; ``numtok show`` prints both.

    Each split has a part of the time of its own, by its share: train first, then validation, then
    others, test last. Between two parts lies a gap of the longest window, and a window lies in
    one part with all its steps, so no time of one split is in another, and none near it. Rows are
    spread evenly over the windows of a part; 32 that follow each other in the file are near in
    time. No two rows have the same window and the same stations. Hours that the field lacks are
    in no window. Rows whose last step is on the same day are of one cluster: it is one weather that
    they are asked for, so intervals are over days.

    The values of the last step are the targets ``t``. Beside them stand floors of reports:
    ``persistence``, the value one step before, ``daily-persistence``, that of 24 hours before (in a
    row of one day the model does not see it; a step of 24 hours has the first alone), and
    ``climatology``, the mean of the train split at that cell and hour of the day, of the same month
    where that split is longer than a year, and for its own rows without their day. Groups are
    ``hour`` (UTC) of the last step and ``days``.

    >>> spec_of(Temperature(stations=Range(8, 12), days=Range(2, 2)))
    'temperature,stations=8..12,days=2'

    Raises UsageError for settings that cannot be, or not with this field.
    """

    revision = 2
    source = "xVal, section 3.2"
    unit_rows = TemperatureRows.unit_rows
    digest = "f2e85183f4cbe6a5"
    reads: ClassVar[str] = FIELD

    stations: Range = setting(Range(60, 90), "How many cells of the field.")
    days: Range = setting(Range(2, 4), "How long, in whole days.")
    every: int = setting(6, "Hours from step to step, a divisor of 24.")
    places: int = setting(
        4,
        "Maximum decimal places of every number",
        flag="decimals",
        formerly=("places",),
        at_least=1,
        at_most=9,
    )

    def __post_init__(self) -> None:
        check_range(self, "stations", 1, 10_000)
        check_range(self, "days", 1, 30)
        if self.every not in EVERY:
            raise UsageError(
                f"temperature: every={self.every} is not possible; allowed are "
                f"{', '.join(map(str, EVERY))}"
            )
        if self.days.low * 24 // self.every < 2:
            raise UsageError(
                f"temperature: days={self.days} in steps of every={self.every} hours are one step, "
                "and the last is to be told from those before; give more days, or smaller steps"
            )

    @property
    def shifted(self) -> tuple[str, ...]:
        return ()

    def over(self, folder: Path, splits: Sequence[TaskSplit]) -> Derived:
        field = Field.open(folder)
        self._check(field, splits)
        gap = int(self.days.high) * 24
        found = parts(field.hours, splits, gap)
        windows = {split.name: self._windows(field, split, found[split.name]) for split in splits}
        climate = _climate(field, found[TRAIN])
        rows = TemperatureRows(
            field=field,
            stations=self.stations,
            every=self.every,
            places=self.places,
            climate=climate,
            windows=windows,
        )
        periods = {
            name: " to ".join(hour_text(int(field.hours[at])) for at in (part.begin, part.end - 1))
            for name, part in found.items()
        }
        facts = {
            "mean": climate.mean,
            "deviation": climate.deviation,
            "climatology": _told(rows),
            "periods": periods,
            "gap_hours": gap,
        }
        return Derived(rows, facts | field.attributes)

    def _check(self, field: Field, splits: Sequence[TaskSplit]) -> None:
        """The field is one that there can be rows of."""
        if TRAIN not in [split.name for split in splits]:
            raise UsageError(
                f"temperature needs the split {TRAIN!r}: its mean and deviation standardise all "
                "values; leave it something of --split"
            )
        if self.stations.high > field.cells:
            raise UsageError(
                f"temperature: stations={self.stations} is more than the {field.cells:,} cells of "
                "the field; give fewer, or a field of a larger area"
            )
        if field.attributes.get("units") != "K":
            raise UsageError(
                f"temperature needs a field of temperatures in K, and {field.description} is none; "
                "fetch one by --variable 2m_temperature"
            )
        if self.every % (step := resolution(field.hours)):
            raise UsageError(
                f"temperature: every={self.every} is not possible with a field that has a time "
                f"every {step} hours; give a multiple of that"
            )

    def _windows(self, field: Field, split: TaskSplit, part: TimeRange) -> NDArray[np.int64]:
        """The windows [w, 2] of a split, by first hour and then by days."""
        found = []
        for days in range(int(self.days.low), int(self.days.high) + 1):
            offsets = step_offsets(days, self.every)
            begin = starts(field.hours, part, offsets)
            if not len(begin):
                hours = field.hours[part.begin : part.end]
                more = "" if days > 1 else " and the step before"
                raise UsageError(
                    f"{spec_of(self)}: the split {split.name!r} has {len(hours):,} times of the "
                    f"field, and no {len(offsets)} of them are {self.every} hours apart, for "
                    f"{days} day{'s' * (days > 1)}{more}; give a longer period, a larger share, or "
                    f"fewer days than {self.days} (so long is also the gap between splits)"
                )
            found.append(np.column_stack([begin, np.full(len(begin), days)]))
        windows = np.concatenate(found)
        counts = range(int(self.stations.low), int(self.stations.high) + 1)
        possible = len(windows) * sum(comb(field.cells, count) for count in counts)
        if split.rows > possible:
            raise UsageError(
                f"{spec_of(self)} has only {possible:,} different rows in the split "
                f"{split.name!r}, {len(windows):,} windows with some of {field.cells:,} cells, and "
                f"--rows asks for {split.rows:,}; give fewer, or settings with more rows"
            )
        return windows[np.lexsort((windows[:, 1], windows[:, 0]))]


def _told(rows: TemperatureRows) -> str:
    """What the floor is the mean of."""
    if not rows.has_climatology:
        return f"none: the split {TRAIN!r} has not two days for every hour that is asked for"
    return "by month and hour of the day" if rows.climate.by_month else "by hour of the day"


def _climate(field: Field, part: TimeRange) -> Climate:
    """Mean, deviation and the usual values of each cell, of all values of a part.

    The first two have nine digits, so that they do not depend on how sums are taken.
    """
    total = squares = 0.0
    hours = field.hours[part.begin : part.end]
    by_month = bool(hours[-1] - hours[0] > _YEAR)
    every = seasons(field.hours, by_month)
    sums, counts = np.zeros((int(every.max()) + 1, field.cells)), np.zeros(int(every.max()) + 1)
    offset: float | None = None
    for begin, end in field.pieces(part.begin, part.end):
        values = field.read(begin, end)
        if offset is None:  # a guess at the mean, so that squares keep their digits
            offset = float(values.mean())
        total += float((values - offset).sum())
        squares += float(np.square(values - offset).sum())
        for value, season in zip(values, every[begin:end], strict=True):
            sums[season] += value
            counts[season] += 1
    assert offset is not None
    size = (part.end - part.begin) * field.cells
    mean = float(f"{offset + total / size:.9g}")
    deviation = float(f"{max(0.0, squares / size - (total / size) ** 2) ** 0.5:.9g}")
    if not deviation:
        raise DataError(
            f"{field.folder}: all values of the split {TRAIN!r} are {mean:g}, so they have no "
            "deviation to be standardised by; give another field"
        )
    return Climate(mean, deviation, by_month, (sums - counts[:, None] * mean) / deviation, counts)
