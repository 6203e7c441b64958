"""``numtok fetch era5``: every public layout gives the values that its own library reads, and no
fault on the way becomes a value."""

import asyncio
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import xarray as xr
import zarr
from numpy.typing import NDArray
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

from numtok import files
from numtok.data.fetching import file_systems
from numtok.data.sources.era5 import _PLACES, Era5
from numtok.data.weather import objects
from numtok.errors import DataError, NegativeVerdict, StoreError, UsageError
from numtok.stages.fetch import Config, Result, run
from numtok.store import quota
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.store.verification import verify
from tests.cases import case
from tests.faults import Plan, installed
from tests.messages import Says
from tests.shell import Shell
from tests.stages import test_fetch
from tests.stages.test_fetch import Server

server = test_fetch.server

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "era5"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="no ERA5 files beside numtok")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module", autouse=True)
def _processor_is_known() -> None:
    platform.processor()  # h5py calls it, and the first call starts a process


def fetch(store: Store, place: object, disk_limit: str | None = None, **options: str) -> Artifact:
    config = Config("era5", options={"from_": str(place), **options}, disk_limit=disk_limit)
    (result,) = run(config, store, lambda *told: None)
    assert result.artifact is not None
    assert verify(result.artifact).problems == []
    return result.artifact


def field(artifact: Artifact) -> "xr.DataArray":
    """Return the data of an artifact as xarray reads it, which must not warn."""
    assert artifact.kind == "field"
    with xr.open_zarr(artifact.path / "field.zarr", chunks=None) as dataset:
        (name,) = dataset.data_vars
        made: xr.DataArray = dataset[name].load()
    assert made.dims == ("time", "latitude", "longitude") and made.dtype == np.float32
    for axis in made.dims:
        assert (np.diff(made[axis].values) > np.zeros((), np.diff(made[axis].values).dtype)).all()
    assert np.isfinite(made.values).all()
    return made


# --- real data in five layouts -------------------------------------------------------------------


def by_its_own_library(name: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return values (time, latitude, longitude) in stored order, with latitudes and longitudes."""
    path = REAL / name
    if name.endswith(".grib"):
        import eccodes

        values = []
        with path.open("rb") as file:
            while (message := eccodes.codes_grib_new_from_file(file)) is not None:
                values.append(eccodes.codes_get_values(message).reshape(33, 49))
                eccodes.codes_release(message)
        return np.array(values), np.linspace(58, 50, 33), np.linspace(-10, 2, 49)
    if name.endswith(".nc"):
        import h5py

        with h5py.File(path) as file:
            stored = file["t2m"]
            values = stored[:]
            if "scale_factor" in stored.attrs:
                assert values.dtype == np.int16
                values = values * stored.attrs["scale_factor"] + stored.attrs["add_offset"]
            return values, file["latitude"][:], file["longitude"][:]
    with warnings.catch_warnings(action="ignore"):
        group = zarr.open_group(path, mode="r")
        arrays = [np.asarray(group[key]) for key in ("2m_temperature", "latitude", "longitude")]
    axes = (0, 2, 1) if name.startswith("wb2") else (0, 1, 2)
    return arrays[0].transpose(axes), arrays[1], arrays[2]


LAYOUTS = {
    "arco_like_t2m_uk_2019-03.zarr": 744,
    "arco_like_t2m_uk_2019-03-wk1.v3.zarr": 168,
    "wb2_like_t2m_uk_2019-03_6h.zarr": 124,
    "era5_t2m_uk_2019-03_cdslegacy.nc": 744,
    "era5_t2m_uk_2019-03-wk1_cdsnew.nc": 168,
    "era5-2mt-2019-03-uk.grib": 744,
}


@pytest.mark.integration
@needs_real
@pytest.mark.parametrize("name", LAYOUTS)
def test_real_data_are_what_the_library_of_their_format_reads(tmp_path: Path, name: str) -> None:
    if name.endswith(".grib"):
        pytest.importorskip("eccodes")
    expected, latitudes, longitudes = by_its_own_library(name)
    made = field(fetch(Store(tmp_path), REAL / name))
    assert made.shape == (LAYOUTS[name], 33, 49) == expected.shape
    rows = {round(float(value), 4): row for row, value in enumerate(latitudes)}
    columns = {round(float(value) % 360, 4): place for place, value in enumerate(longitudes)}
    order_rows = [rows[value] for value in made.latitude.values.tolist()]
    order_columns = [columns[value % 360] for value in made.longitude.values.tolist()]
    there = expected[:, order_rows][:, :, order_columns].astype(np.float32)
    assert (made.values == there).all()
    assert made.longitude.values.tolist() == np.arange(-10, 2.25, 0.25).tolist()
    step = 6 if name.startswith("wb2") else 1
    hours = np.datetime64("2019-03-01T00", "ns") + step * np.arange(LAYOUTS[name]) * np.timedelta64(
        1, "h"
    )
    assert (made.time.values == hours).all()
    assert (made.attrs["units"], made.attrs["long_name"]) == ("K", "2 metre temperature")
    assert made.attrs["attribution"].startswith(
        "Contains modified Copernicus Climate Change Service information 2019. Neither "
    )
    assert made.attrs["licence"].startswith("CC-BY-4.0")


@pytest.mark.integration
@needs_real
def test_the_same_window_of_all_layouts_has_the_same_values(tmp_path: Path) -> None:
    window = {"area": "55,358,52,1", "period": "2019-03-02..2019-03-03", "every": "6h"}
    made = [field(fetch(Store(tmp_path), REAL / name, **window)) for name in LAYOUTS]
    assert made[0].shape == (8, 13, 13)
    for other in made[1:]:
        assert (made[0].values == other.values).all()
        for axis in made[0].dims:
            assert (made[0][axis].values == other[axis].values).all()


@needs_real
def test_a_file_of_the_old_converter_is_the_decoded_value_to_a_float32(tmp_path: Path) -> None:
    """A download of the CDS in its original, packed form: values on a grid of 0.0014 K."""
    from scipy.io import netcdf_file

    path = REAL / "extra" / "era5_2t_1.nc"
    if b"@OPT@" in path.read_bytes()[:4096]:
        pytest.skip("this copy is damaged: a path in its header was replaced by a shorter text")
    made = field(fetch(Store(tmp_path), path))
    with netcdf_file(path, mmap=False) as old:
        packed = old.variables["t2m"]
        expected = (packed[:] * packed.scale_factor + packed.add_offset).astype(np.float32)
    assert made.shape == (1, 9, 18)
    assert (made.values == expected[:, ::-1]).all()
    assert made.longitude.values.tolist() == list(range(0, 360, 20))


# --- generated stores and files ------------------------------------------------------------------

START = "2019-03-01"


def grid(
    days: int = 3,
    step: int = 4,
    latitudes: Any = range(50, 54),
    longitudes: Any = (0, 1, 2, 357, 358, 359),
    name: str = "2m_temperature",
) -> "xr.Dataset":
    """Return a data set like those of ARCO-ERA5; all values differ, and float32 holds each."""
    times = np.arange(0, 24 * days, step)
    axes = [times, np.array(latitudes)[::-1], np.array(longitudes)]
    t, latitude, longitude = np.meshgrid(*axes, indexing="ij")
    values = (150 + t / 2 + (latitude + 90) / 256 + (longitude % 360) / 131072).astype(np.float32)
    start = np.datetime64(START, "ns")
    return xr.Dataset(
        {name: (("time", "latitude", "longitude"), values, {"units": "K", "long_name": "warmth"})},
        {
            "time": start + times * np.timedelta64(1, "h"),
            "latitude": axes[1].astype(np.float32),
            "longitude": axes[2].astype(np.float32),
        },
    )


def true_value(time: Any, latitude: Any, longitude: Any) -> NDArray[np.float32]:
    hours = (time - np.datetime64(START, "ns")) / np.timedelta64(1, "h")
    mixed = (
        150 + hours[:, None, None] / 2 + ((latitude + 90) / 256)[:, None] + longitude % 360 / 131072
    )
    made: NDArray[np.float32] = mixed.astype(np.float32)
    return made


def check(made: "xr.DataArray") -> None:
    """Check that each value is that of its own cell and hour."""
    expected = true_value(made.time.values, made.latitude.values, made.longitude.values)
    assert (made.values == expected).all()


def write(
    dataset: "xr.Dataset",
    path: Path,
    version: int = 2,
    chunks: tuple[int, ...] | None = None,
    consolidated: bool = True,
    **encoding: Any,
) -> Path:
    with warnings.catch_warnings(action="ignore"):
        described = {
            name: {"chunks": chunks or (1, *array.shape[1:]), **encoding}
            for name, array in dataset.data_vars.items()
        }
        described["time"] = {"units": "hours since 1900-01-01", "dtype": "int64"}
        dataset.to_zarr(path, zarr_format=version, encoding=described, consolidated=consolidated)
    return path


def serve(server: Server, path: Path, at: str = "/store.zarr") -> str:
    for file in path.rglob("*"):
        if file.is_file():
            server.files[f"{at}/{file.relative_to(path).as_posix()}"] = file.read_bytes()
    return server.url + at


WINDOW = {"area": "53,-3,50,2", "period": "2019-03-01..2019-03-03"}


@pytest.mark.integration
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("remote", [False, True])
def test_a_window_over_greenwich_has_the_value_of_each_cell(
    tmp_path: Path, server: Server, version: int, remote: bool
) -> None:
    path = write(grid(), tmp_path / "store.zarr-v3", version)
    place = serve(server, path) if remote else str(path)
    made = field(fetch(Store(tmp_path / "store"), place, **WINDOW))
    assert made.shape == (18, 4, 6)
    assert made.longitude.values.tolist() == [-3, -2, -1, 0, 1, 2]
    check(made)


@pytest.mark.parametrize("version", [2, 3])
def test_axes_are_known_by_name_whatever_their_order(tmp_path: Path, version: int) -> None:
    dataset = grid(step=6).transpose("time", "longitude", "latitude").sortby("latitude")
    dataset = dataset.rename(latitude="lat", longitude="lon")
    path = write(dataset, tmp_path / "wb2.zarr", version, chunks=(8, 6, 4))
    made = field(fetch(Store(tmp_path / "store"), path, area="52,-2,51,1"))
    assert made.shape == (12, 2, 4)
    check(made)


def test_a_grid_of_180_degrees_east_and_west_is_the_same(tmp_path: Path) -> None:
    dataset = grid(longitudes=range(-180, 180, 10))
    path = write(dataset, tmp_path / "a.zarr")
    for area, expected in (
        ("53,-20,50,10", [-20, -10, 0, 10]),
        ("53,170,50,-170", [170, 180, 190]),
        ("53,180,50,200", [-180, -170, -160]),
    ):
        made = field(fetch(Store(tmp_path / "store"), path, area=area))
        assert made.longitude.values.tolist() == expected
        check(made)


@pytest.mark.parametrize("consolidated", [True, False])
def test_sharded_stores_are_read_whole_and_in_parts(tmp_path: Path, consolidated: bool) -> None:
    path = write(
        grid(), tmp_path / "a.zarr", 3, chunks=(4, 2, 3), shards=(12, 4, 6),
        consolidated=consolidated, compressors=zarr.codecs.BloscCodec(),
    )  # fmt: skip
    check(field(fetch(Store(tmp_path / "store"), path)))
    check(field(fetch(Store(tmp_path / "store"), path, area="51,1,50,2")))


def test_some_hours_of_the_day_are_read_and_no_object_of_another(
    tmp_path: Path, server: Server
) -> None:
    place = serve(server, write(grid(), tmp_path / "a.zarr"))
    artifact = fetch(Store(tmp_path / "store"), place, every="12h", **WINDOW)
    made = field(artifact)
    assert made.time.dt.hour.values.tolist() == [0, 12] * 3
    check(made)
    asked = [path for path, _ in server.asked if path.endswith(".0.0")]
    assert {path.removeprefix("/store.zarr/2m_temperature/") for path in asked} == {
        f"{index}.0.0" for index in range(0, 18, 3)
    }


@pytest.mark.integration
@pytest.mark.parametrize(
    ("dataset", "chunks", "window", "asked", "size"),
    [
        # Both sides of Greenwich are in one object, which is fetched once.
        (grid(longitudes=range(0, 360, 10)), None, {"area": "53,-20,50,20"}, 18, 4 * 36 * 4),
        # So is an object of several days.
        (grid(days=20, step=6), (8, 2, 6), {"period": "2019-03-02..2019-03-19"}, 20, 8 * 2 * 6 * 4),
    ],
)
def test_each_object_is_one_request_which_a_dry_run_counts(
    tmp_path: Path, server: Server, dataset: Any, chunks: Any, window: dict[str, str], asked: int,
    size: int,
) -> None:  # fmt: skip
    place = serve(server, write(dataset, tmp_path / "a.zarr", chunks=chunks))
    store = Store(tmp_path / "store")
    config = Config("era5", options={"from_": place, **WINDOW, **window}, dry_run=True)
    (told,) = run(config, store, lambda *told: None)
    assert told.artifact is None and told.estimate is not None
    assert (told.estimate.requests, told.estimate.bytes) == (asked, asked * size)
    assert not store.root.exists()
    server.asked.clear()
    artifact = fetch(store, place, **WINDOW | window)
    check(field(artifact))
    assert artifact.ref == told.ref
    got = [path for path, _ in server.asked if path.endswith((".0.0", ".1.0"))]
    assert len(got) == len(set(got)) == asked


# --- files of the CDS ----------------------------------------------------------------------------


def cds(dataset: "xr.Dataset | None" = None) -> "xr.Dataset":
    """Return a data set as the new converter writes it: valid_time, with number and expver."""
    made = (grid() if dataset is None else dataset).rename({"2m_temperature": "t2m"})
    made = made.rename(time="valid_time").assign_coords(number=0)
    versions = np.where(np.arange(made.sizes["valid_time"]) < 12, "0001", "0005")
    return made.assign_coords(expver=("valid_time", versions))


def old(dataset: "xr.Dataset") -> "xr.Dataset":
    """Return ERA5 and ERA5T as the old converter combined them: each is NaN where the other is
    not."""
    final = dataset.where(dataset.time < np.datetime64("2019-03-03"))
    early = dataset.where(dataset.time >= np.datetime64("2019-03-03"))
    made = xr.concat([final, early], "expver").transpose("time", "expver", "latitude", "longitude")
    return made.assign_coords(expver=np.array([1, 5], np.int32)).rename({"2m_temperature": "t2m"})


@pytest.mark.parametrize(
    ("dataset", "engine"), [(cds(), "h5netcdf"), (old(grid()), "scipy"), (old(grid()), "h5netcdf")]
)
def test_files_of_both_converters_with_era5t_in_them(
    tmp_path: Path, dataset: "xr.Dataset", engine: Any
) -> None:
    dataset.to_netcdf(tmp_path / "download", engine=engine)
    artifact = fetch(Store(tmp_path / "store"), tmp_path / "download")
    made = field(artifact)
    assert made.shape == (18, 4, 6)
    check(made)
    counts = artifact.manifest.counts
    assert (counts["days"], counts["days_dropped"], counts["days_preliminary"]) == (3, 0, 1)
    assert artifact.manifest.facts["preliminary"] == ["2019-03-03"]


@pytest.mark.integration
def test_a_zip_in_place_of_netcdf_is_unpacked(tmp_path: Path, says: Says) -> None:
    cds().to_netcdf(tmp_path / "instant.nc", engine="h5netcdf")
    cds().rename(t2m="tp").to_netcdf(tmp_path / "accum.nc", engine="h5netcdf")
    with zipfile.ZipFile(tmp_path / "download.nc", "w") as packed:
        for name in ("instant.nc", "accum.nc"):
            packed.write(tmp_path / name, name)
    store = Store(tmp_path / "store")
    check(field(fetch(store, tmp_path / "download.nc")))
    with says.raises(DataError, f"{tmp_path}/download.nc", "10m_u_component_of_wind", "npack it"):
        fetch(store, tmp_path / "download.nc", variable="u10")


@pytest.mark.integration
def test_a_zip_that_unpacks_to_too_much_is_refused_before_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    path = tmp_path / "download.nc"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.nc", bytes(40 << 20))
    packed_size = path.stat().st_size

    def refused(*parts: str, **options: Any) -> None:
        with monkeypatch.context() as patch:
            # None of it may be written.
            patch.setattr(shutil, "copyfileobj", lambda *_: pytest.fail("it was unpacked"))
            with pytest.raises(UsageError) as caught:
                fetch(Store(tmp_path / "store"), path, **options)
        told = re.sub(r"/\S*/numtok-\w+", "SPOOL", str(caught.value))
        says(told.replace(f"{packed_size:,}", "FEW"), str(path), *parts)

    monkeypatch.setattr(quota, "_LARGE", 1 << 20)
    refused("100-fold", f"{40 << 20:,}", "--disk-limit SIZE")
    refused(f"exceeds --disk-limit ({20 << 20:,} bytes)", disk_limit="20MiB")
    monkeypatch.setattr(quota, "_LARGE", 1 << 40)
    monkeypatch.setattr(quota, "_ALWAYS", 1 << 20)
    disk = files.FileSystem()
    monkeypatch.setattr(type(disk), "room", lambda *_: ((1 << 30) + (39 << 20), 10 << 30))
    refused(f"at least {40 << 20:,} bytes", "the disk of ")
    for limit in ("none", "1GB"):
        with pytest.raises(DataError, match=r"bomb\.nc in .* starts with b'.x00"):
            fetch(Store(tmp_path / "store"), path, disk_limit=limit)


def test_an_object_that_is_no_file_is_refused(tmp_path: Path) -> None:
    grid().to_zarr(tmp_path / "a.zarr", zarr_format=2)
    found = [path for path in tmp_path.glob("a.zarr/2m_temperature/[0-9]*") if path.is_file()]
    found[0].unlink()
    os.mkfifo(found[0])
    options = {"area": "53,-3,50,2", "period": "2019-03-01..2019-03-03"}
    with pytest.raises(DataError, match=r"is a pipe; only regular files can be read here"):
        fetch(Store(tmp_path / "store"), tmp_path / "a.zarr", **options)


def test_a_day_that_no_memory_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr("numtok.data.weather.gridded.memory", lambda: 4 * 100)
    cds().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with says.raises(DataError, f"{tmp_path}/a.nc", "3,456 bytes", "--area"):
        fetch(Store(tmp_path / "store"), tmp_path / "a.nc")


@needs_real
def test_a_real_file_of_one_step_has_no_axis_of_time(tmp_path: Path) -> None:
    made = field(fetch(Store(tmp_path), REAL / "extra" / "earthkit_test.nc", variable="msl"))
    assert made.shape == (1, 8, 13) and made.attrs["units"] == "Pa"


def forecasts() -> "xr.Dataset":
    dataset = grid().assign_coords(step=np.timedelta64(6, "h"))
    dataset = dataset.assign_coords(valid_time=dataset.time)
    dataset["time"] = dataset.time - np.timedelta64(6, "h")
    return dataset


@pytest.mark.parametrize(
    ("dataset", "steps"),
    [(grid().isel(time=5), 1), (forecasts(), 18)],
    ids=["a message alone, as cfgrib opens it", "forecasts, with times of validity"],
)
def test_times_are_those_of_validity_of_one_step_or_many(
    tmp_path: Path, dataset: Any, steps: int
) -> None:
    dataset.to_netcdf(tmp_path / "one.nc", engine="h5netcdf")
    made = field(fetch(Store(tmp_path / "store"), tmp_path / "one.nc"))
    assert made.shape == (steps, 4, 6)
    check(made)


# --- missing data --------------------------------------------------------------------------------


def test_a_day_without_values_is_refused_or_left_out(tmp_path: Path, says: Says) -> None:
    """All values of a day are NaN, as on 2025-02-19 in an earlier state of the public store."""
    dataset = grid()
    dataset["2m_temperature"][8] = np.nan
    path, store = write(dataset, tmp_path / "a.zarr"), Store(tmp_path / "store")
    with says.raises(DataError, "1 day (2019-03-02)", "--missing drop"):
        fetch(store, path)
    artifact = fetch(store, path, missing="drop")
    made = field(artifact)
    assert made.time.dt.day.values.tolist() == [1] * 6 + [3] * 6
    check(made)
    assert artifact.manifest.counts["days_dropped"] == 1
    assert artifact.manifest.facts["dropped"] == ["2019-03-02"]
    with pytest.raises(DataError) as caught:
        fetch(store, path)
    told = str(caught.value).replace(artifact.ref, "REF")
    says(told, "existing REF", "1 day (2019-03-02)", "--missing drop")


@pytest.mark.integration
@pytest.mark.parametrize(("version", "fill"), [(2, 0.0), (2, float("nan")), (3, 0.0), (3, 273.0)])
def test_an_object_that_is_not_there_is_never_read_as_its_fill_value(
    tmp_path: Path, server: Server, version: int, fill: float
) -> None:
    dataset = grid()
    filled = {"_FillValue": fill} if version == 2 else {"fill_value": fill, "_FillValue": None}
    path = write(dataset, tmp_path / "a.zarr", version, **filled)
    key = "2m_temperature/8.0.0" if version == 2 else "2m_temperature/c/8/0/0"
    (path / key).unlink()
    place = str(path) if fill else serve(server, path)
    store = Store(tmp_path / "store")
    with pytest.raises(DataError, match=r"has missing values on 1 day \(2019-03-02\)"):
        fetch(store, place, **WINDOW)
    made = field(fetch(store, place, missing="drop", **WINDOW))
    assert made.shape == (12, 4, 6)
    check(made)


def test_days_that_the_axis_lacks_are_counted_as_well(tmp_path: Path, says: Says) -> None:
    dataset = grid(days=4).isel(time=[k for k in range(24) if k != 8 and not 12 <= k < 18])
    path, store = write(dataset, tmp_path / "a.zarr"), Store(tmp_path / "store")
    with says.raises(DataError, "missing steps on 2 days (2019-03-02, 2019-03-03)"):
        fetch(store, path)
    made = field(fetch(store, path, missing="drop"))
    assert made.time.dt.day.values.tolist() == [1] * 6 + [4] * 6
    check(made)


def test_a_value_that_cannot_occur_is_refused_with_time_and_place(
    tmp_path: Path, says: Says
) -> None:
    """The file does not declare these fill values."""
    for number, value in enumerate((9.999e20, -32767.0, 90.0)):
        with case(value=value):
            dataset = grid()
            dataset["2m_temperature"][8, 1, 2] = value
            path, store = write(dataset, tmp_path / f"{number}.zarr"), Store(tmp_path / "store")
            with says.raises(
                DataError,
                f"{value:g} K",
                "2019-03-02T08:00, latitude 52, longitude 2",
                "100 to 400",
            ):
                fetch(store, path)
            artifact = fetch(store, path, missing="drop")
            assert artifact.manifest.facts["dropped"] == ["2019-03-02"]
            check(made := field(artifact))
            facts = artifact.manifest.facts
            assert facts["lowest"] == float(made.min()) and facts["highest"] == float(made.max())


def test_days_that_are_not_whole_are_refused_or_left_out(tmp_path: Path, says: Says) -> None:
    for number, steps in enumerate((slice(0, 9), slice(3, 12), slice(3, 15))):
        with case(steps=steps):
            path = write(grid().isel(time=steps), tmp_path / f"{number}.zarr")
            store = Store(tmp_path / "store")
            with says.raises(DataError, "missing steps", "2019-03-0", "--missing drop"):
                fetch(store, path)
            made = fetch(store, path, missing="drop")
            assert made.manifest.counts["steps"] == 6
            assert made.manifest.counts["days_dropped"] == (2 if number == 2 else 1)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("period", "days"),
    [
        ("2019-03-01..2019-03-04", ["2019-03-03", "2019-03-04"]),  # the gap is at the end
        ("2019-03-04..2019-03-06", ["2019-03-04", "2019-03-05"]),  # the gap is at the beginning
        ("2019-03-05", ["2019-03-05"]),
        ("2019-03-06..2019-03-07", []),
    ],
)
def test_a_hole_at_an_end_of_the_period_is_no_smaller_period(
    tmp_path: Path, period: str, days: list[str]
) -> None:
    """The axis has a gap from 4 hours into the third day to 8 hours into the fifth."""
    dataset = grid(days=7).isel(time=[k for k in range(42) if not 13 <= k < 26])
    path, store = write(dataset, tmp_path / "a.zarr"), Store(tmp_path / "store")
    if not days:
        assert field(fetch(store, path, period=period)).shape[0] == 12
        return
    with pytest.raises(DataError, match=rf"has missing steps on {len(days)} day") as caught:
        fetch(store, path, period=period)
    assert f"({', '.join(days)})" in str(caught.value)
    if period == "2019-03-05":
        with pytest.raises(DataError, match=r"^no day is left: "):
            fetch(store, path, period=period, missing="drop")
        return
    artifact = fetch(store, path, period=period, missing="drop")
    assert artifact.manifest.facts["dropped"] == days
    check(made := field(artifact))
    assert made.sizes["time"] % 6 == 0 and made.sizes["time"]


def test_where_every_day_lacks_values_nothing_is_made(tmp_path: Path, says: Says) -> None:
    dataset = grid(days=2)
    dataset["2m_temperature"][::5, 0, 0] = np.nan
    path, store = write(dataset, tmp_path / "a.zarr"), Store(tmp_path / "store")
    with says.raises(DataError, "no day is left", "2019-03-01T00:00..2019-03-02T20:00"):
        fetch(store, path, missing="drop")
    assert store.artifacts() == []
    # A window without these cells has values on all days.
    check(field(fetch(store, path, area="52,-3,50,2")))


@pytest.mark.integration
@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_where_some_cells_never_have_a_value_it_is_said_how_many(
    tmp_path: Path, missing: str
) -> None:
    """Like the sea temperature on land, which is missing in every period."""
    dataset = grid(days=8)
    dataset["2m_temperature"][:, :2, 4:] = np.nan
    path, store = write(dataset, tmp_path / "a.zarr"), Store(tmp_path / "store")
    with pytest.raises(DataError) as caught:
        fetch(store, path, missing=missing)
    assert ": 4 of 24 cells never have a value" in str(caught.value)
    check(field(fetch(store, path, area="53,0,50,2", missing=missing)))


def test_an_axis_with_an_object_missing_is_refused(tmp_path: Path, says: Says) -> None:
    path = write(grid(), tmp_path / "a.zarr")
    (path / "latitude" / "0").unlink()
    with says.raises(DataError, str(path), "latitude/0 is missing"):
        fetch(Store(tmp_path / "store"), path)


def test_on_an_axis_the_fill_value_is_a_value(tmp_path: Path) -> None:
    """zarr gives arrays of format 2 a default fill value of 0, which xarray reads as NaN."""
    dataset = grid(latitudes=range(-2, 3))
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    named = {"time": np.arange(18) * 4, "latitude": range(2, -3, -1), "longitude": [*range(6)]}
    named["longitude"] = dataset.longitude.values
    for name, values in [*named.items(), ("2m_temperature", dataset["2m_temperature"].values)]:
        array = np.array(values)
        axes = ["time", "latitude", "longitude"] if array.ndim == 3 else [name]
        attributes: dict[str, Any] = {"_ARRAY_DIMENSIONS": axes}
        if name == "time":
            attributes["units"] = f"hours since {START}"
        group.create_array(name, data=array, attributes=attributes, fill_value=0)
    made = field(fetch(Store(tmp_path / "store"), tmp_path / "a.zarr", area="2,-2,-2,2"))
    assert made.shape == (18, 5, 5)
    check(made)


@pytest.mark.integration
def test_zeros_are_values_where_nobody_chose_a_fill_value(tmp_path: Path) -> None:
    """Rain in a store of format 2 with zarr's default fill value; then one object is missing."""
    dataset = grid(name="tp")
    dataset["tp"] = dataset["tp"].where(dataset.latitude > 51, 0)
    path = write(dataset, tmp_path / "a.zarr", _FillValue=0.0)
    assert zarr.open_group(path, mode="r")["tp"].fill_value == 0  # type: ignore[union-attr]
    store = Store(tmp_path / "store")
    made = field(fetch(store, path, variable="tp"))
    assert (made.values[:, :2] == 0).all() and made.attrs["units"] == "K"
    check(made.sel(latitude=slice(52, 53)))
    (path / "tp" / "8.0.0").unlink()
    with pytest.raises(DataError, match=r"has missing values on 1 day \(2019-03-02\)"):
        fetch(store, path, variable="tp")


def test_a_fill_value_that_somebody_chose_is_missing(tmp_path: Path) -> None:
    dataset = grid()
    dataset["2m_temperature"][8, 0, 0] = np.nan
    path = write(dataset, tmp_path / "a.zarr", _FillValue=-999.0)
    with pytest.raises(DataError, match=r"has missing values on 1 day \(2019-03-02\)"):
        fetch(Store(tmp_path / "store"), path)


@pytest.mark.parametrize(
    ("asked", "got"), [(RangeByteRequest(4, 10), 5), (SuffixByteRequest(6), 5), (None, 12)]
)
def test_a_part_of_an_object_that_is_too_short_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, asked: Any, got: int
) -> None:
    """Parts are requested from sharded stores."""
    monkeypatch.setattr(file_systems, "PAUSE", 0.001)
    whole = bytes(range(12))
    answers = [whole[:got], whole[: 6 if asked else 12]]

    class Short(zarr.storage.MemoryStore):
        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            return prototype.buffer.from_bytes(answers.pop(0))

    store = objects.Objects(Short(read_only=True), "https://a.b", attempts=2)
    found = asyncio.run(store.get("x/c/0", default_buffer_prototype(), asked))
    assert found is not None and len(found) == (6 if asked else 12)
    assert len(answers) == (0 if asked else 1)


def test_steps_outside_the_valid_time_of_a_store_are_not_data(tmp_path: Path, says: Says) -> None:
    dataset = grid(days=6).assign_attrs(
        valid_time_start="2019-03-02",
        valid_time_stop="2019-03-04",
        valid_time_stop_era5t="2019-03-05",
    )
    path, store = write(dataset, tmp_path / "a.zarr"), Store(tmp_path / "store")
    made = field(fetch(store, path))
    assert made.time.dt.day.values.tolist() == [2] * 6 + [3] * 6 + [4] * 6
    check(made)
    with says.raises(
        UsageError, str(path), "--period 2019-03-03..2019-03-05", "2019-03-02..2019-03-04", "ERA5T"
    ):
        fetch(store, path, period="2019-03-03..2019-03-05")


# --- a server with faults ------------------------------------------------------------------------

OBJECT = "/store.zarr/2m_temperature/5.0.0"  # of the second day


def hourly(folder: Path, days: int = 3) -> Path:
    """Write a store with eight hours per object, read a day at a time."""
    return write(grid(days, 1), folder / "a.zarr", chunks=(8, 4, 6))


def asked_for(server: Server) -> set[int]:
    return {int(path.rpartition("/")[2][:-4]) for path, _ in server.asked if path.endswith(".0.0")}


@pytest.mark.integration
@pytest.mark.parametrize(
    "faults", [["500", "503"], ["half"], ["half", "429", "half"], ["slow"], ["short", "500"]]
)
def test_what_fails_on_the_way_is_tried_again(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, faults: list[str]
) -> None:
    monkeypatch.setattr(file_systems, "PATIENCE", 0.3)
    place = serve(server, hourly(tmp_path))
    server.faults[OBJECT] = list(faults)
    check(field(fetch(Store(tmp_path / "store"), place, **WINDOW)))
    assert [path for path, _ in server.asked].count(OBJECT) == len(faults) + 1


@pytest.mark.integration
@pytest.mark.parametrize(
    ("fault", "asked", "why"),
    [
        ("500", 4, "500 Internal Server Error"),
        ("403", 1, "403 Forbidden"),
        ("slow", 4, "no byte within 0.3 seconds"),
        pytest.param("half", 4, "Response payload is not completed: ", marks=pytest.mark.slow),
        pytest.param("short", 4, "it has ", marks=pytest.mark.slow),
    ],
)
def test_what_goes_on_failing_is_one_clear_line_and_then_goes_on(
    tmp_path: Path,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    asked: int,
    why: str,
) -> None:
    monkeypatch.setattr(file_systems, "PATIENCE", 0.3)
    place = serve(server, hourly(tmp_path))
    server.faults[OBJECT] = [fault] * asked
    store = Store(tmp_path / "store")
    with pytest.raises(StoreError) as caught:
        fetch(store, place, **WINDOW)
    assert str(caught.value).startswith(f"cannot read 2m_temperature/5.0.0 of {place}: {why}")
    assert "run the same command again" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [path for path, _ in server.asked].count(OBJECT) == asked
    server.asked.clear()
    artifact = fetch(store, place, **WINDOW)
    check(field(artifact))
    assert asked_for(server) == set(range(3, 9))  # the first day was finished
    whole = fetch(Store(tmp_path / "other"), place, **WINDOW)
    assert whole.manifest.content == artifact.manifest.content


def test_an_object_of_blosc_that_lacks_a_byte_is_noticed(tmp_path: Path) -> None:
    """Blosc itself unpacks it without an error, to other values."""
    dataset = grid(4, 1, latitudes=range(0, 64), longitudes=range(0, 64))
    values = dataset["2m_temperature"]
    values += np.random.default_rng(0).normal(size=values.shape).astype(np.float32)
    path = write(dataset, tmp_path / "a.zarr", chunks=(24, 64, 64))
    target = path / "2m_temperature" / "1.0.0"
    target.write_bytes(target.read_bytes()[:-1])
    told = f"cannot read 2m_temperature/1.0.0 of {path}: it has "
    with pytest.raises(DataError, match=re.escape(told)):
        fetch(Store(tmp_path / "store"), path)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("content", [b"", b"<html>Sign in</html>", None])
def test_an_object_that_is_something_else_is_one_clear_line(
    tmp_path: Path, server: Server, version: int, content: bytes | None
) -> None:
    path = write(grid(), tmp_path / "a.zarr", version, compressors=None)
    place = serve(server, path)
    key = OBJECT if version == 2 else "/store.zarr/2m_temperature/c/5/0/0"
    server.files[key] = server.files[key][:-4] if content is None else content
    with pytest.raises(StoreError) as caught:
        fetch(Store(tmp_path / "store"), place, **WINDOW)
    assert str(caught.value).startswith(
        f"cannot read 2m_temperature of {place} at 2019-03-01T00:00..2019-03-03T20:00: "
    )
    assert "\n" not in str(caught.value)


def test_no_store_at_an_address_is_told(tmp_path: Path, server: Server, says: Says) -> None:
    with pytest.raises(StoreError) as caught:
        fetch(Store(tmp_path), server.url + "/nothing.zarr", **WINDOW)
    told = str(caught.value).replace(server.url, "URL")
    says(told, "URL/nothing.zarr", "no zarr store", "address")


def test_nobody_at_an_address_is_told(numtok: Shell, server: Server) -> None:
    server.close()
    options = ("--area", WINDOW["area"], "--period", WINDOW["period"])
    ran = numtok("fetch", "era5", "--from", server.url + "/a.zarr", *options)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("numtok: cannot read ") and ran.err.count("\n") == 1
    assert "Cannot connect to host 127.0.0.1" in ran.err


@pytest.mark.integration
def test_google_storage_is_read_through_gcsfs(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(grid(), tmp_path / "a.zarr")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    for file in path.rglob("*"):
        if file.is_file():
            name = quote(f"ar/a.zarr/{file.relative_to(path).as_posix()}", safe="")
            server.files[f"/download/storage/v1/b/bucket/o/{name}"] = file.read_bytes()
    artifact = fetch(Store(tmp_path / "store"), "gs://bucket/ar/a.zarr", **WINDOW)
    check(field(artifact))
    assert artifact.manifest.facts["source"] == "gs://bucket/ar/a.zarr"
    # The other protocol leads to the same artifact, which is known without a request.
    server.close()
    again = fetch(
        Store(tmp_path / "store"), "https://storage.googleapis.com/bucket/ar/a.zarr/", **WINDOW
    )
    assert again.ref == artifact.ref


# --- killed, out of disk, made again -------------------------------------------------------------


EIGHT_DAYS = {"area": "53,-3,50,2", "period": "2019-03-01..2019-03-08"}


@contextmanager
def another_process(folder: Path, place: str) -> "Iterator[subprocess.Popen[str]]":
    """Run ``numtok fetch era5`` for eight days in its own process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    window = [word for key, value in EIGHT_DAYS.items() for word in (f"--{key}", value)]
    with subprocess.Popen(
        [sys.executable, "-m", "numtok", "fetch", "era5", "--from", place, *window],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        yield running


def wait_for_receipts(folder: Path, count: int) -> int:
    """Wait until at least ``count`` days are finished, at most a minute; return how many are."""
    place = folder / "artifacts" / "field" / "era5-2m_temperature"
    deadline = time.monotonic() + 60
    while (done := len(list(place.glob(".draft-*/receipts/object-*")))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return done


@pytest.mark.integration
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path: Path, server: Server) -> None:
    place = serve(server, hourly(tmp_path, 8))
    # A held object keeps the run from finishing before it is killed.
    server.faults["/store.zarr/2m_temperature/20.0.0"] = ["held"]
    with another_process(tmp_path, place) as running:
        wait_for_receipts(tmp_path, 3)
        running.kill()
    server.faults.clear()  # the killed run may not have requested it
    done = wait_for_receipts(tmp_path, 3)
    assert done < 8
    server.asked.clear()
    artifact = fetch(Store(tmp_path / "artifacts"), place, **EIGHT_DAYS)
    check(field(artifact))
    assert asked_for(server) == set(range(3 * done, 24))
    whole = fetch(Store(tmp_path / "other"), place, **EIGHT_DAYS)
    assert whole.manifest.content == artifact.manifest.content


@pytest.mark.integration
def test_what_was_read_before_a_store_got_more_days_is_read_again(
    tmp_path: Path, server: Server
) -> None:
    path = hourly(tmp_path, 4)
    with xr.open_zarr(path, chunks=None) as dataset:
        # One day is missing at first, so all later days are in other objects.
        lacking = dataset.load().isel(time=[k for k in range(96) if not 24 <= k < 48])
    for array in lacking.variables.values():
        array.encoding.clear()
    window = WINDOW | {"period": "2019-03-01..2019-03-04", "missing": "drop"}
    place = serve(server, write(lacking, tmp_path / "b.zarr", chunks=(8, 4, 6)))
    server.faults["/store.zarr/2m_temperature/7.0.0"] = ["403"]  # of the last day
    store = Store(tmp_path / "store")
    with pytest.raises(StoreError):
        fetch(store, place, **window)
    serve(server, path)
    made = field(fetch(store, place, **window))
    assert made.shape == (96, 4, 6)
    check(made)


def test_days_that_were_dropped_before_are_not_where_none_may_be(
    tmp_path: Path, server: Server
) -> None:
    dataset = grid(days=12)
    dataset["2m_temperature"][8] = np.nan  # of the second day
    place = serve(server, write(dataset, tmp_path / "b.zarr", chunks=(8, 4, 6)))
    server.faults["/store.zarr/2m_temperature/8.0.0"] = ["403"]  # of the last day
    store, window = Store(tmp_path / "store"), WINDOW | {"period": "2019-03-01..2019-03-12"}
    with pytest.raises(StoreError):
        fetch(store, place, missing="drop", **window)
    assert len(list((tmp_path / "store").rglob("receipts/object-*"))) == 1
    with pytest.raises(DataError, match=r"has missing values on 1 day \(2019-03-02\)"):
        fetch(store, place, **window)


def test_what_else_runs_beside_zarr_is_left_alone(tmp_path: Path) -> None:
    """All code in a process shares one event loop."""
    going, path = threading.Event(), write(grid(), tmp_path / "a.zarr")

    async def other() -> str:
        while not going.is_set():
            await asyncio.sleep(0.01)
        return "done"

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sync, other())
        fetch(Store(tmp_path / "store"), path)
        going.set()
        assert running.result(timeout=60) == "done"


@pytest.mark.integration
@pytest.mark.parametrize("interrupted", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_nothing_is_printed_of_what_ran_beside_the_object_that_failed(
    tmp_path: Path, server: Server, interrupted: bool
) -> None:
    """zarr leaves its other requests running, which print errors if nothing awaits them."""
    place = serve(server, hourly(tmp_path, 8))
    for index in (13, 14):
        server.faults[f"/store.zarr/2m_temperature/{index}.0.0"] = ["held"]
    server.faults["/store.zarr/2m_temperature/12.0.0"] = ["held"] if interrupted else ["403"]
    with another_process(tmp_path, place) as running:
        if interrupted:
            wait_for_receipts(tmp_path, 4)
            running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    if interrupted:
        assert (running.returncode, told) == (130, "numtok: interrupted\n")
    else:
        assert running.returncode == 4 and told.count("\n") == 1 and "403 Forbidden; " in told


@pytest.mark.integration
def test_a_full_disk_at_every_fifth_write_loses_nothing(tmp_path: Path) -> None:
    dataset = grid(days=6, latitudes=[1], longitudes=[2])
    dataset["2m_temperature"][7] = np.nan
    path = write(dataset, tmp_path / "a.zarr", chunks=(6, 1, 1))
    config = Config("era5", options={"from_": str(path), "missing": "drop"})

    def made(store: Store) -> Result:
        (result,) = run(config, store, lambda *told: None)
        return result

    with installed(Plan("trace")) as traced:
        whole = made(Store(tmp_path / "whole")).artifact
    assert whole is not None
    writes = [at for at, name in enumerate(traced.trace, 1) if name in ("write", "mkdir")]
    for at in writes[::5]:
        store = Store(tmp_path / f"store-{at}")
        with installed(Plan("enospc", at)), pytest.raises(StoreError, match="No space left"):
            made(store)
        again = made(store).artifact
        assert again is not None and again.manifest.content == whole.manifest.content
    check(field(whole))


@pytest.mark.integration
def test_a_copy_makes_the_same_version_and_another_window_another(tmp_path: Path) -> None:
    for suffix in (".nc", ".zarr"):
        first, second = tmp_path / f"a{suffix}", tmp_path / "elsewhere" / f"b{suffix}"
        second.parent.mkdir(exist_ok=True)
        for path in (first, second):
            if suffix == ".nc":
                cds().to_netcdf(path, engine="h5netcdf")
            else:
                write(grid(), path)
        if suffix == ".nc":
            second.write_bytes(first.read_bytes())
        one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
        artifact = fetch(one, first, area="52,-2,51,1")
        copy = fetch(other, second, area="52,-2,51,1")
        assert copy.ref == artifact.ref
        assert copy.manifest.content == artifact.manifest.content
        assert fetch(one, first, area="52,-2,51,0").version != artifact.version
        assert fetch(one, first, area="52,-2,51,1", variable="2t").version == artifact.version


def test_of_a_store_in_a_folder_only_what_is_read_is_part_of_the_version(tmp_path: Path) -> None:
    path, store = write(grid(), tmp_path / "a.zarr"), Store(tmp_path / "store")
    artifact = fetch(store, path, period="2019-03-02")
    changed = path / "2m_temperature" / "14.0.0"
    changed.write_bytes(b"another day")
    assert fetch(store, path, period="2019-03-02").ref == artifact.ref
    other = grid()
    other["2m_temperature"] += 1
    (path / "2m_temperature" / "8.0.0").write_bytes(
        (write(other, tmp_path / "b.zarr") / "2m_temperature" / "8.0.0").read_bytes()
    )
    assert fetch(store, path, period="2019-03-02").version != artifact.version


def test_force_reads_again_and_tells_what_changed(tmp_path: Path, server: Server) -> None:
    place = serve(server, write(grid(), tmp_path / "a.zarr"))
    config = Config("era5", options={"from_": place, **WINDOW})
    store = Store(tmp_path / "store")
    (first,) = run(config, store, lambda *told: None)
    server.files[OBJECT] = server.files[OBJECT.replace("/5", "/4")]
    (again,) = run(config, store, lambda *told: None)
    assert (again.ref, again.made) == (first.ref, False)
    with pytest.raises(NegativeVerdict, match=r"differs in field.zarr/2m_temperature/c.0.0.0\."):
        list(run(replace(config, force=True), store, lambda *told: None))


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.integration
def test_the_command_prints_shape_days_and_what_makes_it_again(
    numtok: Shell, tmp_path: Path
) -> None:
    path = write(grid(days=4), tmp_path / "a.zarr")
    (path / "2m_temperature" / "8.0.0").unlink()
    options = ["--from", str(path), "--area", "52,-2,51,1", "--missing", "drop"]
    told = numtok("fetch", "era5", *options, "--dry-run")
    assert (told.code, told.err) == (0, "") and not (tmp_path / "artifacts").exists()
    lines = [line.split(maxsplit=1) for line in told.out.splitlines()]
    assert ["steps", "24"] in lines and ["objects", "to", "read", "24"] in map(
        str.split, told.out.splitlines()
    )
    assert ["first", "2019-03-01T00:00"] in lines and ["last", "2019-03-04T20:00"] in lines
    ran = numtok("fetch", "era5", *options)
    ref = ran.out.strip()
    assert ran.code == 0 and f"would make   {ref}".split()[-1] in told.out
    shown = [line.split() for line in ran.err.splitlines()]
    assert ["steps", "18"] in shown and ["left", "out", "1"] in shown and ["units", "K"] in shown
    assert "numtok: Contains modified Copernicus Climate Change Service information 2019. " in (
        ran.err
    )
    assert "numtok: 1 day left out: 2019-03-02\n" in ran.err
    made = Store(Path("artifacts")).resolve(ref).manifest
    assert numtok(*made.command[1:]).out == ran.out
    again = numtok("fetch", "era5", *options, "--dry-run")
    assert (
        again.out == ran.out
        and "already in the store" in again.err
        and "2m_temperature" in again.err
    )
    assert made.facts["licence"].startswith("CC-BY-4.0")
    assert "attribution" in numtok("show", ref).out and ref[:-8] in numtok("ls").out
    assert numtok("verify", ref).code == 0


def test_public_stores_are_known_by_name() -> None:
    window = {"area": "58,350,50,2", "period": "2019-03-01"}
    keys = [Era5(place, **window).key for place in _PLACES]
    assert [key["place"] for key in keys] == list(_PLACES.values())
    assert {key["area"] for key in keys} == {"58,-10,50,2"}
    assert Era5(**window).key == Era5("arco", missing="drop", every=None, **window).key


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("", ["fetch era5 from arco needs --area N,W,S,E", "--area 58,-10,50,2", "--period"]),
        ("--area 58,-10,50,2", ["fetch era5 from arco needs --period", "--area 58,-10,50,2"]),
        ("--from nowhere", ["--from nowhere", "not found", "arco, weatherbench2"]),
        ("--from s3://bucket/a.zarr", ["--from", "s3://bucket/a.zarr", "gs://"]),
        ("--missing fill", ["--missing", "refuse or drop", "'fill'"]),
        ("--set airfoil", ["unknown option --set", "`numtok fetch era5 --help`"]),
    ],
)
def test_what_cannot_be_fetched_is_told_in_one_line(
    numtok: Shell, arguments: str, parts: list[str], says: Says
) -> None:
    ran = numtok("fetch", "era5", *arguments.split())
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    says(ran.err, "numtok: ", *parts)


def files_that_are_no_field(folder: Path) -> Iterator[tuple[list[str], Path, dict[str, str]]]:
    """Yield parts of the message, the file, and the options to read it with."""

    def saved(name: str, dataset: "xr.Dataset") -> Path:
        dataset.to_netcdf(folder / name, engine="h5netcdf")
        return folder / name

    wind = {"variable": "u10"}
    yield ["'10m_u_component_of_wind'", "Known: 2m_temperature"], saved("a.nc", cds()), wind
    yield ["`date`", "monthly means", "hourly"], saved("b.nc", grid().rename(time="date")), {}
    months = grid(days=1, step=8)
    months["time"] = np.array(["2019-01-01", "2019-02-01", "2019-03-01"], "datetime64[ns]")
    yield ["its steps are months", "monthly means"], saved("c.nc", months), {}
    levels = xr.concat([grid(), grid()], "level").assign_coords(level=[500, 850])
    yield ["it has 2 values of level", "one"], saved("d.nc", levels), {}
    native = grid().stack(values=("latitude", "longitude")).reset_index("values")
    yield ["time, values", "regular grid", "nterpolate"], saved("e.nc", native), {}
    north = "60,-3,50,2"
    yield [f"--area {north}", "50 to 53"], saved("f.nc", grid()), {"area": north}
    beyond = ["--period 2019-04-01..2019-04-01", "2019-03-01T00:00 to 2019-03-03T20:00"]
    yield beyond, folder / "f.nc", {"period": "2019-04-01"}
    timeless = saved("g.nc", grid().isel(time=0).drop_vars("time"))
    yield ["latitude, longitude", "time or valid_time"], timeless, {}


@pytest.mark.integration
def test_what_is_no_field_is_told_in_one_line(tmp_path: Path, says: Says) -> None:
    for parts, path, options in files_that_are_no_field(tmp_path):
        with case(*parts), says.raises((DataError, UsageError), f"{path}: ", *parts):
            fetch(Store(tmp_path / "store"), path, **options)


def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path, says: Says) -> None:
    grid().to_netcdf(tmp_path / "whole.nc", engine="h5netcdf")
    whole = (tmp_path / "whole.nc").read_bytes()
    (tmp_path / "folder").mkdir()
    for name, content in {
        "a.nc": b"<html>The request is queued</html>",
        "b.nc": whole[: len(whole) // 2],
        "c.nc": b"CDF\x01torn",
        "d.grib": b"GRIB\x00\x00\x10\x01torn",
        "e.zip": b"PK\x03\x04torn",
        "folder": None,
    }.items():
        path = tmp_path / name
        if content:
            path.write_bytes(content)
        with case(name):
            with pytest.raises(DataError) as caught:
                fetch(Store(tmp_path / "store"), path)
            assert "\n" not in str(caught.value) and str(path) in str(caught.value)
            if name == "a.nc":
                says(caught, "starts with b'<html>Th'", "NetCDF")
            if name == "folder":
                says(caught, "is a folder but not a zarr store", "NetCDF or GRIB")


@needs_real
def test_real_data_on_levels_are_refused(tmp_path: Path) -> None:
    path = REAL / "extra" / "earthkit_test_zarr_v2"
    with pytest.raises(DataError, match="it has 2 values of level"):
        fetch(Store(tmp_path), path, variable="t")


def test_without_a_package_the_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    write(grid(days=1), tmp_path / "a.zarr")
    grid(days=1).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    (tmp_path / "c.grib").write_bytes(b"GRIBxxxx")
    public = "https://storage.googleapis.com/bucket/a.zarr"
    for module, place, parts in [
        ("xarray", "a.zarr", ["fetch era5", "`pip install xarray zarr`"]),
        ("zarr", "a.zarr", ["fetch era5", "`pip install xarray zarr`"]),
        ("h5netcdf", "a.nc", ["reading NetCDF 4", "`pip install h5netcdf h5py`"]),
        ("cfgrib", "c.grib", ["reading GRIB", "`pip install cfgrib`"]),
        ("gcsfs", "gs://bucket/a.zarr", ["gs://", "`pip install gcsfs`", f"--from {public}"]),
        ("aiohttp", "https://a.b/c.zarr", ["a.b/c.zarr", "`pip install fsspec aiohttp`"]),
    ]:
        with case(module), monkeypatch.context() as patch:
            for name in list(sys.modules):
                if name == module or name.startswith(f"{module}."):
                    patch.delitem(sys.modules, name)
            patch.setitem(sys.modules, module, None)
            remote = "://" in place
            with says.raises(UsageError, *parts):
                fetch(
                    Store(tmp_path / "store"),
                    place if remote else tmp_path / place,
                    **(WINDOW if remote else {}),
                )


def test_without_gcsfs_a_public_store_is_read_over_https(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def web(place: str, *_: Any, **more: Any) -> Any:
        asked.append(place)
        raise StoreError("no network in a test")

    monkeypatch.setitem(sys.modules, "gcsfs", None)
    monkeypatch.setattr("numtok.data.fetching.file_systems.web", web)
    with pytest.raises(StoreError, match="no network in a test"):
        fetch(Store(tmp_path), "weatherbench2-64x32", **WINDOW)
    assert asked == [
        "https://storage.googleapis.com/weatherbench2/datasets/era5/"
        "1959-2023_01_10-6h-64x32_equiangular_conservative.zarr"
    ]
