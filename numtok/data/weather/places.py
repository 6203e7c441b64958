"""Open zarr stores, NetCDF files (old and new format), GRIB files and zips with xarray.

The format of a file is detected from its first bytes. Opening reads only the axes, not the values.
Import this module only after checking that xarray and zarr are installed.
"""

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr
import zarr

from numtok.data.weather.field import public_name
from numtok.data.weather.objects import Objects, objects, quietly, unreadable
from numtok.errors import DataError, NumtokError, StoreError, UsageError, needing
from numtok.store.quota import Quota


@dataclass(frozen=True, eq=False)
class Opened:
    """An opened data set whose values have not been read yet.

    store, group
        The zarr store and its root group; None for files.
    """

    location: str
    dataset: xr.Dataset
    store: Objects | None = None
    group: zarr.Group | None = None


@contextmanager
def opened(location: str, variable: str, quota: Quota) -> Iterator[Opened]:
    """Open the data set at a path or an address.

    In a zip, the file that contains ``variable`` (a public name) is opened. Raises UsageError if a
    library is missing or a zip exceeds the quota, DataError if the file is damaged or its format is
    not supported, and StoreError if the network or a store fails.
    """
    with ExitStack() as stack:
        if "://" in location or Path(location).is_dir():
            yield stack.enter_context(_store(location))
        else:
            with quietly():
                dataset = _file(location, variable, quota, stack)
            yield dataset


@contextmanager
def _store(location: str) -> Iterator[Opened]:
    remote = "://" in location
    with objects(location) as store:
        try:
            with quietly():
                group = zarr.open_group(store, mode="r")
                arrays = {name: group.get(name) for name in group.array_keys()}
                store.packed = tuple(
                    f"{name}/" for name, array in arrays.items() if _is_blosc(array)
                )
                masked = {name: _is_masked(array) for name, array in arrays.items()}
                dataset = xr.open_zarr(
                    store, chunks=None, decode_timedelta=False, mask_and_scale=masked
                )
        except NumtokError:
            raise
        except FileNotFoundError:  # of either format
            raise _no_store(location, remote) from None
        except Exception as error:
            raise unreadable(location, location, error) from error
        with dataset:
            yield Opened(location, dataset, store, group)


def _is_masked(array: Any) -> bool:
    """Return whether fill values of an array are missing values, as xarray assumes in format 2.

    Only a fill value that was set explicitly marks missing values: zarr's default is 0, and zeros
    are values. Axes have no missing values: without 0 they would lose the equator, Greenwich or the
    first step."""
    chosen = {"scale_factor", "add_offset", "_FillValue", "missing_value"} & set(array.attrs)
    return bool(chosen) or (array.ndim != 1 and array.fill_value != 0)


def _is_blosc(array: Any) -> bool:
    """Return whether each object of an array is one Blosc buffer; a shard holds several."""
    if array.shards or not array.compressors:
        return False
    return "blosc" in type(array.compressors[-1]).__name__.lower()


def _no_store(location: str, remote: bool) -> NumtokError:
    if remote:
        return StoreError(
            f"{location}: no zarr store found (no .zmetadata, .zgroup or zarr.json). Check the "
            "address"
        )
    return DataError(
        f"{location} is a folder but not a zarr store (no .zmetadata, .zgroup or zarr.json). Pass "
        "a store, or a NetCDF or GRIB file"
    )


def _file(location: str, variable: str, quota: Quota, stack: ExitStack) -> Opened:
    path = Path(location)
    if not path.is_file():
        raise UsageError(f"--from {location}: file not found")
    if not zipfile.is_zipfile(path):
        return Opened(location, stack.enter_context(_dataset(path, location)))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="numtok-")))
    matches: list[xr.Dataset] = []
    for name, unpacked in _unpacked(path, folder, quota):
        dataset = stack.enter_context(_dataset(unpacked, f"{name} in {location}"))
        if variable in map(public_name, map(str, dataset.data_vars)):
            matches.append(dataset)
    if len(matches) != 1:
        raise DataError(
            f"{location} is a zip in which {len(matches)} files have the variable {variable}; "
            "exactly one must. Unpack it and pass one file"
        )
    return Opened(location, matches[0])


def _unpacked(path: Path, folder: Path, quota: Quota) -> Iterator[tuple[str, Path]]:
    """Unpack the files of a zip, such as the CDS sends, without trusting their names."""
    try:
        with zipfile.ZipFile(path) as packed:
            # zipfile unpacks at most the size declared here.
            size = sum(entry.file_size for entry in packed.infolist())
            quota.check_unpacked(str(path), path.stat().st_size, size)
            quota.check(str(path), folder, size, size)
            for index, entry in enumerate(packed.infolist()):
                if not entry.is_dir():
                    target = folder / str(index)
                    with packed.open(entry) as source, target.open("wb") as sink:
                        shutil.copyfileobj(source, sink)
                    yield entry.filename, target
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise unreadable(str(path), str(path), error) from error


def _dataset(path: Path, shown: str) -> xr.Dataset:
    """Open a NetCDF or GRIB file, detected by its first bytes."""
    try:
        with path.open("rb") as file:
            begins = file.read(8)
        if begins.startswith(b"GRIB"):
            return _grib(path)
        if begins.startswith(b"CDF"):
            return xr.open_dataset(path, engine="scipy", chunks=None, decode_timedelta=False)
        if begins == b"\x89HDF\r\n\x1a\n":
            return _netcdf4(path)
    except NumtokError:
        raise
    except Exception as error:  # of the formats' libraries
        raise unreadable(shown, str(path), error) from error
    raise DataError(f"{shown} must be NetCDF, GRIB, zarr or a zip (it starts with {begins!r})")


def _grib(path: Path) -> xr.Dataset:
    with needing("reading GRIB", "cfgrib"):
        try:
            import cfgrib  # noqa: F401
        except RuntimeError as error:  # without the library below it
            raise ImportError from error
    # Do not write an index file: the folder may not be writable.
    options: dict[str, Any] = {"indexpath": "", "errors": "ignore"}
    return xr.open_dataset(
        path, engine="cfgrib", chunks=None, decode_timedelta=False, backend_kwargs=options
    )


def _netcdf4(path: Path) -> xr.Dataset:
    with needing("reading NetCDF 4", "h5netcdf and h5py"):
        import h5netcdf  # noqa: F401
        import h5py  # noqa: F401
    return xr.open_dataset(path, engine="h5netcdf", chunks=None, decode_timedelta=False)
