"""Which variable of a data set is meant, and which of its dimensions is what: by name alone.

Imported where xarray is known to be installed.
"""

from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from numtok.data.weather.variables import public_name
from numtok.errors import DataError, unknown

_TIMES, _LATITUDES, _LONGITUDES = ("time", "valid_time"), ("latitude", "lat"), ("longitude", "lon")
_SHOWN = 12  # variables that a message names
_FINAL = 1  # the expver of ERA5; 5 is that of ERA5T, which it replaces


class Layout(NamedTuple):
    """One variable with three dimensions, whatever they are called, or with ``expver`` as a fourth.

    times
        Of each step, datetime64[m]: when the values are valid.
    preliminary
        Of each step, whether it is ERA5T, where that stands beside the values.
    """

    array: xr.DataArray
    time: str
    latitude: str
    longitude: str
    times: NDArray[np.datetime64]
    preliminary: NDArray[np.bool_]


def stored_name(dataset: xr.Dataset, variable: str) -> str:
    """What a data set calls a variable of that public name; UsageError where it has none."""
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
    """The layout of a variable; DataError where that is no field of hours on a regular grid."""
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
    """Of each step, whether it is of ERA5T, as the new converter of the CDS says beside it."""
    count = array.sizes[time]
    if "expver" in array.dims or "expver" not in array.coords:
        return np.zeros(count, bool)
    return np.broadcast_to(np.array(versions(array)) != _FINAL, (count,))
