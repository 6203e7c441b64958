"""Which steps and which rows and columns of a grid are meant: by value, whatever their order.

Public stores and files differ in all of it: latitudes from north to south or the other way,
longitudes of 0..360 or -180..180, and windows over the seam of either. Each function takes the
values of one axis as they are stored, and returns the places of those that are meant, in the order
of a field, with their values there. xarray's ``sel`` takes what it finds; here a window over the
seam is one, coordinates of float32 are decimal, and what the data do not cover is refused.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from numtok.data.weather.field import EVERY
from numtok.errors import DataError, UsageError

_NEAR = 1e-6  # degrees: two coordinates this near are the same
_DAY = np.timedelta64(1, "D")
_MONTH = np.timedelta64(27, "D")


@dataclass(frozen=True)
class Area:
    """A window on the globe, ends included, written N,W,S,E as in the CDS.

    It goes from W to the east until E, and W is in [-180, 180), however both were written: the same
    cells are the same window.

    >>> Area.parse("58,350,50,2")  # over Greenwich
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
        """Raises UsageError for what is no window."""
        try:
            north, west, south, east = (float(part) for part in text.split(","))
        except ValueError:
            raise UsageError(
                f"--area {text!r} is not N,W,S,E: four numbers in degrees, such as 58,-10,50,2"
            ) from None
        if not -90 <= south <= north <= 90:
            raise UsageError(
                f"--area {text}: N is {north:g} and S {south:g}; allowed are -90 <= S <= N <= 90"
            )
        if not (-360 <= west <= 360 and -360 <= east <= 360):
            raise UsageError(f"--area {text}: W and E must be within -360..360")
        if east - west > 360:
            raise UsageError(f"--area {text}: from W to E are more than 360 degrees")
        width = 360 if east - west == 360 else (east - west) % 360
        west = round((west + 180) % 360 - 180, 9)  # the difference may have lost a last digit
        return cls(north, west, south, round(west + width, 9))

    def __str__(self) -> str:
        return ",".join(f"{side:.10g}" for side in (self.north, self.west, self.south, self.east))


@dataclass(frozen=True)
class Period:
    """Days, both included, UTC, written 2019-03-01..2019-03-31; one day alone is itself."""

    first: np.datetime64
    last: np.datetime64

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises UsageError for what is no period."""
        first, dots, last = text.partition("..")
        ends = [first, last if dots else first]
        try:
            days = [np.datetime64(end, "D") for end in ends]
            if any(np.isnat(days)) or [str(day) for day in days] != ends:
                raise ValueError(text)
        except ValueError:
            raise UsageError(
                f"--period {text!r} is not a period; write days as in 2019-03-01..2019-03-31"
            ) from None
        if days[0] > days[1]:
            raise UsageError(f"--period {text}: the first day is after the last")
        return cls(days[0], days[1])

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


def hours(text: str) -> int:
    """``hours("6h")`` -> 6; UsageError for what does not divide a day."""
    allowed = {f"{step}h": step for step in EVERY}
    if text not in allowed:
        raise UsageError(f"--every {text!r} is not possible; allowed are {', '.join(allowed)}")
    return allowed[text]


def decimal(values: NDArray[Any]) -> NDArray[np.float64]:
    """Coordinates [n] as they are meant: a float32 of 350.1 is 350.1, not 350.1000061."""
    if values.dtype == np.float32:
        return np.array([float(str(value)) for value in values], np.float64)
    return np.asarray(values, np.float64)


def latitude_window(
    values: NDArray[np.float64], area: Area | None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The places among ``values`` (degrees, [n]) of the latitudes within an area, and these, from
    south to north: [k] both.

    Raises UsageError where the area goes beyond the grid, or between two of its latitudes.
    """
    order = np.argsort(values, kind="stable")
    found = values[order]
    if not np.isfinite(found).all() or (np.diff(found) < _NEAR).any():
        raise DataError("a latitude is no number, or comes twice")
    if area is None:
        return order, found
    if len(found) > 1:
        south, north = 2 * found[0] - found[1], 2 * found[-1] - found[-2]  # the next would be here
        if area.south <= south + _NEAR or area.north >= north - _NEAR:
            raise UsageError(
                f"--area {area} goes beyond the latitudes of the data, "
                f"{found[0]:g} to {found[-1]:g}"
            )
    inside = (found >= area.south - _NEAR) & (found <= area.north + _NEAR)
    if not inside.any():
        raise UsageError(f"--area {area} has no latitude of the data in it; make it larger")
    return order[inside], found[inside]


def longitude_window(
    values: NDArray[np.float64], area: Area | None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The places among ``values`` (degrees, [n]) of the longitudes within an area, and these, from
    west to east without a jump: [k] both.

    >>> places, values = longitude_window(np.array([0.0, 1, 2, 358, 359]), None)
    >>> places.tolist(), values.tolist()
    ([3, 4, 0, 1, 2], [-2.0, -1.0, 0.0, 1.0, 2.0])

    Raises UsageError where the grid does not cover the area, or has no longitude in it.
    """
    if not np.isfinite(values).all():
        raise DataError("a longitude is no number")
    around, places = np.unique(np.round(values % 360, 6) % 360, return_index=True)
    gaps = np.diff(around, append=around[0] + 360)
    step = gaps.min()
    west = _western_end(values[places], gaps) if area is None else area.west
    found = np.round(west + (values[places] - west + _NEAR) % 360 - _NEAR, 9)
    order = np.argsort(found)
    places, found = places[order], found[order]
    if area is None:
        if (np.diff(found) > 1.5 * step).any():
            raise DataError("its longitudes have gaps; name a part without one by --area N,W,S,E")
        return places, found
    whole = area.east - area.west > 360 - _NEAR  # then the last is beside the first
    inside = found <= area.east + (-_NEAR if whole else _NEAR)
    places, found = places[inside], found[inside]
    if not len(found):
        raise UsageError(f"--area {area} has no longitude of the data in it; make it larger")
    begins, ends = found[0] - step < area.west - _NEAR, found[-1] + step > area.east + _NEAR
    if whole:
        ends = found[-1] + step > area.east - _NEAR
    if not (begins and ends and (np.diff(found) < 1.5 * step).all()):
        first, last = longitude_window(values, None)[1][[0, -1]]
        raise UsageError(
            f"--area {area} goes beyond the longitudes of the data, {first:g} to {last:g}"
        )
    return places, found


def _western_end(values: NDArray[np.float64], gaps: NDArray[np.float64]) -> float:
    """Where a grid begins: behind its largest gap; one around the globe as it is stored.

    ``values`` are in order of their rest modulo 360, ``gaps`` to the next one.
    """
    widest = int(gaps.argmax())
    if gaps[widest] < 1.5 * gaps.min():
        return float(values.min())
    first, last = values[(widest + 1) % len(values)], values[widest]
    return float(first - 360 if first > max(last, 180) else first)


def time_steps(
    times: NDArray[np.datetime64], period: Period | None, every: int | None
) -> NDArray[np.intp]:
    """The places of the steps of a period, at multiples of ``every`` hours of the day.

    ``times`` are datetime64[m]. Raises UsageError where the period goes beyond them or the steps
    are further apart, DataError for times that do not ascend, or are months.
    """
    if not len(times) or np.isnat(times).any():
        raise DataError("its axis of time is empty, or has steps without a time")
    apart = np.diff(times)
    if (apart <= np.timedelta64(0, "h")).any():
        raise DataError("its times do not ascend, or one comes twice")
    if len(times) > 1 and apart.min() >= _MONTH:
        raise DataError("its steps are months: these are monthly means, not the hours of ERA5")
    inside = np.ones(len(times), bool)
    if period is not None:
        step = apart.min() if len(times) > 1 else _DAY
        begin, end = period.first.astype(times.dtype), (period.last + _DAY).astype(times.dtype)
        if begin <= times[0] - step or end > times[-1] + step:
            raise UsageError(
                f"--period {period} goes beyond the data, {_shown(times[0])} to {_shown(times[-1])}"
            )
        inside = (times >= begin) & (times < end)
        if not inside.any():
            raise UsageError(f"--period {period} has no step of the data in it")
    minutes = (times - times.astype("datetime64[D]")).astype(int)
    if every is not None:
        wanted = set(range(0, 24 * 60, every * 60))
        if not wanted <= set(minutes[inside].tolist()):
            step = int(apart.min() / np.timedelta64(1, "m")) if len(times) > 1 else 0
            told = f"{step / 60:g} h apart" if step else "one alone"
            raise UsageError(f"--every {every}h is not possible: the steps of the data are {told}")
        inside &= minutes % (every * 60) == 0
    return np.flatnonzero(inside)


def expected_steps(
    times: NDArray[np.datetime64],
    found: NDArray[np.datetime64],
    period: Period | None,
    every: int | None,
) -> NDArray[np.datetime64]:
    """The times that a field should have: on each day those hours of the day that the whole axis
    has, at multiples of ``every``.

    ``times`` is the whole axis, ``found`` what :func:`time_steps` took of it. Every day is whole,
    also the first and the last.

    >>> axis = np.array(["2019-03-01T12", "2019-03-03T00", "2019-03-03T12"], "datetime64[m]")
    >>> expected_steps(axis, axis, None, None)[:3].astype(str).tolist()
    ['2019-03-01T00:00', '2019-03-01T12:00', '2019-03-02T00:00']
    """
    of_day = np.unique(times - times.astype("datetime64[D]"))
    if every is not None:
        of_day = of_day[of_day % np.timedelta64(every, "h") == np.timedelta64(0, "h")]
    first, last = found[[0, -1]].astype("datetime64[D]")
    if period is not None:
        first, last = period.first, period.last
    expected: NDArray[np.datetime64] = (np.arange(first, last + _DAY)[:, None] + of_day).ravel()
    return expected


def _shown(time: np.datetime64) -> str:
    return str(time.astype("datetime64[m]"))
