"""One variable of an opened data set as a field: axes by name, read in blocks of whole days.

Imported where xarray and zarr are known to be installed.
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
    """One variable with three dimensions, whatever they are called, or with ``expver`` as a fourth.

    times
        datetime64[m] per step: when the values are valid.
    preliminary
        Flag per step: the data set says that it is ERA5T.
    """

    array: xr.DataArray
    time: str
    latitude: str
    longitude: str
    times: NDArray[np.datetime64]
    preliminary: NDArray[np.bool_]


def stored_name(dataset: xr.Dataset, variable: str) -> str:
    """Return the name of a public variable in a data set; UsageError if it is missing."""
    names = {public_name(str(name)): str(name) for name in dataset.data_vars}
    if not names:
        raise DataError(
            "no variables are found; on a web server, which cannot list what it has, a zarr store "
            "needs consolidated metadata"
        )
    if variable not in names:
        near = get_close_matches(variable, names, n=_SHOWN, cutoff=0.0)
        told = "these are the nearest" if len(names) > len(near) else ""
        raise unknown("variable", variable, near, told)
    return names[variable]


def layout(array: xr.DataArray) -> Layout:
    """Find the layout of a variable; DataError unless it has hours on a regular grid."""
    if "date" in array.dims:
        raise DataError(
            "its axis of time is `date`: these are monthly means; get the hourly data set"
        )
    time = _named(array, _TIMES)
    if time is None:
        scalars = [name for name in reversed(_TIMES) if name in array.coords]
        if not scalars or array.coords[scalars[0]].ndim:
            raise DataError(f"its dimensions are {_told(array)}, and none is time or valid_time")
        time = scalars[0]
        array = array.expand_dims(time)
    latitude, longitude = _named(array, _LATITUDES), _named(array, _LONGITUDES)
    if latitude is None or longitude is None:
        raise DataError(
            f"its dimensions are {_told(array)}: no regular grid of latitude and longitude; "
            "native and curvilinear grids must be interpolated to one first"
        )
    for name in sorted({str(name) for name in array.dims} - {time, latitude, longitude, "expver"}):
        if array.sizes[name] > 1:
            raise DataError(
                f"it has {array.sizes[name]} of {name}, and a field has one: take one of them with "
                "xarray, or choose a variable on a single level"
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
    """The experiment versions along ``expver``, which are numbers or strings of digits."""
    return [int(value) for value in np.atleast_1d(array["expver"].values).tolist()]


def _named(array: xr.DataArray, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in array.dims and name in array.coords), None)


def _told(array: xr.DataArray) -> str:
    return ", ".join(map(str, array.dims)) or "none"


def _times(array: xr.DataArray, time: str) -> NDArray[np.datetime64]:
    """The times of validity: those of forecasts begin earlier in GRIB."""
    for name in ("valid_time", time):
        if name in array.coords and array.coords[name].dims == (time,):
            found = array.coords[name].values
            break
    if found.dtype.kind != "M":
        raise DataError("its times are not of the usual calendar; ERA5 has that one")
    minutes: NDArray[Any] = found.astype("datetime64[m]")
    if ((minutes != found) & ~np.isnat(found)).any():
        raise DataError("its times are not whole minutes")
    return minutes


def _preliminary(array: xr.DataArray, time: str) -> NDArray[np.bool_]:
    """Flag each step of ERA5T, which the new converter of the CDS marks by ``expver``."""
    count = array.sizes[time]
    if "expver" in array.dims or "expver" not in array.coords:
        return np.zeros(count, bool)
    return np.broadcast_to(np.array(versions(array)) != _FINAL, (count,))


_DAY = "datetime64[D]"
_FEW = 24  # steps of a block, or more, so that objects of several steps are brought once
_MOST = 64 << 20  # bytes of a block's values; from there on objects are rather brought again


@dataclass(frozen=True)
class Window:
    """What is asked for of a data set; None is all of it."""

    variable: str
    area: Area | None
    period: Period | None
    every: int | None


@dataclass(frozen=True, eq=False)
class _Axis:
    """Places along one dimension, in the order of a field, and the values of its coordinate."""

    dimension: str
    places: NDArray[np.intp]
    values: NDArray[Any]

    @property
    def stored(self) -> slice | NDArray[np.intp]:
        """The places as they are best read: in ascending order, a slice where that is possible."""
        places = np.sort(self.places)
        step = int(places[1] - places[0]) if len(places) > 1 else 1
        if (np.diff(places) == step).all():
            return slice(int(places[0]), int(places[-1]) + 1, step)
        return places

    @property
    def back(self) -> NDArray[np.intp]:
        """Brings what was read by ``stored`` into the order of the field."""
        return np.argsort(np.argsort(self.places))


@dataclass(frozen=True, eq=False, kw_only=True)
class Gridded:
    """One window of an opened data set.

    expected
        As in :class:`OpenField`.
    shape
        How many places along each dimension one object of the source has.
    stored
        The array of a zarr store, which knows the keys of these objects; None for a file.
    preliminary
        Of each step, where that stands beside the values.
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
        """The window, ready to be read in blocks; none of its values is read yet."""
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
        """What is read of a store in a folder: metadata, coordinates, and the objects of values."""
        own = [root, root / str(self.array.name)]
        found = {path for folder in own for path in folder.iterdir() if is_metadata(path.name)}
        for name in self.opened.dataset.coords:
            found |= {path for path in (root / str(name)).rglob("*") if path.is_file()}
        count = len(self.time.places)
        paths = (root / key for _, keys in self.keys(0, count) for key in keys)
        return sorted(found | {path for path in paths if path.is_file()})

    def keys(self, begin: int, end: int) -> Iterator[tuple[int, list[str]]]:
        """The objects that steps are in: their place along time, and the keys of all there."""
        if self.stored is None:
            return
        encode, path = self.stored.metadata.encode_chunk_key, self.stored.path
        for first in np.unique(self.time.places[begin:end] // self.shape[self.time.dimension]):
            there = {self.time.dimension: [int(first)], **self._across}
            places = product(*(there[name] for name in self.shape))
            yield int(first), [f"{path}/{encode(place)}" for place in places]

    @cached_property
    def _across(self) -> dict[str, list[int]]:
        """The places of objects along the dimensions that are not time."""
        used = {axis.dimension: axis.places for axis in (self.latitude, self.longitude)}
        found = {}
        for name, size in self.shape.items():
            if name != self.time.dimension:
                places = used.get(name, np.arange(self.opened.dataset.sizes[name]))
                found[name] = np.unique(places // size).tolist()
        return found

    def _blocks(self) -> Iterator[Block]:
        objects = self.time.places // self.shape[self.time.dimension]
        days = self.time.values.astype(_DAY)
        count = len(days)
        cells = len(self.latitude.places) * len(self.longitude.places)
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
        time = _Axis(self.time.dimension, self.time.places[begin:end], self.time.values[begin:end])
        axes = (time, self.latitude, self.longitude)
        try:
            part = self.array.isel({axis.dimension: axis.stored for axis in axes})
            ordered = part.transpose(*(axis.dimension for axis in axes), ...).values
        except NumtokError:
            raise
        except Exception as error:  # of the format's library
            what = f"{self.variable} of {self.opened.place} at {time.values[0]}..{time.values[-1]}"
            raise unreadable(what, self.opened.place, error) from error
        preliminary = self.preliminary[begin:end]
        if ordered.ndim == 4:
            ordered, preliminary = _merged(ordered, versions(part))
        values = ordered[:, self.latitude.back[:, None], self.longitude.back]
        values = np.ascontiguousarray(values, np.float32)
        if self.opened.store is not None:
            objects = time.places // self.shape[time.dimension]
            for first, keys in self.keys(begin, end):
                if not self.opened.store.missing.isdisjoint(keys):
                    values[objects == first] = np.nan  # whatever stands for absent ones
        return FieldSteps(values, preliminary)

    def _check_memory(self, steps: int) -> None:
        """DataError for so many steps, or for an object that they are in, that no memory holds."""
        points = len(self.latitude.places) * len(self.longitude.places)
        size = steps * points * np.dtype(np.float64).itemsize
        if self.stored is not None:
            size = max(size, prod(self.shape.values()) * self.stored.dtype.itemsize)
        if size > (most := memory() // 4):
            raise DataError(
                f"{self.opened.place}: {steps} steps of {points:,} points take {size:,} bytes, and "
                f"{most:,} are allowed (a quarter of the memory); give a smaller --area"
            )


@quietly()
def gridded(opened: Opened, window: Window) -> Gridded:
    """The window of an opened data set; UsageError and DataError as ``open`` of a source."""
    try:
        name = stored_name(opened.dataset, window.variable)
        stored = None if opened.group is None else opened.group[name]
        assert stored is None or isinstance(stored, zarr.Array)
        found = layout(opened.dataset[name])
        steps = time_steps(found.times, window.period, window.every)
        steps = steps[_valid(opened.dataset.attrs, found.times[steps], window.period)]
        latitudes = decimal(found.array[found.latitude].values)
        longitudes = decimal(found.array[found.longitude].values)
        _check_axes(opened, found)
        return Gridded(
            opened=opened,
            variable=window.variable,
            array=found.array,
            time=_Axis(found.time, steps, found.times[steps]),
            expected=expected_steps(found.times, found.times[steps], window.period, window.every),
            latitude=_Axis(found.latitude, *latitude_window(latitudes, window.area)),
            longitude=_Axis(found.longitude, *longitude_window(longitudes, window.area)),
            shape=_shape(opened.dataset[name], found.time, stored),
            stored=stored,
            preliminary=found.preliminary[steps],
        )
    except (UsageError, DataError) as error:
        raise type(error)(f"{opened.place}: {error}") from None


def _check_axes(opened: Opened, found: Layout) -> None:
    """Raise DataError where coordinates are fill values, because an object of them is absent."""
    axes = (found.time, "valid_time", found.latitude, found.longitude)
    for key in sorted(opened.store.missing) if opened.store else ():
        if key.partition("/")[0] in axes and not is_metadata(key):
            raise DataError(f"{key} is not there, and without it an axis is unknown")


def _shape(array: xr.DataArray, time: str, stored: "zarr.Array[Any] | None") -> dict[str, int]:
    """How many places one object has along each dimension; of a file, along time alone."""
    if stored is not None:
        return dict(zip(map(str, array.dims), stored.shards or stored.chunks, strict=True))
    sizes = array.encoding.get("chunksizes") or ()
    return {time: dict(zip(array.dims, sizes, strict=False)).get(time, 1)}


def _valid(
    attributes: Mapping[str, Any], times: NDArray[np.datetime64], period: Period | None
) -> NDArray[np.bool_]:
    """Which steps have data by the attributes of a public store, whose axis is longer than that.

    Raises UsageError where a period goes beyond them.
    """
    start, stop = (attributes.get(f"valid_time_{end}") for end in ("start", "stop"))
    try:
        begin = times[0] if start is None else _time(start)
        end = times[-1] if stop is None else _last_minute(stop)
    except ValueError:
        raise DataError(
            f"valid_time_start or valid_time_stop is no time: {start!r}, {stop!r}"
        ) from None
    inside = (times >= begin) & (times <= end)
    if not inside.all() and period is not None:
        later = attributes.get("valid_time_stop_era5t")
        told = f"; ERA5T, the preliminary data until {later}, is not fetched" if later else ""
        raise UsageError(f"--period {period} goes beyond the final data, {start}..{stop}{told}")
    if not inside.any():
        raise DataError(f"none of its steps is within the final data, {start}..{stop}")
    return inside


def _time(text: object) -> np.datetime64:
    return np.datetime64(str(text), "m")


def _last_minute(text: object) -> np.datetime64:
    """A day is meant with all its hours."""
    is_day = np.datetime64(str(text)).dtype == np.dtype(_DAY)
    return _time(text) + np.timedelta64(23 * 60 + 59 if is_day else 0, "m")


def _merged(
    values: NDArray[Any], versions: Sequence[int]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """ERA5 where there is some, else ERA5T: values [n, a, b, version] and whether a step [n] has
    some of the latter. The old converter of the CDS fills each with NaN where it has the other."""
    order = np.argsort(versions, kind="stable")
    made = values[..., order[0]].copy()
    filled = np.zeros(len(values), bool)
    for version in order[1:]:
        lacking = np.isnan(made)
        made[lacking] = values[..., version][lacking]
        filled |= (lacking & ~np.isnan(made)).any(axis=(1, 2))
    return made, filled
