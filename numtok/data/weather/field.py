"""One field: a variable on a grid of latitude and longitude at many times, as a zarr group.

::

    field.zarr/                     format 3; xarray.open_zarr opens it as it is
        2m_temperature/c.0.0.0 ...  float32 (time, latitude, longitude), STEPS steps of the whole
                                    grid in each object; units, licence, ... are its attributes
        time/, latitude/, longitude/    int64 hours or minutes since 1970, float64 degrees

The objects are made in memory and given out as bytes, so that the stage writes them as it writes
everything: whole or not at all. A :class:`Field` reads them, a run of times at a time; opening
reads the axes alone. zarr and xarray are imported by the functions that need them.
"""

import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from numtok import files
from numtok.errors import DataError, StoreError, UsageError
from numtok.records import Natural
from numtok.stored_json import StoredJson, Value, damaged

if TYPE_CHECKING:
    import xarray
    import zarr

FOLDER = "field.zarr"
STEPS = 24  # in each object
EVERY = (1, 2, 3, 4, 6, 8, 12, 24)  # hours from step to step, so that each day has the same
_EPOCH = "1970-01-01 00:00:00"
_AXES = ("time", "latitude", "longitude")
_ABOUT = "zarr.json"
_SINCE = re.compile(rf"(?:hours|minutes) since {_EPOCH}")
# An object may be of so many bytes, or of so many times what it is packed into.
_ALWAYS, _TIMES = 256 << 20, 1 << 13


def object_name(variable: str, index: int) -> str:
    """Where the steps ``index * STEPS`` and on lie.

    >>> object_name("2m_temperature", 3)
    '2m_temperature/c.3.0.0'
    """
    return f"{variable}/c.{index}.0.0"


def object_bytes(values: NDArray[np.float32]) -> bytes:
    """Values of at most STEPS steps [n, latitude, longitude], none of them NaN, packed."""
    objects, array = _one_object(values.shape[1:])
    whole = np.full(array.shape, np.nan, np.float32)
    whole[: len(values)] = values
    array[:] = whole
    made: bytes = objects[object_name(array.basename, 0)].to_bytes()
    return made


@lru_cache(maxsize=1)  # of one field after the other: a group takes longer to make than an object
def _one_object(grid: tuple[int, ...]) -> tuple[dict[str, Any], "zarr.Array[Any]"]:
    """A variable of one object, and the store that it is written to."""
    objects: dict[str, Any] = {}
    return objects, _variable(_group(objects), "one", (STEPS, *grid), {})


def other_objects(
    variable: str,
    times: NDArray[np.datetime64],
    latitudes: NDArray[np.float64],
    longitudes: NDArray[np.float64],
    attributes: Mapping[str, str],
) -> dict[str, bytes]:
    """By name, everything but the values: metadata, with attributes of the variable, and the axes
    of a field [times, latitudes, longitudes]."""
    import zarr

    objects: dict[str, Any] = {}
    group = _group(objects)
    _variable(group, variable, (len(times), len(latitudes), len(longitudes)), attributes)
    minutes = times.astype("datetime64[m]").astype(np.int64)
    hourly = bool((minutes % 60 == 0).all())
    coordinates: list[tuple[str, NDArray[Any], dict[str, Any]]] = [
        (
            "time",
            minutes // 60 if hourly else minutes,
            {
                "units": f"{'hours' if hourly else 'minutes'} since {_EPOCH}",
                "calendar": "proleptic_gregorian",
                "standard_name": "time",
            },
        ),
        ("latitude", latitudes, {"units": "degrees_north", "standard_name": "latitude"}),
        ("longitude", longitudes, {"units": "degrees_east", "standard_name": "longitude"}),
    ]
    for name, values, described in coordinates:
        group.create_array(
            name, data=values, chunks=values.shape, dimension_names=(name,), attributes=described
        )
    with warnings.catch_warnings():
        # That the metadata of all arrays stand in one file is an extension of format 3; without
        # it xarray warns at each opening that there is none.
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(group.store)
    return {name: item.to_bytes() for name, item in objects.items()}


def _group(objects: dict[str, Any]) -> "zarr.Group":
    import zarr

    store = zarr.storage.MemoryStore(objects)
    return zarr.open_group(store, mode="w", zarr_format=3)


def _variable(
    group: "zarr.Group", name: str, shape: tuple[int, ...], attributes: Mapping[str, str]
) -> "zarr.Array[Any]":
    from zarr.codecs import BloscCodec

    return group.create_array(
        name,
        shape=shape,
        chunks=(STEPS, *shape[1:]),
        dtype="float32",
        fill_value=float("nan"),
        compressors=BloscCodec(cname="zstd", clevel=5, shuffle="shuffle"),
        chunk_key_encoding={"name": "default", "separator": "."},
        dimension_names=_AXES,
        attributes=dict(attributes),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Field:
    """Where a field is and what its axes are; processes that are given it read for themselves."""

    folder: Path
    hours: NDArray[np.int64]  # [times] since 1970-01-01 UTC, rising
    latitudes: NDArray[np.float64]  # [cells], in degrees; a cell is a latitude and a longitude
    longitudes: NDArray[np.float64]  # [cells]
    attributes: dict[str, str]  # units, and where the values are from and whose
    variable: str

    @classmethod
    def open(cls, folder: Path) -> "Field":
        """The field of an artifact's folder.

        Raises UsageError without xarray and zarr, StoreError where it cannot be read, DataError
        for times that are not whole hours or do not rise.
        """
        values = _values(folder.absolute())
        minutes = values["time"].values.astype("datetime64[m]").astype(np.int64)
        if not len(minutes) or (minutes % 60).any() or (np.diff(minutes) <= 0).any():
            raise DataError(
                f"{folder}: the times of a field are whole hours that rise, at least one; fetch "
                "it with --every 1h, or from another source"
            )
        latitude, longitude = (values[axis].values.astype(np.float64) for axis in _AXES[1:])
        grid = np.meshgrid(latitude, longitude, indexing="ij")
        told = ("units", "source", "licence", "attribution")
        return cls(
            folder=folder,
            hours=minutes // 60,
            latitudes=grid[0].ravel(),
            longitudes=grid[1].ravel(),
            attributes={name: str(values.attrs[name]) for name in told if name in values.attrs},
            variable=str(values.name),
        )

    @property
    def description(self) -> str:
        """``2m_temperature in K``"""
        return f"{self.variable} in {self.attributes.get('units', 'unknown units')}"

    @property
    def cells(self) -> int:
        """How many points in space there are."""
        return len(self.latitudes)

    def pieces(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The times ``begin <= time < end`` in runs that are stored together."""
        for first in range(begin // STEPS * STEPS, end, STEPS):
            yield max(begin, first), min(end, first + STEPS)

    def read(self, begin: int, end: int) -> NDArray[np.float64]:
        """Values [end - begin, cells] of some times; StoreError where they cannot be read, and
        DataError for one that is missing."""
        whole = _values(self.folder.absolute()).transpose(*_AXES)
        found = np.empty((end - begin, self.cells))
        for first, last in self.pieces(begin, end):
            path = self.folder / FOLDER / object_name(self.variable, first // STEPS)
            try:
                _check_object(path, STEPS * self.cells * 4)
                values = whole.isel(time=slice(first, last)).values
            except Exception as error:  # whatever the libraries below raise for what is on the disk
                raise _damaged(path, error) from error
            found[first - begin : last - begin] = values.reshape(last - first, -1)
        if not np.isfinite(found).all():
            time, cell = np.argwhere(~np.isfinite(found))[0].tolist()
            raise DataError(
                f"{self.folder}: there is no value at {hour_text(int(self.hours[begin + time]))}, "
                f"latitude {self.latitudes[cell]:g}, longitude {self.longitudes[cell]:g}; fetch "
                "the field without the days that have gaps"
            )
        return found


def hour_text(hour: int) -> str:
    """An hour since 1970 as people write it.

    >>> hour_text(431_000)
    '2019-03-03T08'
    """
    return str(np.datetime64(hour, "h"))


@cache
def _values(folder: Path) -> "xarray.DataArray":
    """The one variable of a field, not yet read; opened once in a process."""
    try:
        import xarray
        import zarr  # noqa: F401  xarray alone would say that it knows no engine of that name
    except ImportError:
        raise UsageError(
            "a field needs the packages xarray and zarr; `pip install 'numtok[weather]'`"
        ) from None
    files.check_tree(folder / FOLDER)
    name = _check_arrays(folder / FOLDER)
    try:
        whole = xarray.open_zarr(folder / FOLDER, chunks=None, consolidated=False)
        found: xarray.DataArray = whole[name]
        for axis in _AXES[1:]:
            if not np.isfinite(found[axis].values).all():
                raise ValueError(f"a {axis} is not finite")
    except Exception as error:  # as above
        raise _damaged(folder / FOLDER / name / _ABOUT, error) from error
    return found


class _Named(msgspec.Struct):
    name: str
    configuration: dict[str, Value] = {}


class _Grid(msgspec.Struct):
    class Chunks(msgspec.Struct):
        chunk_shape: list[Natural]

    name: Literal["regular"]
    configuration: Chunks


class _Array(msgspec.Struct, kw_only=True):
    """``zarr.json`` of an array, as far as it says where things are and how large."""

    zarr_format: Literal[3]
    node_type: Literal["array"]
    shape: list[Natural]
    data_type: Literal["float32", "float64", "int64"]
    chunk_grid: _Grid
    chunk_key_encoding: _Named
    codecs: list[_Named]
    dimension_names: list[str]
    attributes: dict[str, Value]


class _Group(msgspec.Struct):
    zarr_format: Literal[3]
    node_type: Literal["group"]


# zarr writes them, with more than what is of interest here.
_GROUP, _ARRAY = StoredJson(name=_ABOUT, kind=_Group), StoredJson(name=_ABOUT, kind=_Array)


def _check_arrays(folder: Path) -> str:
    """The name of the variable. Raises StoreError for arrays that :func:`other_objects` does not
    describe, or that are larger than what is on the disk can be: before memory is taken."""
    _GROUP.read(folder)
    with files.reporting("list", folder):
        names = [one.name for one in files.system.scandir(folder) if one.is_dir()]
    arrays = {name: _ARRAY.read(folder / name) for name in names}
    variables = sorted(arrays.keys() - set(_AXES))
    if len(variables) != 1 or len(arrays) != len(_AXES) + 1:
        raise _damaged(folder, ValueError(f"it has the arrays {', '.join(sorted(arrays))}"))
    sizes = {axis: arrays[axis].shape[0] if arrays[axis].shape else 0 for axis in _AXES}
    (name,) = variables
    for one, array in arrays.items():
        axes, kind, width = (_AXES, "float32", 4) if one == name else ((one,), "float64", 8)
        shape = [sizes[axis] for axis in axes]
        chunk = [STEPS, *shape[1:]] if one == name else shape
        codecs = {codec.name for codec in array.codecs}
        keys = _Named("default", {"separator": "." if one == name else "/"})
        if (
            (array.dimension_names, array.shape) != ([*axes], shape)
            or array.chunk_grid.configuration.chunk_shape != chunk
            or array.data_type != ("int64" if one == "time" else kind)
            or array.chunk_key_encoding != keys
            or codecs - {"bytes", "blosc", "zstd"}
            or (one == "time" and not _SINCE.fullmatch(str(array.attributes.get("units"))))
        ):
            raise _damaged(folder / one / _ABOUT, ValueError("it is not as fields are written"))
        objects = _objects(folder, one, -(-shape[0] // STEPS)) if one == name else ["c/0"]
        packed = 0
        for key in objects:
            with files.reporting("read", folder / one / key):
                packed = max(packed, files.system.stat(folder / one / key).st_size)
        if width * math.prod(chunk) > max(_ALWAYS, _TIMES * packed):
            raise _damaged(folder / one / _ABOUT, ValueError(f"it says {shape}, which cannot be"))
    return name


def _objects(folder: Path, variable: str, count: int) -> list[str]:
    """The names of the objects of a variable; StoreError where one of so many is not there."""
    with files.reporting("list", folder / variable):
        there = {entry.name for entry in files.system.scandir(folder / variable)}
    # As many as there are, and one more: what is claimed may be without number.
    keys = [Path(object_name(variable, k)).name for k in range(min(count, len(there) + 1))]
    for key in keys:
        if key not in there:
            raise _damaged(folder / variable / key, ValueError("it is not there"))
    return keys


def _check_object(path: Path, size: int) -> None:
    """ValueError for a file that does not begin as blosc packs so many bytes (``nbytes`` and
    ``cbytes`` of its header)."""
    with files.open_regular(path) as file:
        header = file.read(16)
    told = int.from_bytes(header[4:8], "little"), int.from_bytes(header[12:16], "little")
    if told != (size, path.stat().st_size):
        raise ValueError("it is not as many bytes as its field needs")


def _damaged(path: Path, error: Exception) -> StoreError:
    return damaged(path, str(error).partition("\n")[0] or type(error).__name__)
