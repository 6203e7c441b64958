"""temperature: temperature forecasts for weather stations, in JSON-like text."""

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
from numtok.registry import spec_of
from numtok.setting_values import Range
from numtok.store.artifact import FIELD

_YEAR = 366 * 24  # hours


@dataclass(frozen=True)
class Temperature(DerivedTask):
    """Temperatures at random stations over a few days, as in xVal. The last step is the target.

    ``--from REF`` is a temperature field, such as one from ``numtok fetch era5``. Each row has 60
    to 90 cells of its grid as stations, and 2 to 4 days in steps of 6 hours, starting at any hour
    of the field. The text has the layout of the paper: the sine of the latitude and the sine and
    cosine of the longitude of each station, then the sine and cosine of the time of day and of the
    time of year (365 days) at the first step, then the values for each station:

        {'description': {'coords': [[0.7934, -0.1435, 0.9897], ...],
        'start': [1.0, 0.0, 0.9668, 0.2554]},
        'data': [[-0.9657, 0.2348, 0.4146, ...], ...]}

    The numbers in the paper are floats. In this task, they have at most four decimal places, which
    is finer than the resolution of ERA5; ``--decimals 7`` writes all digits. Values are
    standardized with the mean and standard deviation over all cells and times of the train split;
    ``numtok show`` prints both.

    A window is the time range of a row. Each split has its own period, whose length is proportional
    to the size of the split: train first, then validation, then others, and test last. Periods are
    separated by gaps as long as the longest window, and every window lies within one period, so
    splits share no times. Rows are spread evenly over the windows of a period; blocks of 32
    consecutive rows in a file are close in time.
    No two rows have the same window and the same stations. Windows with missing hours are not used.
    Rows whose last step is on the same day form a cluster, because their targets depend on the
    same weather.

    The values of the last step are the targets ``t``. Rows also have baselines for reports
    (floors): ``persistence`` is the value one step earlier, ``daily-persistence`` is the value 24
    hours earlier (not visible to models in rows of one day; omitted for steps of 24 hours), and
    ``climatology`` is the mean over the train split at the same cell and hour of the day, and in
    the same month if the train split is longer than a year (for train rows, excluding their own
    day). Groups are ``hour`` (UTC) of the last step and ``days``.

    >>> spec_of(Temperature(stations=Range(8, 12), days=Range(2, 2)))
    'temperature,stations=8..12,days=2'

    Raises UsageError if a setting is invalid or does not fit the field.
    """

    revision = 2
    source = "xVal, section 3.2"
    unit_rows = TemperatureRows.unit_rows
    digest = "f2e85183f4cbe6a5"
    reads: ClassVar[str] = FIELD

    stations: Range = setting(Range(60, 90), "Number of stations (cells of the field).")
    days: Range = setting(Range(2, 4), "Length of a row in days.")
    every: int = setting(6, "Hours per step, a divisor of 24.")
    places: int = setting(
        4,
        "Maximum decimal places of every number.",
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
                f"temperature: every must be one of {', '.join(map(str, EVERY))} (got {self.every})"
            )
        if self.days.low * 24 // self.every < 2:
            raise UsageError(
                f"temperature: days={self.days} with every={self.every} hours is a single step, "
                "but rows need at least two. Choose more days or a smaller step"
            )

    @property
    def shifted(self) -> tuple[str, ...]:
        return ()

    def over(self, folder: Path, splits: Sequence[TaskSplit]) -> Derived:
        field = Field.open(folder)
        self._check(field, splits)
        gap = int(self.days.high) * 24
        ranges = parts(field.hours, splits, gap)
        windows = {split.name: self._windows(field, split, ranges[split.name]) for split in splits}
        climate = _climate(field, ranges[TRAIN])
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
            for name, part in ranges.items()
        }
        facts = {
            "mean": climate.mean,
            "deviation": climate.deviation,
            "climatology": _climatology_note(rows),
            "periods": periods,
            "gap_hours": gap,
        }
        return Derived(rows, facts | field.attributes)

    def _check(self, field: Field, splits: Sequence[TaskSplit]) -> None:
        """Check that rows can be generated from the field."""
        if TRAIN not in [split.name for split in splits]:
            raise UsageError(
                f"temperature needs the split {TRAIN!r}, whose mean and standard deviation "
                "standardize all values. Leave it a fraction of --split"
            )
        if self.stations.high > field.cells:
            raise UsageError(
                f"temperature: stations must be at most {field.cells:,}, the cells of the field "
                f"(got {self.stations}). Choose fewer, or a field of a larger area"
            )
        if field.attributes.get("units") != "K":
            raise UsageError(
                f"temperature needs a field of temperatures in K (got {field.description}). Fetch "
                "one: --variable 2m_temperature"
            )
        if self.every % (step := resolution(field.hours)):
            raise UsageError(
                f"temperature: every must be a multiple of {step}, the hours per step of the field "
                f"(got {self.every})"
            )

    def _windows(self, field: Field, split: TaskSplit, part: TimeRange) -> NDArray[np.int64]:
        """Return the windows [w, 2] of a split (first hour, days), sorted by both."""
        by_days = []
        for days in range(int(self.days.low), int(self.days.high) + 1):
            offsets = step_offsets(days, self.every)
            begin = starts(field.hours, part, offsets)
            if not len(begin):
                hours = field.hours[part.begin : part.end]
                more = "" if days > 1 else " and the step before"
                raise UsageError(
                    f"{spec_of(self)}: the split {split.name!r} has {len(hours):,} times of the "
                    f"field, but no {len(offsets)} of them are {self.every} hours apart, for "
                    f"{days} day{'s' * (days > 1)}{more}. Use a longer period, a larger fraction, "
                    f"or fewer days than {self.days} (which also shortens the gaps between splits)"
                )
            by_days.append(np.column_stack([begin, np.full(len(begin), days)]))
        windows = np.concatenate(by_days)
        counts = range(int(self.stations.low), int(self.stations.high) + 1)
        possible = len(windows) * sum(comb(field.cells, count) for count in counts)
        if split.rows > possible:
            raise UsageError(
                f"{spec_of(self)} has only {possible:,} different rows in the split {split.name!r} "
                f"({len(windows):,} windows, {field.cells:,} cells), but --rows needs "
                f"{split.rows:,}. Reduce it, or choose settings with more rows"
            )
        return windows[np.lexsort((windows[:, 1], windows[:, 0]))]


def _climatology_note(rows: TemperatureRows) -> str:
    """Describe the climatology for the manifest."""
    if not rows.has_climatology:
        return f"none: the split {TRAIN!r} has fewer than two days for an hour of the targets"
    return "by month and hour of the day" if rows.climate.by_month else "by hour of the day"


def _climate(field: Field, part: TimeRange) -> Climate:
    """Compute mean, standard deviation and climatology over all values of a part.

    The first two are rounded to nine digits, so they do not depend on the order of summation.
    """
    total = squares = 0.0
    hours = field.hours[part.begin : part.end]
    by_month = bool(hours[-1] - hours[0] > _YEAR)
    every = seasons(field.hours, by_month)
    sums, counts = np.zeros((int(every.max()) + 1, field.cells)), np.zeros(int(every.max()) + 1)
    offset: float | None = None
    for begin, end in field.pieces(part.begin, part.end):
        values = field.read(begin, end)
        if offset is None:  # approximate mean, to avoid cancellation in the squares
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
            f"{field.folder}: all values of the split {TRAIN!r} are {mean:g} and cannot be "
            "standardized. Use another field"
        )
    return Climate(mean, deviation, by_month, (sums - counts[:, None] * mean) / deviation, counts)
