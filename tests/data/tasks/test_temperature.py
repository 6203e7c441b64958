"""``gen temperature``: the text of the paper, times that splits do not share, and baselines."""

import ast
import json
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.data.tasks import _temperature_rows
from numtok.data.tasks._contract import rows_in
from numtok.data.tasks._draws import uniforms_of_rows
from numtok.data.tasks._temperature_rows import Climate, Drawn, TemperatureRows, parts, starts
from numtok.data.tasks.base import SHARES, TaskSplit
from numtok.data.tasks.temperature import Temperature
from numtok.data.weather.field import Field
from numtok.encoding.splits import read_split
from numtok.errors import DataError, StoreError, UsageError
from numtok.evaluation.report_files import read as read_report
from numtok.reports import PREDICTIONS_FILE
from numtok.row import Row
from numtok.setting_values import Range
from numtok.stages import eval as evaluation
from numtok.stages import train
from numtok.stages.encode import Config as EncodeConfig
from numtok.stages.encode import run as encode
from numtok.stages.gen import Config
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests import fakefields
from tests.cases import case
from tests.fakefields import hours, numbered, waves
from tests.messages import Says
from tests.shell import Ran, Shell
from tests.stages import test_train
from tests.stages.test_gen import make
from tests.stages.test_gen import rows as rows_of

one_thread = test_train.one_thread
xarray = pytest.importorskip("xarray", reason="fields need xarray and zarr")

Floats = NDArray[np.float64]

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
DAY = 24
TINY = Temperature(stations=Range(3, 5), days=Range(2, 3))
SIX = np.array([0.0, 10.0]), np.array([0.0, 1.0, 2.0])  # latitudes and longitudes of six cells
HALVES = "train=0.5,validation=0.2,test=0.3"
NUMBER = r"-?[0-9]+\.[0-9]{1,4}"


def read(row: Row) -> dict[str, Any]:
    parsed = ast.literal_eval(row.text)
    assert isinstance(parsed, dict)
    return parsed


def over(task: Temperature, folder: Path, **rows: int) -> TemperatureRows:
    """Return the rows of splits of equal size."""
    share = SHARES // len(rows)
    splits = [
        TaskSplit(name, n, k * share, k * share + share) for k, (name, n) in enumerate(rows.items())
    ]
    made = task.over(folder, splits).task
    assert isinstance(made, TemperatureRows)
    return made


def made(task: Temperature, folder: Path, rows: int) -> list[Row]:
    """Return all rows of a train split that covers the whole field."""
    maker, split = over(task, folder, train=rows), TaskSplit("train", rows)
    units = range(-(-rows // maker.unit_rows))
    return [row for index in units for row in rows_in(maker.unit(0, split, index).rows)]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """Make a field of 60 days and six cells whose values, in units of 1, number times and cells."""
    times = hours(60 * DAY)
    return fakefields.make(tmp_path_factory.mktemp("counted"), times, numbered(times, 6), *SIX)


def raw(row: Row, artifact: Artifact) -> Floats:
    """Return the values [stations, steps] of a row in units of the field, as far as written."""
    facts = artifact.manifest.facts
    return np.asarray(np.array(read(row)["data"]) * facts["deviation"] + facts["mean"])


def places(row: Row, artifact: Artifact) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times [steps] and the cells [stations] of a row of the ``counted`` field."""
    number = np.rint(raw(row, artifact)).astype(np.int64)
    times, cells = number // 6, number % 6
    assert (times == times[:1]).all() and (cells == cells[:, :1]).all()
    return times[0], cells[:, 0]


# --- the text ----------------------------------------------------------------------------------


def test_a_row_has_the_form_of_the_paper() -> None:
    """Each row has the coordinates of stations, the time of the first step and lists of values."""
    for row in made(TINY, fakefields.small_field(), 40):
        triple = rf"\[{NUMBER}, {NUMBER}, {NUMBER}\]"
        series = rf"\[{NUMBER}(, {NUMBER}){{7,11}}\]"
        start = rf"\[{NUMBER}(, {NUMBER}){{3}}\]"
        assert re.fullmatch(
            rf"{{'description': {{'coords': \[{triple}(, {triple})*\], 'start': {start}}}, "
            rf"'data': \[{series}(, {series})*\]}}",
            row.text,
        )
        parsed = read(row)
        values = parsed["data"]
        assert 3 <= len(values) == len(parsed["description"]["coords"]) <= 5
        assert {len(one) for one in values} in ({8}, {12})
        assert row.targets is not None and list(row.targets) == ["t"]
        told = [float(row.text[start:end]) for start, end in row.targets["t"]]
        assert told == [one[-1] for one in values]
        assert "-0.0," not in row.text and "-0.0]" not in row.text


@pytest.mark.integration
def test_the_texts_are_those_that_others_made_of_the_same_data() -> None:
    """A sample in the form of the paper is reproduced from its stations, start times and field."""
    sample, file = (
        SHARED / "text/era5-uk-2019-03.jsonl",
        SHARED / "era5/era5_t2m_uk_2019-03_cdslegacy.nc",
    )
    if not sample.exists():
        pytest.skip("needs the sample of ERA5 in ../shared")
    pytest.importorskip("scipy", reason="xarray reads NetCDF with scipy or h5netcdf")
    values = xarray.open_dataset(file)["t2m"].load()
    latitude, longitude = (values[axis].values.astype(float) for axis in ("latitude", "longitude"))
    grid = np.meshgrid(latitude, longitude, indexing="ij")
    times = values["time"].values.astype("datetime64[h]").astype(np.int64)
    field = Field(
        folder=file,
        hours=times,
        latitudes=grid[0].ravel(),
        longitudes=grid[1].ravel(),
        attributes={},
        variable="t2m",
    )
    flat = values.values.reshape(len(times), -1)
    standardised = (flat - flat.mean()) / flat.std()  # in float32, like the sample
    climate = Climate(0.0, 1.0, False, np.zeros((24, field.cells)), np.ones(24))
    rows = TemperatureRows(
        field=field, stations=Range(60, 90), every=6, places=4, climate=climate, windows={}
    )
    lines = sample.read_text().splitlines()[::12]
    for line in lines:
        text = json.loads(line)["text"]
        parsed = ast.literal_eval(text)
        sines, east, along = np.array(parsed["description"]["coords"]).T
        nearest = [
            np.abs(axis - np.rad2deg(angle)[:, None]).argmin(1)
            for axis, angle in ((latitude, np.arcsin(sines)), (longitude, np.arctan2(east, along)))
        ]
        day_sine, day_cosine, year_sine, year_cosine = parsed["description"]["start"]
        hour = round(np.arctan2(day_sine, day_cosine) / np.pi * 12) % 24
        of_year = np.arctan2(year_sine, year_cosine) / (2 * np.pi) * 365
        first = (round(of_year - hour / 24) - 59) * 24 + hour  # the file begins on the 60th day
        steps = first + 6 * np.arange(len(parsed["data"][0]))
        drawn = Drawn(len(steps) // 4, steps, nearest[0] * len(longitude) + nearest[1])
        of_cells = standardised[np.ix_(steps, drawn.cells)].T.astype(float)
        written = json.loads(rows._line("test", 0, drawn, of_cells))["text"]
        assert written == re.sub(r"-0\.0(?=[,\]])", "0.0", text)
    assert len(lines) == 25


@pytest.mark.integration
def test_values_come_back_to_what_is_written(tmp_path: Path) -> None:
    """Values are standardized, rounded to ``places``, and restored with facts of the manifest."""
    field = fakefields.make(tmp_path, hours(1440), waves(hours(1440), 256))
    values = Field.open(field.path).read(0, 1440)
    for places in (1, 4, 7):
        config = Config(f"temperature,stations=9,decimals={places}", samples=10, from_="field")
        artifact = make(config, tmp_path)
        facts = artifact.manifest.facts
        for row in rows_of(artifact)["train"]:
            parsed = read(row)
            sines, east, along = np.array(parsed["description"]["coords"]).T
            assert len(sines) == 9
            decimals = {
                len(word.partition(".")[2]) for word in re.findall(r"[0-9]\.[0-9]+", row.text)
            }
            assert 1 <= min(decimals) <= max(decimals) <= places
            if places < 4:
                continue  # the cells cannot be identified from their coordinates
            north = np.abs(fakefields.LATITUDES - np.rad2deg(np.arcsin(sines))[:, None]).argmin(1)
            east = np.rad2deg(np.arctan2(east, along))[:, None]
            cells = north * 16 + np.abs(fakefields.LONGITUDES - east).argmin(1)
            found = np.array(parsed["data"]) * facts["deviation"] + facts["mean"]
            begin = np.abs(values[:, cells] - found[:, 0]).sum(1).argsort()[:20]
            steps = np.arange(found.shape[1]) * 6
            off = [
                np.abs(values[at + steps][:, cells].T - found).max()
                for at in begin.tolist()
                if at + steps[-1] < len(values)
            ]
            assert min(off) <= 0.5 * 10.0**-places * facts["deviation"] * 1.001


def test_small_numbers_have_no_exponent(tmp_path: Path) -> None:
    times = hours(10 * DAY)
    values = numbered(times, 6)
    task = Temperature(stations=Range(2, 2), days=Range(2, 2), places=9)
    latitudes = np.array([0.0, 1e-4])  # whose sine is 0.0000017
    field = fakefields.make(tmp_path, times, values, latitudes, SIX[1])
    rows = made(task, field.path, 60)
    assert any("0.000001745" in row.text for row in rows)
    assert not any("e-" in row.text for row in rows)


# --- samples -----------------------------------------------------------------------------------


@pytest.mark.integration
def test_stations_days_and_hours_are_all_equally_likely() -> None:
    rows = made(Temperature(stations=Range(3, 5), days=Range(2, 4)), fakefields.small_field(), 720)
    texts = [read(row) for row in rows]
    stations = Counter(len(text["data"]) for text in texts)
    days = Counter(row.group["days"] for row in rows if row.group)
    hour = Counter(row.group["hour"] for row in rows if row.group)
    for drawn, kinds in ((stations, 3), (days, 3), (hour, 24)):
        expected = len(rows) / kinds
        assert len(drawn) == kinds
        assert all(abs(n - expected) < 5 * expected**0.5 for n in drawn.values()), drawn
    starts = [tuple(text["description"]["start"]) for text in texts]
    assert len(set(starts)) > 450
    cells = Counter(tuple(one) for text in texts for one in text["description"]["coords"])
    assert len(cells) == 256 and max(cells.values()) < 35  # 11 on average


@pytest.mark.integration
def test_rows_are_spread_over_the_time_and_so_are_the_first_of_them() -> None:
    rows = over(TINY, fakefields.small_field(), train=2000)
    split = TaskSplit("train", 2000)
    first = np.array([rows.drawn(0, split, number).times[0] for number in range(2000)])
    for begin in range(0, 1200, 120):
        share = 120 / (1440 - 48)
        inside = ((first >= begin) & (first < begin + 120)).mean()
        assert inside == pytest.approx(share, rel=0.15)
    assert len(set((first[:256] // 240).tolist())) >= 4  # 8 blocks in the 6 periods of ten days
    assert all(np.ptp(first[k : k + 32]) < 72 for k in range(0, 1984, 32))


def test_fewer_rows_than_windows_are_of_windows_of_their_own() -> None:
    rows = over(TINY, fakefields.small_field(), train=500)
    drawn = [rows.drawn(1, TaskSplit("train", 500), number) for number in range(500)]
    assert len({(one.days, int(one.times[0])) for one in drawn}) == 500


@pytest.mark.parametrize("stations", [Range(1, 1), Range(1, 3), Range(6, 6)])
def test_all_rows_that_are_possible_can_be_had_and_each_once(
    counted: Artifact, stations: Range, says: Says
) -> None:
    """A short field with six cells has few different rows."""
    task = Temperature(stations=stations, days=Range(2, 2), every=12)
    times = hours(6, step=12)
    field = fakefields.make(counted.path.parents[2], times, numbered(times, 6), *SIX, name="short")
    sets = {Range(1, 1): 6, Range(1, 3): 6 + 15 + 20, Range(6, 6): 1}[stations]
    possible = 3 * sets
    rows = over(task, field.path, train=possible)
    drawn = [rows.drawn(0, TaskSplit("train", possible), k) for k in range(possible)]
    assert len({(int(one.times[0]), frozenset(one.cells.tolist())) for one in drawn}) == possible
    assert all(len(set(one.cells.tolist())) == len(one.cells) for one in drawn)
    with says.raises(UsageError, f"only {possible} different rows", "--rows", f"{possible + 1}"):
        over(task, field.path, train=possible + 1)


# --- splits by time ----------------------------------------------------------------------------


@pytest.mark.integration
def test_no_time_of_a_split_is_in_another_nor_near_it(tmp_path: Path) -> None:
    """The times are read from the values in the rows."""
    times = hours(60 * DAY)
    fakefields.make(tmp_path, times, numbered(times, 6), *SIX)
    # Enough decimals to distinguish all values.
    task = "temperature,stations=3..5,days=2..4,decimals=7"
    artifact = make(Config(task, samples=300, split=HALVES, from_="field"), tmp_path)
    seen = {
        split: np.unique(np.concatenate([places(row, artifact)[0] for row in rows]))
        for split, rows in rows_of(artifact).items()
    }
    assert seen["train"].max() + 96 < seen["validation"].min()
    assert seen["validation"].max() + 96 < seen["test"].min()
    assert artifact.manifest.facts["gap_hours"] == 96
    for split, period in artifact.manifest.facts["periods"].items():
        first, last = (np.datetime64(end, "h") for end in period.split(" to "))
        assert first <= times[seen[split].min()] and times[seen[split].max()] <= last
    usable = 60 * DAY - 2 * 96
    assert artifact.manifest.facts["periods"]["train"].endswith(str(times[usable // 2 - 1]))


def test_parts_follow_each_other_by_share_whatever_the_splits_are_called() -> None:
    names, quarter = ["a", "test", "train", "validation"], SHARES // 4
    splits = [TaskSplit(name, 1, k * quarter, (k + 1) * quarter) for k, name in enumerate(names)]
    found = parts(np.arange(0, 920, 2), splits, 40)  # 20 steps of 2 hours
    assert list(found) == ["train", "validation", "a", "test"]
    assert [tuple(part) for part in found.values()] == [
        (0, 100), (120, 220), (240, 340), (360, 460),
    ]  # fmt: skip
    assert all(part.begin == part.end for part in parts(np.arange(9), splits, 24).values())


def test_the_gap_between_parts_is_of_hours_and_no_longer_than_it_must_be() -> None:
    """The axis has hours 6, 12 and 18 of 40 days, some of which are missing."""
    for missing in [[], [5, 6], [17], list(range(10, 16)), [0, 39]]:
        with case(missing):
            days = np.delete(np.arange(40), missing)
            there = (24 * days[:, None] + np.array([6, 12, 18])).ravel()
            splits = [TaskSplit(name, 1, k * SHARES // 3, (k + 1) * SHARES // 3)
                      for k, name in enumerate(("a", "test", "train"))]  # fmt: skip
            found = list(parts(there, splits, 96).values())
            for part, following in pairwise(found):
                last = there[part.end - 1]
                assert there[following.begin] == there[there > last + 96].min()
            assert found[0].begin == 0 and len(there) - found[-1].end <= 1
            assert np.ptp([part.end - part.begin for part in found]) <= 1


def test_a_window_covers_no_gap_of_the_data(counted: Artifact, tmp_path: Path) -> None:
    """Two days are missing: windows end before this gap or begin after it."""
    times = hours(30 * DAY)
    kept = np.concatenate([times[: 10 * DAY], times[12 * DAY :]])
    field = fakefields.make(tmp_path, kept, numbered(times, 6).reshape(-1, 6)[: len(kept)], *SIX)
    rows = over(TINY, field.path, train=900)
    drawn = [rows.drawn(0, TaskSplit("train", 900), number) for number in range(900)]
    hour = [kept[one.times].astype(np.int64) for one in drawn]
    assert all((np.diff(one) == 6).all() for one in hour)
    first = np.array([int(one[0]) for one in hour]) - int(times[0].astype(np.int64))
    last = np.array([int(one[-1]) for one in hour]) - int(times[0].astype(np.int64))
    assert ((last < 240) | (first >= 288)).all()
    assert last[last < 240].max() >= 237 and first[first >= 288].min() <= 290


def test_windows_begin_wherever_all_steps_are_there() -> None:
    there = np.array([0, 6, 12, 24, 30, 36, 42, 48])
    part = parts(there, [TaskSplit("train", 1)], 48)["train"]
    assert starts(there, part, np.arange(3) * 6).tolist() == [0, 24, 30, 36]
    assert starts(there, part, np.arange(-1, 2) * 6).tolist() == [6, 30, 36, 42]
    assert starts(there, part, np.arange(2) * 24).tolist() == [0, 6, 12, 24]
    assert starts(there, part, np.arange(9) * 6).tolist() == []


# --- constants and baselines -----------------------------------------------------------------


@pytest.mark.integration
def test_the_constants_are_of_the_train_split_alone(tmp_path: Path) -> None:
    times = hours(40 * DAY)
    values = waves(times, 256)
    fakefields.make(tmp_path, times, values)
    config = Config("temperature,stations=2", samples=50, split=HALVES, from_="field")
    facts = make(config, tmp_path).manifest.facts
    end = (40 * DAY - 2 * 96) // 2
    of_train = values[:end].astype(float)
    assert facts["mean"] == pytest.approx(of_train.mean(), rel=1e-8)
    assert facts["deviation"] == pytest.approx(of_train.std(), rel=1e-8)
    changed = values.copy()
    changed[end:] += 40
    fakefields.make(tmp_path / "other", times, changed)
    other = make(config, tmp_path / "other").manifest.facts
    assert other == facts


def test_floors_are_what_they_are_called(tmp_path: Path) -> None:
    times = hours(40 * DAY)
    fakefields.make(tmp_path, times, numbered(times, 6), *SIX)
    spec = "temperature,stations=2..4,days=2..3,every=8,decimals=7"
    artifact = make(Config(spec, samples=60, split=HALVES, from_="field"), tmp_path)
    facts = artifact.manifest.facts
    end = (40 * DAY - 2 * 72) // 2  # of the train split
    number = np.arange(len(times) * 6).reshape(-1, 6)
    for split, rows in rows_of(artifact).items():
        for row in rows:
            at, cells = places(row, artifact)
            hour = int(at[-1]) % 24
            assert row.group == {"hour": hour, "days": len(at) // 3}
            assert row.floors is not None and list(row.floors) == ["t"]
            undone = {
                name: np.array(values, float) * facts["deviation"] + facts["mean"]
                for name, values in row.floors["t"].items()
            }
            days = number[hour:end:24][:, cells]
            same_day = number[at[-1], cells] if split == "train" else np.zeros(len(cells))
            usual = (days.sum(0) - same_day) / (len(days) - (split == "train"))
            assert row.cluster == str(times[at[-1]].astype("datetime64[D]"))
            wanted = {
                "persistence": number[at[-1] - 8, cells],
                "daily-persistence": number[at[-1] - 24, cells],
                "climatology": usual,
            }
            assert list(undone) == list(wanted), split
            for name, values in wanted.items():
                assert undone[name] == pytest.approx(values, abs=1e-3)


def floors_of(rows: TemperatureRows, split: str, count: int) -> list[dict[str, list[Any]]]:
    """Return the standardized baselines of the first rows of a split of ``count`` rows."""
    content = rows.unit(0, TaskSplit(split, count), 0).rows
    return [row["floors"]["t"] for row in map(json.loads, content.splitlines())]


@pytest.mark.integration
def test_rows_of_a_day_have_the_value_of_the_day_before_too(counted: Artifact) -> None:
    """That value is not a step of such rows; every row has it, and reads stay within the part."""
    task = Temperature(stations=Range(2, 2), days=Range(1, 2), places=7)
    rows = over(task, counted.path, train=200, test=100)
    climate, days, read = rows.climate, set(), {}
    for split, count in (("train", 200), ("test", 100)):
        drawn = [rows.drawn(0, TaskSplit(split, count), number) for number in range(count)]
        for one, told in zip(drawn, floors_of(rows, split, count), strict=True):
            assert (np.diff(one.times) == 6).all() and len(one.times) == (5 if one.days == 1 else 8)
            undone = np.array(told["daily-persistence"]) * climate.deviation + climate.mean
            assert undone == pytest.approx((one.times[-1] - 24) * 6 + one.cells, abs=1e-3)
            days.add(one.days)
        read[split] = np.concatenate([one.times for one in drawn])
    assert days == {1, 2}
    assert read["train"].min() < 6 and read["test"].min() - read["train"].max() > 48


@pytest.mark.integration
def test_steps_of_a_day_have_one_persistence() -> None:
    rows = over(Temperature(stations=Range(2, 2), every=24), fakefields.small_field(), train=40)
    assert {tuple(one) for one in floors_of(rows, "train", 40)} == {("persistence", "climatology")}


def test_where_one_row_would_have_no_climatology_none_has_one(tmp_path: Path) -> None:
    """Ten days have even hours, then six days have odd ones, which the train split lacks."""
    odd = np.concatenate([hours(10 * 12, step=2), hours(6 * 12, "2019-01-20T01", step=2)])
    field = fakefields.make(tmp_path, odd, numbered(odd, 6), *SIX)
    task = Temperature(stations=Range(2, 2), days=Range(1, 1))
    rows = over(task, field.path, train=10, test=10)
    names = {tuple(one) for split in ("train", "test") for one in floors_of(rows, split, 10)}
    assert names == {("persistence", "daily-persistence")}
    split = [TaskSplit("train", 10, 0, SHARES // 2), TaskSplit("test", 10, SHARES // 2, SHARES)]
    assert task.over(field.path, split).facts["climatology"] == (
        "none: the split 'train' has fewer than two days for an hour of the targets"
    )


@pytest.mark.integration
def test_in_more_than_a_year_climatology_knows_the_month(tmp_path: Path) -> None:
    times = hours(4 * 800, "2019-01-01", step=6)
    field = fakefields.make(tmp_path, times, numbered(times, 6), *SIX)
    task = Temperature(stations=Range(2, 2), days=Range(2, 2), places=7)
    splits = [TaskSplit("train", 60, 0, SHARES // 2), TaskSplit("test", 20, SHARES // 2, SHARES)]
    derived = task.over(field.path, splits)
    assert derived.facts["climatology"] == "by month and hour of the day"
    rows = derived.task
    assert isinstance(rows, TemperatureRows)
    values, month = np.arange(len(times) * 6).reshape(-1, 6), times.astype("datetime64[M]")
    month = month.astype(int) % 12
    train = np.arange(len(times)) < (len(times) - 8) // 2
    for split in splits:
        for k, told in enumerate(floors_of(rows, split.name, split.rows)):
            one = rows.drawn(0, split, k)
            last = one.times[-1]
            like = train & (month == month[last]) & ((np.arange(len(times)) - last) % 4 == 0)
            like[last] = False
            undone = np.array(told["climatology"]) * rows.climate.deviation + rows.climate.mean
            assert undone == pytest.approx(values[like][:, one.cells].mean(0), rel=1e-5)


def test_many_rows_of_few_windows_are_made_as_fast_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each set of stations is drawn a few times, not once for each set before it."""
    times = hours(8 * DAY, step=1)
    field = fakefields.make(tmp_path, times[::6], numbered(times[::6], 40), np.arange(5.0),
                            np.arange(8.0))  # fmt: skip
    rows = over(Temperature(stations=Range(8, 12), days=Range(1, 1)), field.path, train=20_000)
    drawn: list[int] = []

    def counting(purpose: str, of: range, columns: int) -> Floats:
        drawn.append(len(of))
        return uniforms_of_rows(purpose, of, columns)

    monkeypatch.setattr(_temperature_rows, "uniforms_of_rows", counting)
    split = TaskSplit("train", 20_000)
    found = [rows.drawn(0, split, number) for number in range(512)]
    assert len({(int(one.times[0]), *sorted(one.cells.tolist())) for one in found}) == 512
    of_window = 20_000 // len(rows.windows["train"])
    assert sum(drawn) < 16 * (of_window + 32) + 2 * 512  # 16 blocks of 32 rows


# --- the stage ---------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the store of the working folder, which has a field of 60 days."""
    monkeypatch.chdir(tmp_path)
    fakefields.make(Path("artifacts"), hours(60 * DAY), waves(hours(60 * DAY), 256), name="uk")
    return tmp_path / "artifacts"


@pytest.mark.integration
def test_only_what_is_needed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten rows in 120 days do not need all days, and each piece is read once."""
    times = hours(120 * DAY)
    field = fakefields.make(tmp_path, times, waves(times, 6), *SIX)
    rows = over(Temperature(stations=Range(2, 2), days=Range(2, 2)), field.path, train=10)
    read: list[int] = []
    usual = Field.read

    def noting(self: Field, begin: int, end: int) -> Floats:
        read.extend(range(begin, end))
        return usual(self, begin, end)

    monkeypatch.setattr(Field, "read", noting)
    rows.unit(0, TaskSplit("train", 10), 0)
    assert len(read) == len(set(read)) <= 10 * 3 * 24


@pytest.mark.integration
def test_the_field_is_the_parent_and_what_was_found_is_shown(numtok: Shell, store: Path) -> None:
    ran = numtok("gen", "temperature", "--stations", "2..3", "--from", "uk", "--rows", "50")
    assert ran.code == 0, ran.err
    artifact = Store(Path("artifacts")).resolve(ran.out.strip())
    field = Store(Path("artifacts")).resolve("uk")
    assert artifact.manifest.parents == (field.as_parent(),)
    facts = artifact.manifest.facts
    assert facts["units"] == "K" and facts["attribution"] == fakefields.ATTRIBUTION
    told = " ".join(ran.err.split())
    for words in (
        f"mean {facts['mean']:.4g}",
        f"period of train {facts['periods']['train']}",
        f"numtok: {fakefields.ATTRIBUTION}",
    ):
        assert words in told
    shown = " ".join(numtok("show", artifact.ref).out.split())
    assert f"numtok gen temperature,stations=2..3 --rows 50 --seed 0 --from {field.ref}" in shown
    for words in (
        f"made from field {field.ref}",
        f"mean {facts['mean']}",
        "gap_hours 96",
        f"periods.test {facts['periods']['test']}",
        f"attribution {fakefields.ATTRIBUTION}",
    ):
        assert words in shown
    lineage = numtok("lineage", artifact.ref).out
    assert f"from field {field.ref}" in lineage
    again = numtok(*artifact.manifest.command[1:], "--json")
    assert json.loads(again.out)["made"] is False


@pytest.mark.integration
def test_a_dry_run_tells_the_size_and_another_field_makes_another_version(
    numtok: Shell, store: Path
) -> None:
    arguments = ["gen", "temperature", "--stations", "3", "--rows", "200"]
    ran = numtok(*arguments, "--from", "uk", "--dry-run", "--json")
    told = {row["what"]: row["value"] for row in json.loads(ran.out)["rows"]}
    first = numtok(*arguments, "--from", "uk").out.strip()
    artifact = Store(Path("artifacts")).resolve(first)
    assert told["would make"] == first
    assert abs(told["size (estimate)"] / artifact.manifest.bytes - 1) < 0.05
    times = hours(40 * DAY)
    fakefields.make(Path("artifacts"), times, waves(times, 256) + 1, name="warmer")
    assert numtok(*arguments, "--from", "warmer").out.strip() != first


@pytest.mark.integration
def test_real_weather_goes_through_the_whole_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real data is generated as text, encoded, trained on and evaluated next to baselines."""
    file = SHARED / "era5/era5_t2m_uk_2019-03_cdslegacy.nc"
    if not file.exists():
        pytest.skip("needs the field of ERA5 in ../shared")
    pytest.importorskip("scipy", reason="xarray reads NetCDF with scipy or h5netcdf")
    monkeypatch.chdir(tmp_path)
    values = xarray.open_dataset(file)["t2m"].sortby("latitude").isel(latitude=slice(0, 33, 4))
    latitude, longitude = (values[axis].values.astype(float) for axis in ("latitude", "longitude"))
    times, flat = values["time"].values, values.values.reshape(744, -1)
    fakefields.make(Path("artifacts"), times, flat, latitude, longitude, name="uk")
    spec = "temperature,stations=4..8,days=2"
    artifact = make(Config(spec, samples=150, split=HALVES, from_="uk"), Path("artifacts"))
    store = Store(Path("artifacts"))
    config = EncodeConfig((artifact.ref,), scheme="xval", text_tokenizer="structure", name="coded")
    coded = encode(config, store, lambda *_: None).artifact
    assert coded is not None and coded.manifest.counts["rejected"] == 0
    tiny = train.Config("coded", preset="nano,layers=1,width=16,heads=2", steps=4)
    model = train.run(tiny, store, lambda update: None).artifact
    chosen = evaluation.Config(model.ref, "coded", name="report", rows=20)
    report = read_report(evaluation.run(chosen, store, lambda *told: None).artifact).report
    errors = {name: baseline["mse"].value for name, baseline in report.baselines.items()}
    assert list(errors) == [
        "quantization", "mean", "median", "climatology", "daily-persistence", "persistence",
        "nearest", "linear", "boosted", "tfidf", "boosted-text",
    ]  # fmt: skip
    known = {name: value for name, value in errors.items() if value is not None}
    assert len(known) == len(errors)
    assert known["daily-persistence"] < known["linear"] < known["climatology"] < known["mean"]
    lengths = np.array([len(read(row)["data"]) for row in rows_of(artifact)["test"]])
    assert report.numbers == lengths[read_split(coded, "test").drawn(20)].sum()
    assert set(report.groups) == {"days", "hour"}
    persistence = report.baselines["persistence"]["mse"]
    low, high = persistence.low, persistence.high
    assert low is not None and high is not None and low < known["persistence"] < high
    import pyarrow.parquet as pq

    table = pq.read_table(store.resolve("report").path / PREDICTIONS_FILE)
    assert set(table["target"].to_pylist()) == {"t"}


# --- errors ------------------------------------------------------------------------------------

WRONG = [
    ("", ["kind field", "--from REF", "`numtok ls field`"]),
    ("--from nothing", ["no artifact 'nothing'", "numtok ls"]),
    ("--from sums", ["'sums' is unencoded data", "field"]),
    ("--from uk --stations 0..3", ["stations", "0..3", "1 to 10,000", "a range"]),
    ("--from uk --stations 2.5", ["stations", "2.5", "1 to 10,000", "a range"]),
    ("--from uk --days 31", ["days", "31", "1 to 30"]),
    ("--from uk --every 5", ["every", "5", "1, 2, 3, 4, 6, 8, 12, 24"]),
    ("--from uk --every 24 --days 1", ["days=1", "every=24", "more days"]),
    ("--from uk --decimals 0", ["--decimals ", "1 to 9", "(got 0)"]),
    ("--from uk --stations 200..300", ["stations", "200..300", "256", "fewer"]),
    ("--from uk --split validation=0.5,test=0.5", ["needs the split 'train'", "--split"]),
    ("--from uk --days 3..30", ["days=3..30", "'test' has 0 times", "3 days", "fewer days"]),
    ("--from uk --days 2..6", ["days=2..6", "'test' has 116 times", "6 days", "fewer days"]),
    ("--from uk --split ood-cold=0.2", ["no split 'ood-cold'"]),
    ("--from rain", ["in K", "total_precipitation in m", "--variable 2m_temperature"]),
    (
        "--from uk --days 1 --every 12 --split validation=0.01",
        ["days=1,every=12", "'validation' has 15 times", "no 3 of them", "1 day and the step"],
    ),
    ("--from coarse --every 4", ["every", "4", "6", "a multiple"]),
]


def failed(says: Says, ran: Ran, *parts: str) -> None:
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    says(ran.err, "numtok: ", *parts)


@pytest.mark.integration
def test_what_cannot_be_done_is_told_in_one_line(numtok: Shell, store: Path, says: Says) -> None:
    numtok("gen", "arithmetic", "--rows", "50", "--name", "sums")
    times = hours(160, step=6)
    fakefields.make(store, times, waves(times, 256), name="coarse")
    times = hours(240)
    rain: dict[str, Any] = {"variable": "total_precipitation", "units": "m"}
    fakefields.make(store, times, waves(times, 256), name="rain", **rain)
    for arguments, told in WRONG:
        with case(arguments):
            failed(says, numtok("gen", "temperature", *arguments.split()), *told)


def test_a_task_that_reads_nothing_is_given_nothing(numtok: Shell, says: Says) -> None:
    failed(says, numtok("gen", "arithmetic", "--from", "uk"), "gen arithmetic", "--from uk")


def test_a_value_that_is_missing_is_named_and_no_row_is_made_of_it(
    tmp_path: Path, says: Says
) -> None:
    times = hours(10 * DAY)
    values = numbered(times, 6)
    values[30, 4] = np.nan
    field = fakefields.make(tmp_path, times, values, *SIX)
    with pytest.raises(DataError) as error:
        over(TINY, field.path, train=10)
    place = "2019-01-02T06, latitude 10, longitude 1"
    says(error, str(field.path), f"missing value at {place}", "--missing drop")


def test_a_field_that_is_the_same_everywhere_is_refused(tmp_path: Path, says: Says) -> None:
    field = fakefields.make(tmp_path, hours(240), np.full((240, 6), 281.5, "f4"), *SIX)
    with says.raises(DataError, str(field.path), "split 'train' are 281.5", "another field"):
        over(TINY, field.path, train=10)


OBJECT = "2m_temperature/c.1.0.0"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("2m_temperature/zarr.json", "240", "1000000000000"),
        ("2m_temperature/zarr.json", '"data_type": "float32"', '"data_type": "string"'),
        ("2m_temperature/zarr.json", '"chunk_shape"', '"chunk_shapes"'),
        ("2m_temperature/zarr.json", '"name": "blosc"', '"name": "zlib"'),
        ("latitude/zarr.json", '"float64"', '"int64"'),
        ("time/zarr.json", "hours since", "weeks since"),
        *(("zarr.json", None, "{"), (OBJECT, None, ""), (OBJECT, None, "\0" * 100)),
        (OBJECT, None, None),
    ],
)
def test_a_field_that_is_not_as_it_was_written_is_refused_with_the_file(
    tmp_path: Path, name: str, old: str | None, new: str | None
) -> None:
    field = fakefields.make(tmp_path, hours(240), numbered(hours(240), 6), *SIX)
    path = field.path / "field.zarr" / name
    if old is not None and new is not None:
        text = path.read_text()
        assert old in text
        new = text.replace(old, new)
    path.unlink()
    if new is not None:
        path.write_text(new)
    told = rf"^{re.escape(str(path))} is damaged: .*`numtok verify`$"
    with pytest.raises(StoreError, match=told):
        Field.open(field.path).read(0, 48)


def test_a_field_of_a_million_by_a_million_cells_is_refused(tmp_path: Path) -> None:
    field = fakefields.make(tmp_path, hours(240), numbered(hours(240), 6), *SIX)
    for name in ("2m_temperature", "latitude", "longitude"):
        path = field.path / "field.zarr" / name / "zarr.json"
        content = json.loads(path.read_bytes())
        for shape in (content["shape"], content["chunk_grid"]["configuration"]["chunk_shape"]):
            shape[-2:] = [1_000_000] * len(shape[-2:])
        path.write_text(json.dumps(content))
    with pytest.raises(StoreError, match=r"its shape \[240, 1000000, 1000000\] is impossible"):
        Field.open(field.path)


def test_times_between_the_hours_are_refused(tmp_path: Path, says: Says) -> None:
    times = hours(240) + np.timedelta64(30, "m")
    field = fakefields.make(tmp_path, times, numbered(times, 6), *SIX)
    with says.raises(DataError, str(field.path), "increasing whole hours", "--every 1h"):
        Field.open(field.path)


def test_without_the_packages_a_line_says_what_to_install(
    numtok: Shell, store: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)  # makes the import fail
    ran = numtok("gen", "temperature", "--from", "uk")
    failed(says, ran, "xarray and zarr", "pip install 'numtok[weather]'")
