"""What a place holds, opened with xarray: a zarr store, NetCDF of either kind, GRIB, or a zip.

Files are known by their first bytes, whatever they are called; nothing of them but the axes is
read. Imported where xarray and zarr are known to be installed.
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
    """A data set whose values are not read yet.

    store, group
        What it was opened from, where that is a zarr store; else None.
    """

    place: str
    dataset: xr.Dataset
    store: Objects | None = None
    group: zarr.Group | None = None


@contextmanager
def opened(place: str, variable: str, quota: Quota) -> Iterator[Opened]:
    """Open a place; of the files in a zip, the one that has a variable of that public name.

    Raises UsageError where a library is missing or a zip unpacks to more than the quota allows,
    DataError for what is no such file, StoreError where the network or a store fails.
    """
    with ExitStack() as stack:
        if "://" in place or Path(place).is_dir():
            yield stack.enter_context(_store(place))
        else:
            with quietly():
                found = _file(place, variable, quota, stack)
            yield found


@contextmanager
def _store(place: str) -> Iterator[Opened]:
    remote = "://" in place
    with objects(place) as store:
        try:
            with quietly():
                group = zarr.open_group(store, mode="r")
                arrays = {name: group.get(name) for name in group.array_keys()}
                store.packed = tuple(f"{name}/" for name, one in arrays.items() if _is_blosc(one))
                masked = {name: _is_masked(one) for name, one in arrays.items()}
                dataset = xr.open_zarr(
                    store, chunks=None, decode_timedelta=False, mask_and_scale=masked
                )
        except NumtokError:
            raise
        except FileNotFoundError:  # of either format
            raise _no_store(place, remote) from None
        except Exception as error:
            raise unreadable(place, place, error) from error
        with dataset:
            yield Opened(place, dataset, store, group)


def _is_masked(array: Any) -> bool:
    """Whether fill values of an array mean that something is missing, as xarray takes them in
    format 2. That is so where somebody chose one; zarr itself writes 0, and zeros are values. And
    an axis has no gaps: with 0 left out it would lose the equator, Greenwich or its first step."""
    chosen = {"scale_factor", "add_offset", "_FillValue", "missing_value"} & set(array.attrs)
    return bool(chosen) or (array.ndim != 1 and array.fill_value != 0)


def _is_blosc(array: Any) -> bool:
    """Whether each object of an array is one Blosc buffer; a shard holds several."""
    if array.shards or not array.compressors:
        return False
    return "blosc" in type(array.compressors[-1]).__name__.lower()


def _no_store(place: str, remote: bool) -> NumtokError:
    if remote:
        return StoreError(
            f"{place}: there is no zarr store (no .zmetadata, .zgroup or zarr.json); check the "
            "address"
        )
    return DataError(
        f"{place} is a folder and no zarr store (no .zmetadata, .zgroup or zarr.json); give a "
        "store, or one file of NetCDF or GRIB"
    )


def _file(place: str, variable: str, quota: Quota, stack: ExitStack) -> Opened:
    path = Path(place)
    if not path.is_file():
        raise UsageError(f"--from {place}: there is no such file")
    if not zipfile.is_zipfile(path):
        return Opened(place, stack.enter_context(_dataset(path, place)))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="numtok-")))
    held: list[xr.Dataset] = []
    for name, unpacked in _unpacked(path, folder, quota):
        dataset = stack.enter_context(_dataset(unpacked, f"{name} in {place}"))
        if variable in map(public_name, map(str, dataset.data_vars)):
            held.append(dataset)
    if len(held) != 1:
        raise DataError(
            f"{place} is a zip, and {len(held)} of its files have the variable {variable}; unpack "
            "it and give one file"
        )
    return Opened(place, held[0])


def _unpacked(path: Path, folder: Path, quota: Quota) -> Iterator[tuple[str, Path]]:
    """The files in a zip, as the CDS sends one in place of NetCDF; their names are not trusted."""
    try:
        with zipfile.ZipFile(path) as packed:
            # Of each file no more is unpacked than is said here.
            size = sum(entry.file_size for entry in packed.infolist())
            quota.check_unpacked(str(path), path.stat().st_size, size)
            quota.check(str(path), folder, size, size)
            for place, entry in enumerate(packed.infolist()):
                if not entry.is_dir():
                    target = folder / str(place)
                    with packed.open(entry) as source, target.open("wb") as sink:
                        shutil.copyfileobj(source, sink)
                    yield entry.filename, target
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise unreadable(str(path), str(path), error) from error


def _dataset(path: Path, place: str) -> xr.Dataset:
    """A file of NetCDF or GRIB, by its first bytes."""
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
        raise unreadable(place, str(path), error) from error
    raise DataError(
        f"{place} begins with {begins!r}: it is neither NetCDF nor GRIB, zarr nor a zip"
    )


def _grib(path: Path) -> xr.Dataset:
    with needing("reading GRIB", "cfgrib"):
        try:
            import cfgrib  # noqa: F401
        except RuntimeError as error:  # without the library below it
            raise ImportError from error
    # No index beside the file: the folder may not be ours.
    options: dict[str, Any] = {"indexpath": "", "errors": "ignore"}
    return xr.open_dataset(
        path, engine="cfgrib", chunks=None, decode_timedelta=False, backend_kwargs=options
    )


def _netcdf4(path: Path) -> xr.Dataset:
    with needing("reading NetCDF 4", "h5netcdf and h5py"):
        import h5netcdf  # noqa: F401
        import h5py  # noqa: F401
    return xr.open_dataset(path, engine="h5netcdf", chunks=None, decode_timedelta=False)
