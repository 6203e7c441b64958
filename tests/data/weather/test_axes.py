"""Windows on axes of any order and any convention, compared with plain loops."""

import doctest
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numtok.data.sources import era5
from numtok.data.weather import axes, field
from numtok.data.weather.axes import (
    Area,
    Period,
    decimal,
    expected_steps,
    hours,
    latitude_window,
    longitude_window,
    time_steps,
)
from numtok.errors import DataError, UsageError
from tests.cases import case
from tests.messages import Says

GLOBE = np.arange(0, 360, 15.0)


@given(
    seed=st.integers(0, 1000),
    west=st.integers(-240, 240),
    width=st.integers(0, 360),
    convention=st.sampled_from([0, -180]),
)
def test_a_window_has_each_longitude_within_it_once_and_in_order(
    seed: int, west: int, width: int, convention: int
) -> None:
    values = (GLOBE - convention) % 360 + convention
    values = np.random.default_rng(seed).permutation(values)
    expected = [west + k for k in range(width + 1) if (west + k) % 15 == 0]
    if width == 360 and len(expected) > 24:
        expected.pop()  # the last equals the first
    area = Area(90, west, -90, west + width)
    if not expected:
        with pytest.raises(UsageError, match="contains no longitude of the data"):
            longitude_window(values, area)
        return
    places, found = longitude_window(values, area)
    assert found.tolist() == expected
    assert (values[places] % 360).tolist() == [value % 360 for value in expected]


def test_all_of_a_grid_begins_behind_its_largest_gap() -> None:
    for stored, expected in [
        ([0.0, 1, 2, 350, 351, 352, 353, 354, 355, 356, 357, 358, 359], range(-10, 3)),
        (list(range(-10, 3)), range(-10, 3)),
        ([200.0, 201, 202], range(200, 203)),
        ([2.0, 1, 0], range(3)),
        (GLOBE.tolist(), range(0, 360, 15)),
        ((GLOBE - 180).tolist(), range(-180, 180, 15)),
        ([179.0, -180, -179], range(179, 182)),
        ([7.0], [7]),
        ([0.0, 90, 180, 270, 360], [0, 90, 180, 270]),
    ]:
        with case(stored, expected):
            places, found = longitude_window(np.array(stored, float), None)
            assert found.tolist() == list(expected)
            assert (np.array(stored)[places] % 360 == found % 360).all()


def test_coordinates_of_single_precision_are_the_decimals_they_were_written_as() -> None:
    stored = np.array([0.0, 0.1, 350.1, 350.2], np.float32)
    assert decimal(stored).tolist() == [0.0, 0.1, 350.1, 350.2]
    places, found = longitude_window(decimal(stored)[[2, 3]], Area(1, -9.9, 0, -9.8))
    assert (places.tolist(), found.tolist()) == ([0, 1], [-9.9, -9.8])


def test_latitudes_come_from_south_to_north() -> None:
    for order in [1, -1]:
        with case(order):
            stored = np.arange(50, 58.25, 0.25)[::order]
            places, found = latitude_window(stored, Area(55, 0, 54, 1))
            assert found.tolist() == [54.0, 54.25, 54.5, 54.75, 55.0]
            assert stored[places].tolist() == found.tolist()


UK = np.arange(-10, 2.25, 0.25)


def test_an_area_beyond_the_grid_or_between_its_lines_is_refused(says: Says) -> None:
    for text, parts in [
        ("58,-10.3,50,2", ["extends beyond the longitudes of the data, -10 to"]),
        ("58,-10,50,2.3", ["-10", "extends beyond the longitudes of the data,"]),
        ("58,-180,50,180", ["extends beyond the longitudes of the data, -10 to"]),
        ("58,100,50,120", ["no longitude of the data"]),
        ("58,0.1,50,0.2", ["no longitude of the data"]),
        ("58.3,-10,50,2", ["extends beyond the latitudes of the data, 50 to"]),
        ("58,-10,49.7,2", ["extends beyond the latitudes of the data, 50 to"]),
        ("54.2,-10,54.1,2", ["no latitude of the data"]),
    ]:
        with case(text, parts):
            area = Area.parse(text)
            with says.raises(UsageError, f"--area {area} ", *parts):
                latitude_window(np.arange(50, 58.25, 0.25), area)
                longitude_window(UK, area)


def test_an_area_may_end_between_the_grid_and_its_next_line() -> None:
    area = Area.parse("58.2,-10.2,49.8,2.2")
    assert len(latitude_window(np.arange(50, 58.25, 0.25), area)[0]) == 33
    assert len(longitude_window(UK, area)[0]) == 49


def test_longitudes_with_a_second_gap_are_refused() -> None:
    with pytest.raises(DataError, match="its longitudes have gaps"):
        longitude_window(np.array([0.0, 1, 2, 50, 51]), None)
    assert longitude_window(np.array([0.0, 1, 2, 50, 51]), Area(1, 50, 0, 51))[1].tolist() == [
        50,
        51,
    ]


def test_what_cannot_be_parsed_is_told(says: Says) -> None:
    area, period = Area.parse, Period.parse
    cases: list[tuple[Callable[[str], object], str, list[str]]] = [
        (area, "58,-10,50", ["--area", "'58,-10,50'", "such as 58,-10,50,2"]),
        (area, "a,b,c,d", ["--area", "'a,b,c,d'", "such as 58,-10,50,2"]),
        (area, "50,-10,58,2", ["50,-10,58,2", "-90 <= S <= N <= 90"]),
        (area, "nan,-10,50,2", ["10,50,2", "nan", "-90 <= S <= N <= 90"]),
        (area, "58,-400,50,2", ["58,-400,50,2", "360..360"]),
        (area, "58,-200,50,200", ["58,-200,50,200", "360"]),
        (period, "2019-03-02..2019-03-01", ["--period 2019-03-02..2019-03-01"]),
    ]
    for text in ("", "2019", "2019-03", "2019-03-01..", "2019-02-30", "1..2"):
        cases.append((period, text, ["--period", repr(text), "2019-03-01..2019-03-31"]))
    for text in ("6", "5h", "0h", "-6h", "6 h", "48h", "h"):
        cases.append((hours, text, ["--every", repr(text), "1h, 2h, 3h, 4h, 6h, 8h, 12h, 24h"]))
    for parse, text, parts in cases:
        with case(text), says.raises(UsageError, *parts):
            parse(text)
    assert str(Period.parse("2019-03-01")) == "2019-03-01..2019-03-01"
    assert hours("6h") == 6


def test_an_area_has_one_form_however_it_is_written() -> None:
    for text, canonical in [
        ("58,350,50,352", "58,-10,50,-8"),
        ("58,350,50,2", "58,-10,50,2"),
        ("1,170,0,-170", "1,170,0,190"),
        ("58,350.1,50,350.2", "58,-9.9,50,-9.8"),
        ("1,359,0,-359", "1,-1,0,1"),
        ("10,200,0,-170", "10,-160,0,190"),  # from 200 eastward, almost all the way around
        ("1,180,0,200", "1,-180,0,-160"),
        ("1,-180,0,180", "1,-180,0,180"),
        ("1,0,0,360", "1,0,0,360"),
        ("1,5,0,5", "1,5,0,5"),
        ("1,360,0,0", "1,0,0,0"),
    ]:
        with case(text, canonical):
            assert str(Area.parse(text)) == canonical
            assert Area.parse(canonical) == Area.parse(text)


def hourly(first: str, last: str, step: int = 1) -> NDArray[np.datetime64]:
    begin, end = np.datetime64(first, "m"), np.datetime64(last, "m")
    return np.arange(begin, end, np.timedelta64(60 * step, "m"))


def test_steps_of_a_period_are_whole_days_at_hours_of_the_day() -> None:
    times = hourly("2019-02-27T03", "2019-03-05")
    places = time_steps(times, Period.parse("2019-03-01..2019-03-02"), 6)
    assert times[places].tolist() == hourly("2019-03-01", "2019-03-03", 6).tolist()
    assert len(time_steps(times, None, None)) == len(times)


def test_what_a_time_axis_does_not_have_is_told(says: Says) -> None:
    for period, every, parts in [
        ("2019-02-27..2019-03-02", None, ["2019-02-27..2019-03-02", "2019-02-28"]),
        ("2019-03-04..2019-03-05", None, ["2019-03-04..2019-03-05", "2019-02-28"]),
        ("2019-03-01", 1, ["--every 1h", "6 h"]),
        ("2019-03-01", 4, ["--every 4h", "6 h"]),
    ]:
        with case(period, every, parts):
            times = hourly("2019-02-28", "2019-03-05", 6)
            with says.raises(UsageError, *parts):
                time_steps(times, Period.parse(period), every)


def test_times_that_are_no_hours_are_refused(says: Says) -> None:
    for times, parts in [
        (np.array([], "datetime64[m]"), ["its time axis is empty, or has steps"]),
        (np.array(["2019-01-01", "NaT"], "datetime64[m]"), ["its time axis is empty, or has"]),
        (
            hourly("2019-01-01", "2019-01-02")[::-1],
            ["its times do not increase, or one appears twice"],
        ),
        (
            np.arange("2019-01", "2020-01", dtype="datetime64[M]").astype("datetime64[m]"),
            ["its steps are months: these are monthly means,"],
        ),
    ]:
        with case(times, parts), says.raises(DataError, *parts):
            time_steps(times, None, None)


def test_without_a_period_all_steps_of_the_first_to_the_last_day_are_expected() -> None:
    times = hourly("2019-03-01T05", "2019-03-06T07", 1)
    whole = hourly("2019-03-01", "2019-03-07", 1)
    assert (expected_steps(times, times, None, None) == whole).all()
    days = times.astype("datetime64[D]")
    without = times[(days != np.datetime64("2019-03-03")) & (times != np.datetime64("2019-03-05"))]
    assert (expected_steps(without, without, None, None) == whole).all()


def test_all_hours_of_each_day_of_a_period_are_expected() -> None:
    """The expected hours are those of the whole axis, wherever it has a gap."""
    for hole in [slice(24, 60), slice(90, 120), slice(30, 31), slice(0, 0)]:
        with case(hole):
            times = hourly("2019-02-28", "2019-03-08", 1)
            period = Period.parse("2019-03-01..2019-03-04")
            for every in (None, 6):
                without = np.delete(times, np.arange(len(times))[hole])
                found = without[time_steps(without, period, every)]
                expected = hourly("2019-03-01", "2019-03-05", every or 1)
                assert (expected_steps(without, found, period, every) == expected).all()


def test_the_examples_of_docstrings_hold() -> None:
    for module in [axes, era5, field]:
        with case(module):
            found = doctest.testmod(module)
            assert found.attempted and not found.failed
