"""A field: values on a grid in space and time, read a run of times at a time.

What an artifact of kind ``field`` holds: ``field.zarr``, a Zarr group with one variable of
dimensions time, latitude and longitude. Opening reads the axes alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from numtok.errors import DataError, StoreError, UsageError
from numtok.fields import FOLDER

if TYPE_CHECKING:
    import xarray

_AXES = ("time", "latitude", "longitude")


@dataclass(frozen=True, eq=False)
class Field:
    """Where a field is and what its axes are; processes that are given it read for themselves."""

    folder: Path
    hours: NDArray[np.int64]  # [times] since 1970-01-01 UTC, rising
    latitudes: NDArray[np.float64]  # [cells], in degrees; a cell is a latitude and a longitude
    longitudes: NDArray[np.float64]  # [cells]
    together: int  # how many times are stored in one piece
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
                f"{folder}: the times of a field are whole hours that rise, at least one; fetch it "
                "anew"
            )
        latitude, longitude = (values[axis].values.astype(np.float64) for axis in _AXES[1:])
        grid = np.meshgrid(latitude, longitude, indexing="ij")
        chunks = values.encoding.get("chunks") or values.shape
        told = ("units", "source", "licence", "attribution")
        return cls(
            folder,
            minutes // 60,
            grid[0].ravel(),
            grid[1].ravel(),
            int(chunks[values.dims.index("time")]),
            {name: str(values.attrs[name]) for name in told if name in values.attrs},
            str(values.name),
        )

    @property
    def told(self) -> str:
        """``2m_temperature in K``"""
        return f"{self.variable} in {self.attributes.get('units', 'unknown units')}"

    @property
    def cells(self) -> int:
        """How many points in space there are."""
        return len(self.latitudes)

    def pieces(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The times ``begin <= time < end`` in runs that are stored together."""
        for first in range(begin // self.together * self.together, end, self.together):
            yield max(begin, first), min(end, first + self.together)

    def read(self, begin: int, end: int) -> NDArray[np.float64]:
        """Values [end - begin, cells] of some times; StoreError where they cannot be read, and
        DataError for one that is missing."""
        wanted = _values(self.folder.absolute()).isel(time=slice(begin, end)).transpose(*_AXES)
        try:
            values = wanted.values
        except Exception as error:  # whatever the libraries below raise for what is on the disk
            raise _damaged(self.folder, error) from error
        found = values.reshape(end - begin, -1).astype(np.float64)
        if not np.isfinite(found).all():
            time, cell = np.argwhere(~np.isfinite(found))[0].tolist()
            raise DataError(
                f"{self.folder}: there is no value at {shown(int(self.hours[begin + time]))}, "
                f"latitude {self.latitudes[cell]:g}, longitude {self.longitudes[cell]:g}; fetch "
                "the field without the days that have gaps"
            )
        return found


def shown(hour: int) -> str:
    """An hour since 1970 as people write it.

    >>> shown(431_000)
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
            "temperature needs the packages xarray and zarr; `pip install 'numtok[weather]'`"
        ) from None
    try:
        whole = xarray.open_zarr(folder / FOLDER, chunks=None, consolidated=False)
        (name,) = whole.data_vars
        found: xarray.DataArray = whole[name].assign_attrs(whole.attrs | whole[name].attrs)
        if set(found.dims) != set(_AXES):
            raise ValueError(
                f"its variable {name} has the dimensions {', '.join(map(str, found.dims))}"
            )
    except Exception as error:  # as above
        raise _damaged(folder, error) from error
    return found


def _damaged(folder: Path, error: Exception) -> StoreError:
    what = str(error).partition("\n")[0] or type(error).__name__
    return StoreError(
        f"{folder / FOLDER} cannot be read as a field ({what}); `numtok verify` says which files "
        "are damaged"
    )
