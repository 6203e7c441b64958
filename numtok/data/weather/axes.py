"""Select time steps, latitudes and longitudes of a grid by value, regardless of their order.

Public stores and files differ: latitudes run from north to south or from south to north, longitudes
are in 0..360 or -180..180, and a window may cross the seam of either range. Each function takes the
stored values of one axis and returns the selected indices and values, in the order in which a field
stores them. Unlike with xarray's ``sel``, windows may cross the seam, float32 coordinates are
rounded to decimals, and a window that extends beyond the data raises an error.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from numtok.data.weather.field import EVERY
from numtok.errors import DataError, UsageError

_NEAR = 1e-6  # degrees; coordinates closer than this are equal
_DAY = np.timedelta64(1, "D")
_MONTH = np.timedelta64(27, "D")


@dataclass(frozen=True)
class Area:
    """A window of latitudes and longitudes, written N,W,S,E; the bounds are included.

    The window extends eastward from W to E. W is normalized to [-180, 180), so that windows of the
    same cells are equal.

    >>> Area.parse("58,350,50,2")  # across Greenwich
    Area(north=58.0, west=-10.0, south=50.0, east=2.0)
    >>> str(Area.parse("58,350,50,352"))
    '58,-10,50,-8'
    """

    north: float
    west: float
    south: float
    east: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``N,W,S,E``. Raises UsageError if the window is invalid."""
        try:
            north, west, south, east = (float(part) for part in text.split(","))
        except ValueError:
            raise UsageError(
                f"--area must be N,W,S,E in degrees, such as 58,-10,50,2 (got {text!r})"
            ) from None
        if not -90 <= south <= north <= 90:
            raise UsageError(
                f"--area {text} must have -90 <= S <= N <= 90 (N is {north:g}, S is {south:g})"
            )
        if not (-360 <= west <= 360 and -360 <= east <= 360):
            raise UsageError(f"--area {text}: W and E must be within -360..360")
        if east - west > 360:
            raise UsageError(f"--area {text}: W to E must be at most 360 degrees")
        width = 360 if east - west == 360 else (east - west) % 360
        west = round((west + 180) % 360 - 180, 9)  # removes rounding errors of the difference
        return cls(north, west, south, round(west + width, 9))

    def __str__(self) -> str:
        return ",".join(f"{side:.10g}" for side in (self.north, self.west, self.south, self.east))


@dataclass(frozen=True)
class Period:
    """A day, or a range of days such as 2019-03-01..2019-03-31 (both included), in UTC."""

    first: np.datetime64
    last: np.datetime64

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``FIRST..LAST`` or a single day. Raises UsageError if the period is invalid."""
        first, dots, last = text.partition("..")
        ends = [first, last if dots else first]
        try:
            days = [np.datetime64(end, "D") for end in ends]
            if any(np.isnat(days)) or [str(day) for day in days] != ends:
                raise ValueError(text)
        except ValueError:
            raise UsageError(
                f"--period must be days such as 2019-03-01..2019-03-31 (got {text!r})"
            ) from None
        if days[0] > days[1]:
            raise UsageError(f"--period {text}: the first day is after the last")
        return cls(days[0], days[1])

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


def hours(text: str) -> int:
    """Return the number of hours in a time step: 6 for ``6h``.

    Raises UsageError if the step does not divide a day.
    """
    allowed = {f"{step}h": step for step in EVERY}
    if text not in allowed:
        raise UsageError(f"--every must be one of {', '.join(allowed)} (got {text!r})")
    return allowed[text]


def decimal(values: NDArray[Any]) -> NDArray[np.float64]:
    """Convert coordinates [n] to the float64 values with the same decimals.

    The float32 350.1 becomes 350.1, not 350.1000061.
    """
    if values.dtype == np.float32:
        return np.array([float(str(value)) for value in values], np.float64)
    return np.asarray(values, np.float64)


def latitude_window(
    values: NDArray[np.float64], area: Area | None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Select the latitudes in an area from ``values`` (degrees, [n]).

    Returns the indices [k] and the latitudes [k], from south to north. Raises UsageError if the
    area extends beyond the grid or lies between two of the grid's latitudes, and DataError if a
    latitude is not finite or appears twice.
    """
    order = np.argsort(values, kind="stable")
    latitudes = values[order]
    if not np.isfinite(latitudes).all() or (np.diff(latitudes) < _NEAR).any():
        raise DataError("a latitude is NaN or infinite, or appears twice")
    if area is None:
        return order, latitudes
    if len(latitudes) > 1:
        south = 2 * latitudes[0] - latitudes[1]  # the next latitude would be here
        north = 2 * latitudes[-1] - latitudes[-2]
        if area.south <= south + _NEAR or area.north >= north - _NEAR:
            raise UsageError(
                f"--area {area} extends beyond the latitudes of the data, "
                f"{latitudes[0]:g} to {latitudes[-1]:g}"
            )
    inside = (latitudes >= area.south - _NEAR) & (latitudes <= area.north + _NEAR)
    if not inside.any():
        raise UsageError(f"--area {area} contains no latitude of the data. Make it larger")
    return order[inside], latitudes[inside]


def longitude_window(
    values: NDArray[np.float64], area: Area | None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Select the longitudes in an area from ``values`` (degrees, [n]).

    Returns the indices [k] and the longitudes [k], increasing from west to east.

    >>> indices, values = longitude_window(np.array([0.0, 1, 2, 358, 359]), None)
    >>> indices.tolist(), values.tolist()
    ([3, 4, 0, 1, 2], [-2.0, -1.0, 0.0, 1.0, 2.0])

    Raises UsageError if the area extends beyond the grid or contains none of its longitudes.
    """
    if not np.isfinite(values).all():
        raise DataError("a longitude is NaN or infinite")
    around, indices = np.unique(np.round(values % 360, 6) % 360, return_index=True)
    gaps = np.diff(around, append=around[0] + 360)
    step = gaps.min()
    west = _western_end(values[indices], gaps) if area is None else area.west
    longitudes = np.round(west + (values[indices] - west + _NEAR) % 360 - _NEAR, 9)
    order = np.argsort(longitudes)
    indices, longitudes = indices[order], longitudes[order]
    if area is None:
        if (np.diff(longitudes) > 1.5 * step).any():
            raise DataError("its longitudes have gaps. Select a part without gaps: --area N,W,S,E")
        return indices, longitudes
    whole = area.east - area.west > 360 - _NEAR  # then the last is next to the first
    inside = longitudes <= area.east + (-_NEAR if whole else _NEAR)
    indices, longitudes = indices[inside], longitudes[inside]
    if not len(longitudes):
        raise UsageError(f"--area {area} contains no longitude of the data. Make it larger")
    begins = longitudes[0] - step < area.west - _NEAR
    ends = longitudes[-1] + step > area.east + (-_NEAR if whole else _NEAR)
    if not (begins and ends and (np.diff(longitudes) < 1.5 * step).all()):
        first, last = longitude_window(values, None)[1][[0, -1]]
        raise UsageError(
            f"--area {area} extends beyond the longitudes of the data, {first:g} to {last:g}"
        )
    return indices, longitudes


def _western_end(values: NDArray[np.float64], gaps: NDArray[np.float64]) -> float:
    """Return the western end of a grid: after its largest gap, or as stored if it is global.

    ``values`` are sorted modulo 360; ``gaps`` are the distances to the next value.
    """
    widest = int(gaps.argmax())
    if gaps[widest] < 1.5 * gaps.min():
        return float(values.min())
    first, last = values[(widest + 1) % len(values)], values[widest]
    return float(first - 360 if first > max(last, 180) else first)


def time_steps(
    times: NDArray[np.datetime64], period: Period | None, every: int | None
) -> NDArray[np.intp]:
    """Return the indices of the time steps in a period.

    If ``every`` is given, only hours of the day that are multiples of ``every`` are selected.
    ``times`` are datetime64[m]. Raises UsageError if the period extends beyond the times, or if
    ``every`` requires hours that the data lacks. Raises DataError if the times do not increase or
    are monthly.
    """
    if not len(times) or np.isnat(times).any():
        raise DataError("its time axis is empty, or has steps without a time")
    apart = np.diff(times)
    if (apart <= np.timedelta64(0, "h")).any():
        raise DataError("its times do not increase, or one appears twice")
    if len(times) > 1 and apart.min() >= _MONTH:
        raise DataError("its steps are months: these are monthly means, not hourly ERA5 data")
    inside = np.ones(len(times), bool)
    if period is not None:
        step = apart.min() if len(times) > 1 else _DAY
        begin, end = period.first.astype(times.dtype), (period.last + _DAY).astype(times.dtype)
        if begin <= times[0] - step or end > times[-1] + step:
            raise UsageError(
                f"--period {period} extends beyond the data, {_shown(times[0])} to "
                f"{_shown(times[-1])}"
            )
        inside = (times >= begin) & (times < end)
        if not inside.any():
            raise UsageError(f"--period {period} contains no step of the data")
    minutes = (times - times.astype("datetime64[D]")).astype(int)
    if every is not None:
        wanted = set(range(0, 24 * 60, every * 60))
        if not wanted <= set(minutes[inside].tolist()):
            step = int(apart.min() / np.timedelta64(1, "m")) if len(times) > 1 else 0
            steps = f"its steps are {step / 60:g} h apart" if step else "it has only one step"
            raise UsageError(f"--every {every}h does not fit the data: {steps}")
        inside &= minutes % (every * 60) == 0
    return np.flatnonzero(inside)


def expected_steps(
    times: NDArray[np.datetime64],
    selected: NDArray[np.datetime64],
    period: Period | None,
    every: int | None,
) -> NDArray[np.datetime64]:
    """Return the times that the selected days would have if no step were missing.

    Each day, including the first and the last, is expected to contain every hour of the day that
    occurs anywhere in ``times``, the entire axis. If ``every`` is given, only hours that are
    multiples of ``every`` are expected. ``selected`` are the times selected by :func:`time_steps`.

    >>> axis = np.array(["2019-03-01T12", "2019-03-03T00", "2019-03-03T12"], "datetime64[m]")
    >>> expected_steps(axis, axis, None, None)[:3].astype(str).tolist()
    ['2019-03-01T00:00', '2019-03-01T12:00', '2019-03-02T00:00']
    """
    of_day = np.unique(times - times.astype("datetime64[D]"))
    if every is not None:
        of_day = of_day[of_day % np.timedelta64(every, "h") == np.timedelta64(0, "h")]
    first, last = selected[[0, -1]].astype("datetime64[D]")
    if period is not None:
        first, last = period.first, period.last
    expected: NDArray[np.datetime64] = (np.arange(first, last + _DAY)[:, None] + of_day).ravel()
    return expected


def _shown(time: np.datetime64) -> str:
    return str(time.astype("datetime64[m]"))
