"""Read a variable from an opened data set as a field, in blocks of whole days.

Import this module only after checking that xarray and zarr are installed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray

from numtok.data.weather.axes import (
    Area,
    Period,
    decimal,
    expected_steps,
    latitude_window,
    longitude_window,
    time_steps,
)
from numtok.data.weather.field import Block, FieldSteps, OpenField, public_name
from numtok.data.weather.objects import is_metadata, quietly, unreadable
from numtok.data.weather.places import Opened
from numtok.errors import DataError, NumtokError, UsageError, unknown
from numtok.machine import memory

_TIMES, _LATITUDES, _LONGITUDES = ("time", "valid_time"), ("latitude", "lat"), ("longitude", "lon")
_SHOWN = 12  # variables that a message names
_FINAL = 1  # the expver of ERA5; 5 is that of ERA5T, which it replaces


class Layout(NamedTuple):
    """A variable, and the names of its dimensions for time, latitude and longitude.

    ``expver``, the version of ERA5, may be a fourth dimension.

    times
        Valid time of each step, datetime64[m].
    preliminary
        True for each step that the data set marks as preliminary (ERA5T).
    """

    array: xr.DataArray
    time: str
    latitude: str
    longitude: str
    times: NDArray[np.datetime64]
    preliminary: NDArray[np.bool_]


def stored_name(dataset: xr.Dataset, variable: str) -> str:
    """Return the name of a variable in a data set, given its public name.

    Raises UsageError if the variable is missing, and DataError if the data set has no variables.
    """
    names = {public_name(str(name)): str(name) for name in dataset.data_vars}
    if not names:
        raise DataError(
            "no variables found. A zarr store on a web server needs consolidated metadata, because "
            "web servers cannot list objects"
        )
    if variable not in names:
        near = get_close_matches(variable, names, n=_SHOWN, cutoff=0.0)
        hint = "Only the most similar names are listed" if len(names) > len(near) else ""
        raise unknown("variable", variable, near, hint)
    return names[variable]


def layout(array: xr.DataArray) -> Layout:
    """Find the dimensions and the times of a variable.

    Raises DataError if the variable lacks times or a regular latitude-longitude grid.
    """
    if "date" in array.dims:
        raise DataError(
            "its time axis is `date`: these are monthly means. Download the hourly data set"
        )
    time = _named(array, _TIMES)
    if time is None:
        scalars = [name for name in reversed(_TIMES) if name in array.coords]
        if not scalars or array.coords[scalars[0]].ndim:
            raise DataError(f"it must have a dimension time or valid_time (got {_dims(array)})")
        time = scalars[0]
        array = array.expand_dims(time)
    latitude, longitude = _named(array, _LATITUDES), _named(array, _LONGITUDES)
    if latitude is None or longitude is None:
        raise DataError(
            f"it must be on a regular grid of latitude and longitude (dimensions: {_dims(array)}). "
            "Interpolate native and curvilinear grids first"
        )
    for name in sorted({str(name) for name in array.dims} - {time, latitude, longitude, "expver"}):
        if array.sizes[name] > 1:
            raise DataError(
                f"it has {array.sizes[name]} values of {name}, but a field must have one. Select "
                "one with xarray, or choose a variable on a single level"
            )
        array = array.isel({name: 0})
    if array.sizes.get("expver") == 1:
        array = array.isel(expver=0)
    return Layout(
        array=array,
        time=time,
        latitude=latitude,
        longitude=longitude,
        times=_times(array, time),
        preliminary=_preliminary(array, time),
    )


def versions(array: xr.DataArray) -> list[int]:
    """Return the ERA5 versions along the dimension ``expver``, converted to integers."""
    return [int(value) for value in np.atleast_1d(array["expver"].values).tolist()]


def _named(array: xr.DataArray, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in array.dims and name in array.coords), None)


def _dims(array: xr.DataArray) -> str:
    return ", ".join(map(str, array.dims)) or "none"


def _times(array: xr.DataArray, time: str) -> NDArray[np.datetime64]:
    """Return the times at which values are valid; in GRIB, forecasts start earlier."""
    for name in ("valid_time", time):
        if name in array.coords and array.coords[name].dims == (time,):
            times = array.coords[name].values
            break
    if times.dtype.kind != "M":
        raise DataError("its times must be in the standard calendar, like those of ERA5")
    minutes: NDArray[Any] = times.astype("datetime64[m]")
    if ((minutes != times) & ~np.isnat(times)).any():
        raise DataError("its times are not whole minutes")
    return minutes


def _preliminary(array: xr.DataArray, time: str) -> NDArray[np.bool_]:
    """Return a flag per step: True for ERA5T, which the CDS's new converter marks with expver."""
    count = array.sizes[time]
    if "expver" in array.dims or "expver" not in array.coords:
        return np.zeros(count, bool)
    return np.broadcast_to(np.array(versions(array)) != _FINAL, (count,))


_DAY = "datetime64[D]"
_FEW = 24  # minimum steps of a block, so that objects of several steps are downloaded once
_MOST = 64 << 20  # maximum bytes of a block's values; then objects are downloaded again instead


@dataclass(frozen=True)
class Window:
    """The requested part of a data set. None selects the whole axis."""

    variable: str
    area: Area | None
    period: Period | None
    every: int | None


@dataclass(frozen=True, eq=False)
class _Axis:
    """Indices along one dimension, in the order of a field, and the values of its coordinate."""

    dimension: str
    indices: NDArray[np.intp]
    values: NDArray[Any]

    @property
    def stored(self) -> slice | NDArray[np.intp]:
        """The indices in increasing order, as a slice if possible, for efficient reading."""
        indices = np.sort(self.indices)
        step = int(indices[1] - indices[0]) if len(indices) > 1 else 1
        if (np.diff(indices) == step).all():
            return slice(int(indices[0]), int(indices[-1]) + 1, step)
        return indices

    @property
    def back(self) -> NDArray[np.intp]:
        """Permutation from the order of ``stored`` to the order of the field."""
        return np.argsort(np.argsort(self.indices))


@dataclass(frozen=True, eq=False, kw_only=True)
class Gridded:
    """The requested window of an opened data set.

    expected
        Times for which values are expected; see :class:`OpenField`.
    shape
        Length of a stored object (chunk or shard) along each dimension; for a file, only along
        time.
    stored
        Zarr array from which the keys of the objects are computed; None for a file.
    preliminary
        bool[n], True for time steps with preliminary data (ERA5T); all False if the data set does
        not mark preliminary data.
    """

    opened: Opened
    variable: str
    array: xr.DataArray
    time: _Axis
    expected: NDArray[np.datetime64]
    latitude: _Axis
    longitude: _Axis
    shape: dict[str, int]
    stored: zarr.Array[Any] | None
    preliminary: NDArray[np.bool_]

    def field(self) -> OpenField:
        """Return the window as a field that can be read in blocks. No values are read yet."""
        attributes = {
            key: str(self.array.attrs.get(key, "unknown")) for key in ("units", "long_name")
        }
        return OpenField(
            variable=self.variable,
            attributes=attributes,
            times=self.time.values,
            expected=self.expected,
            latitudes=self.latitude.values,
            longitudes=self.longitude.values,
            blocks=list(self._blocks()),
            read=self._read,
        )

    def files(self, root: Path) -> list[Path]:
        """Return the files that the window requires from the store in the folder ``root``.

        These are metadata, coordinates, and objects that contain values.
        """
        own = [root, root / str(self.array.name)]
        files = {path for folder in own for path in folder.iterdir() if is_metadata(path.name)}
        for name in self.opened.dataset.coords:
            files |= {path for path in (root / str(name)).rglob("*") if path.is_file()}
        count = len(self.time.indices)
        paths = (root / key for _, keys in self.keys(0, count) for key in keys)
        return sorted(files | {path for path in paths if path.is_file()})

    def keys(self, begin: int, end: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the stored objects that contain the steps ``begin <= step < end``.

        Each item consists of a position along the time axis, counted in objects, and the keys of
        all objects at that position.
        """
        if self.stored is None:
            return
        encode, path = self.stored.metadata.encode_chunk_key, self.stored.path
        for first in np.unique(self.time.indices[begin:end] // self.shape[self.time.dimension]):
            chunks = {self.time.dimension: [int(first)], **self._across}
            coordinates = product(*(chunks[name] for name in self.shape))
            yield int(first), [f"{path}/{encode(coordinate)}" for coordinate in coordinates]

    @cached_property
    def _across(self) -> dict[str, list[int]]:
        """Indices of objects along the dimensions other than time."""
        used = {axis.dimension: axis.indices for axis in (self.latitude, self.longitude)}
        chunks = {}
        for name, size in self.shape.items():
            if name != self.time.dimension:
                indices = used.get(name, np.arange(self.opened.dataset.sizes[name]))
                chunks[name] = np.unique(indices // size).tolist()
        return chunks

    def _blocks(self) -> Iterator[Block]:
        objects = self.time.indices // self.shape[self.time.dimension]
        days = self.time.values.astype(_DAY)
        count = len(days)
        cells = len(self.latitude.indices) * len(self.longitude.indices)
        begin = 0
        for end in [*(np.flatnonzero(days[1:] != days[:-1]) + 1).tolist(), count]:
            free = end == count or objects[end - 1] != objects[end]
            if end == count or (end - begin >= _FEW and free) or (end - begin) * cells * 4 >= _MOST:
                requests, size = 0, (end - begin) * cells * self.array.dtype.itemsize
                if self.stored is not None:
                    requests = len(np.unique(objects[begin:end])) * prod(
                        map(len, self._across.values())
                    )
                    size = requests * prod(self.shape.values()) * self.stored.dtype.itemsize
                yield Block(begin, end, requests, size)
                begin = end

    @quietly()
    def _read(self, begin: int, end: int) -> FieldSteps:
        self._check_memory(end - begin)
        time = _Axis(self.time.dimension, self.time.indices[begin:end], self.time.values[begin:end])
        axes = (time, self.latitude, self.longitude)
        try:
            part = self.array.isel({axis.dimension: axis.stored for axis in axes})
            ordered = part.transpose(*(axis.dimension for axis in axes), ...).values
        except NumtokError:
            raise
        except Exception as error:  # of the format's library
            location = self.opened.location
            what = f"{self.variable} of {location} at {time.values[0]}..{time.values[-1]}"
            raise unreadable(what, location, error) from error
        preliminary = self.preliminary[begin:end]
        if ordered.ndim == 4:
            ordered, preliminary = _merged(ordered, versions(part))
        values = ordered[:, self.latitude.back[:, None], self.longitude.back]
        values = np.ascontiguousarray(values, np.float32)
        if self.opened.store is not None:
            objects = time.indices // self.shape[time.dimension]
            for first, keys in self.keys(begin, end):
                if not self.opened.store.missing.isdisjoint(keys):
                    values[objects == first] = np.nan  # in place of the fill value
        return FieldSteps(values, preliminary)

    def _check_memory(self, steps: int) -> None:
        """Raise DataError if the steps, or an object that contains them, exceed the memory."""
        points = len(self.latitude.indices) * len(self.longitude.indices)
        size = steps * points * np.dtype(np.float64).itemsize
        if self.stored is not None:
            size = max(size, prod(self.shape.values()) * self.stored.dtype.itemsize)
        if size > (most := memory() // 4):
            raise DataError(
                f"{self.opened.location}: {steps} steps of {points:,} points take {size:,} bytes, "
                f"more than a quarter of the memory ({most:,}). Choose a smaller --area"
            )


@quietly()
def gridded(opened: Opened, window: Window) -> Gridded:
    """Select a window of an opened data set. Raises the same errors as :meth:`FieldSource.open`."""
    try:
        name = stored_name(opened.dataset, window.variable)
        stored = None if opened.group is None else opened.group[name]
        assert stored is None or isinstance(stored, zarr.Array)
        axes = layout(opened.dataset[name])
        steps = time_steps(axes.times, window.period, window.every)
        steps = steps[_valid(opened.dataset.attrs, axes.times[steps], window.period)]
        latitudes = decimal(axes.array[axes.latitude].values)
        longitudes = decimal(axes.array[axes.longitude].values)
        _check_axes(opened, axes)
        return Gridded(
            opened=opened,
            variable=window.variable,
            array=axes.array,
            time=_Axis(axes.time, steps, axes.times[steps]),
            expected=expected_steps(axes.times, axes.times[steps], window.period, window.every),
            latitude=_Axis(axes.latitude, *latitude_window(latitudes, window.area)),
            longitude=_Axis(axes.longitude, *longitude_window(longitudes, window.area)),
            shape=_shape(opened.dataset[name], axes.time, stored),
            stored=stored,
            preliminary=axes.preliminary[steps],
        )
    except (UsageError, DataError) as error:
        raise type(error)(f"{opened.location}: {error}") from None


def _check_axes(opened: Opened, axes: Layout) -> None:
    """Raise DataError if coordinates are fill values, because one of their objects is missing."""
    names = (axes.time, "valid_time", axes.latitude, axes.longitude)
    for key in sorted(opened.store.missing) if opened.store else ():
        if key.partition("/")[0] in names and not is_metadata(key):
            raise DataError(f"{key} is missing, so an axis is unknown")


def _shape(array: xr.DataArray, time: str, stored: "zarr.Array[Any] | None") -> dict[str, int]:
    """Return the length of one object along each dimension; for a file, only along time."""
    if stored is not None:
        return dict(zip(map(str, array.dims), stored.shards or stored.chunks, strict=True))
    sizes = array.encoding.get("chunksizes") or ()
    return {time: dict(zip(array.dims, sizes, strict=False)).get(time, 1)}


def _valid(
    attributes: Mapping[str, Any], times: NDArray[np.datetime64], period: Period | None
) -> NDArray[np.bool_]:
    """Return which steps have data according to the attributes of a public store.

    The time axis of the store extends beyond its data. Raises UsageError if the period also does.
    """
    start, stop = (attributes.get(f"valid_time_{end}") for end in ("start", "stop"))
    try:
        begin = times[0] if start is None else _time(start)
        end = times[-1] if stop is None else _last_minute(stop)
    except ValueError:
        raise DataError(
            f"valid_time_start and valid_time_stop must be times (got {start!r} and {stop!r})"
        ) from None
    inside = (times >= begin) & (times <= end)
    if not inside.all() and period is not None:
        later = attributes.get("valid_time_stop_era5t")
        hint = f"; preliminary data (ERA5T, until {later}) cannot be fetched" if later else ""
        raise UsageError(f"--period {period} extends beyond the final data, {start}..{stop}{hint}")
    if not inside.any():
        raise DataError(f"none of its steps is within the final data, {start}..{stop}")
    return inside


def _time(text: object) -> np.datetime64:
    return np.datetime64(str(text), "m")


def _last_minute(text: object) -> np.datetime64:
    """Return the last minute of a day, or the time itself."""
    is_day = np.datetime64(str(text)).dtype == np.dtype(_DAY)
    return _time(text) + np.timedelta64(23 * 60 + 59 if is_day else 0, "m")


def _merged(
    values: NDArray[Any], versions: Sequence[int]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Merge ERA5 and ERA5T in values [n, a, b, version], preferring ERA5.

    Returns values [n, a, b] and a flag per step [n] that uses ERA5T. The CDS's old converter fills
    each version with NaN where the other one has values.
    """
    order = np.argsort(versions, kind="stable")
    merged = values[..., order[0]].copy()
    filled = np.zeros(len(values), bool)
    for version in order[1:]:
        lacking = np.isnan(merged)
        merged[lacking] = values[..., version][lacking]
        filled |= (lacking & ~np.isnan(merged)).any(axis=(1, 2))
    return merged, filled
