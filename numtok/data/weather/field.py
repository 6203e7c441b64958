"""Weather fields: a variable on a latitude-longitude grid at many times, stored as a zarr group.

::

    field.zarr/                     format 3; xarray.open_zarr opens it
        2m_temperature/c.0.0.0 ...  float32 (time, latitude, longitude), STEPS steps of the whole
                                    grid in each object; units, licence, ... are its attributes
        time/, latitude/, longitude/    int64 hours or minutes since 1970, float64 degrees

Objects are built in memory and returned as bytes, because the stage writes every file atomically. A
:class:`Field` reads ranges of time steps from them. :func:`_create` defines the arrays of a field,
for writing and for checking. zarr is only imported by the functions that need it.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from numtok import files
from numtok.errors import DataError, NumtokError, UsageError
from numtok.stored_json import StoredJson, Value, damaged

if TYPE_CHECKING:
    import zarr


FOLDER = "field.zarr"
STEPS = 24  # number of steps in each object
EVERY = (1, 2, 3, 4, 6, 8, 12, 24)  # valid step sizes in hours: those that divide a day
_EPOCH = "1970-01-01 00:00:00"
_AXES = ("time", "latitude", "longitude")
_SINCE = re.compile(rf"(?:hours|minutes) since {_EPOCH}")
# Maximum number of bytes of an object: absolute, and as a multiple of its packed size.
_ALWAYS, _TIMES = 256 << 20, 1 << 13

#: Units, and generous bounds of the values that occur on Earth.
_WARMTH, _WIND, _PRESSURE = ("K", 100.0, 400.0), ("m s**-1", -200.0, 200.0), ("Pa", 3e4, 1.2e5)
#: Names in NetCDF and GRIB files, and the range, by the name in the public stores.
_VARIABLES = {
    "2m_temperature": (("t2m", "2t"), _WARMTH),
    "2m_dewpoint_temperature": (("d2m", "2d"), _WARMTH),
    "10m_u_component_of_wind": (("u10", "10u"), _WIND),
    "10m_v_component_of_wind": (("v10", "10v"), _WIND),
    "100m_u_component_of_wind": (("u100", "100u"), _WIND),
    "100m_v_component_of_wind": (("v100", "100v"), _WIND),
    "mean_sea_level_pressure": (("msl",), _PRESSURE),
    "sea_surface_temperature": (("sst",), _WARMTH),
    "skin_temperature": (("skt",), _WARMTH),
    "surface_pressure": (("sp",), _PRESSURE),
    "total_cloud_cover": (("tcc",), ("(0 - 1)", -0.01, 1.01)),
    "total_precipitation": (("tp",), ("m", -0.01, 10.0)),
}
_FILL = 1e15  # beyond any variable, but below fill values such as 9.999e20
_PUBLIC = {alias: name for name, (aliases, _) in _VARIABLES.items() for alias in aliases}


def public_name(name: str) -> str:
    """Return the name of a variable in public ERA5 stores. Unknown names are returned unchanged.

    >>> public_name("t2m"), public_name("2t"), public_name("2m_temperature"), public_name("z")
    ('2m_temperature', '2m_temperature', '2m_temperature', 'z')
    """
    return _PUBLIC.get(name, name)


def physical_range(variable: str, units: str) -> tuple[float, float]:
    """Return the lowest and highest plausible values of a variable, given its public name.

    For unknown variables, and in units other than those of ERA5, the range excludes only fill
    values.

    >>> physical_range("2m_temperature", "K"), physical_range("2m_temperature", "degC")
    ((100.0, 400.0), (-1000000000000000.0, 1000000000000000.0))
    """
    _, (expected, low, high) = _VARIABLES.get(variable, ((), (None, -_FILL, _FILL)))
    return (low, high) if expected in (None, units) else (-_FILL, _FILL)


class Block(NamedTuple):
    """Whole days of a field that are read at once: steps ``begin <= step < end``.

    ``requests`` is the number of objects to request from the source, and ``bytes`` is their total
    unpacked size.
    """

    begin: int
    end: int
    requests: int
    bytes: int


class FieldSteps(NamedTuple):
    """Values of ``n`` time steps, and which of these steps are preliminary.

    values [n, latitude, longitude]
        NaN if missing.
    preliminary [n]
        True for steps whose values the publisher will replace with final ones within a few months.
    """

    values: NDArray[np.float32]
    preliminary: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenField:
    """A window of a variable in a public store or a file, open for reading.

    attributes
        ``units`` and ``long_name`` of the variable.
    times
        Times for which the source has values (datetime64[m], UTC, ascending).
    expected
        Times for which values are expected. A day without values for one of them is incomplete.
    latitudes, longitudes
        Increasing degrees (float64); longitudes do not wrap around.
    blocks
        Consecutive blocks that together contain all steps.
    read
        Function that reads the steps ``begin <= step < end``; it raises StoreError or DataError.
    """

    variable: str
    attributes: Mapping[str, str]
    times: NDArray[np.datetime64]
    expected: NDArray[np.datetime64]
    latitudes: NDArray[np.float64]
    longitudes: NDArray[np.float64]
    blocks: Sequence[Block]
    read: Callable[[int, int], FieldSteps]


class _Node(msgspec.Struct):
    zarr_format: Literal[3]
    node_type: Literal["group", "array"]
    attributes: dict[str, Any] = {}


_METADATA = StoredJson(name="zarr.json", kind=_Node)  # zarr reads the rest


def object_name(variable: str, index: int) -> str:
    """Return the name of the object that begins with step ``index * STEPS``.

    >>> object_name("2m_temperature", 3)
    '2m_temperature/c.3.0.0'
    """
    return f"{variable}/c.{index}.0.0"


def object_bytes(values: NDArray[np.float32]) -> bytes:
    """Pack the values of at most STEPS steps [n, latitude, longitude] into the bytes of an object.

    The values must not be NaN.
    """
    from numcodecs import Blosc  # type: ignore[import-untyped]

    whole = np.full((STEPS, *values.shape[1:]), np.nan, np.float32)
    whole[: len(values)] = values
    packed: bytes = Blosc("zstd", clevel=5, shuffle=Blosc.SHUFFLE).encode(whole)
    return packed


def other_objects(
    variable: str,
    times: NDArray[np.datetime64],
    latitudes: NDArray[np.float64],
    longitudes: NDArray[np.float64],
    attributes: Mapping[str, str],
) -> dict[str, bytes]:
    """Return the axes and metadata of a field [times, latitudes, longitudes] as zarr objects.

    The objects are keyed by name. The metadata includes the attributes of the variable.
    """
    import zarr

    objects: dict[str, Any] = {}
    group = zarr.open_group(zarr.storage.MemoryStore(objects), mode="w", zarr_format=3)
    _create(group, variable, (len(times), len(latitudes), len(longitudes)), dict(attributes))
    minutes = times.astype("datetime64[m]").astype(np.int64)
    hourly = bool((minutes % 60 == 0).all())
    since = {
        "units": f"{'hours' if hourly else 'minutes'} since {_EPOCH}",
        "calendar": "proleptic_gregorian",
    }
    for axis, values, described in zip(
        _AXES,
        (minutes // 60 if hourly else minutes, latitudes, longitudes),
        (since, {"units": "degrees_north"}, {"units": "degrees_east"}),
        strict=True,
    ):
        _create(group, axis, values.shape, {**described, "standard_name": axis})[:] = values
    with warnings.catch_warnings(action="ignore"):
        # Consolidated metadata is an extension of format 3, of which zarr warns. Without it xarray
        # warns each time the store is opened.
        zarr.consolidate_metadata(group.store)
    return {name: item.to_bytes() for name, item in objects.items()}


def _create(
    group: "zarr.Group", name: str, shape: tuple[int, ...], attributes: dict[str, Value]
) -> "zarr.Array[Any]":
    """Create an array of a field: an axis or the variable."""
    from zarr.codecs import BloscCodec

    if name in _AXES:
        kind = "int64" if name == "time" else "float64"
        axis: zarr.Array[Any] = group.create_array(
            name, shape=shape, chunks=shape, dtype=kind, dimension_names=(name,),
            attributes=attributes,
        )  # fmt: skip
        return axis
    return group.create_array(
        name,
        shape=shape,
        chunks=(STEPS, *shape[1:]),
        dtype="float32",
        fill_value=float("nan"),
        compressors=BloscCodec(cname="zstd", clevel=5, shuffle="shuffle"),
        chunk_key_encoding={"name": "default", "separator": "."},
        dimension_names=_AXES,
        attributes=attributes,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Field:
    """A stored field: its location and its axes. Values are not read until :meth:`read`."""

    folder: Path
    hours: NDArray[np.int64]  # [times] since 1970-01-01 UTC, increasing
    latitudes: NDArray[np.float64]  # [cells], in degrees; a cell is a latitude and a longitude
    longitudes: NDArray[np.float64]  # [cells]
    attributes: dict[str, str]  # units, source, license and attribution
    variable: str

    @classmethod
    def open(cls, folder: Path) -> "Field":
        """Open the field in the folder of an artifact.

        Raises UsageError if zarr is missing, StoreError if the field cannot be read, and DataError
        if its times do not increase or are not whole hours.
        """
        variable, arrays = _opened(folder.absolute())
        axes = []
        for axis in _AXES:
            with _reading(folder / FOLDER / axis / _METADATA.name):
                axes.append(np.asarray(arrays[axis][:]))
                if not np.isfinite(axes[-1]).all():
                    raise ValueError(f"a {axis} is not finite")
        times, latitude, longitude = axes
        an_hour = 60 if str(arrays["time"].attrs["units"]).startswith("minutes") else 1
        if not len(times) or (times % an_hour).any() or (np.diff(times) <= 0).any():
            raise DataError(
                f"{folder}: the times of a field must be increasing whole hours. Fetch it with "
                "--every 1h, or from another source"
            )
        grid = np.meshgrid(latitude, longitude, indexing="ij")
        attributes = arrays[variable].attrs
        copied = ("units", "source", "licence", "attribution")
        return cls(
            folder=folder,
            hours=times // an_hour,
            latitudes=grid[0].ravel(),
            longitudes=grid[1].ravel(),
            attributes={name: str(attributes[name]) for name in copied if name in attributes},
            variable=variable,
        )

    @property
    def description(self) -> str:
        """Name and units of the variable, such as ``2m_temperature in K``."""
        return f"{self.variable} in {self.attributes.get('units', 'unknown units')}"

    @property
    def cells(self) -> int:
        """Number of grid cells, that is, pairs of a latitude and a longitude."""
        return len(self.latitudes)

    def pieces(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Divide the time steps ``begin <= step < end`` into runs, each stored in one object.

        Yields the begin and end of each run.
        """
        for first in range(begin // STEPS * STEPS, end, STEPS):
            yield max(begin, first), min(end, first + STEPS)

    def read(self, begin: int, end: int) -> NDArray[np.float64]:
        """Read the values [end - begin, cells] of time steps ``begin <= step < end``.

        Raises StoreError if the values cannot be read, and DataError if a value is missing.
        """
        stored = _opened(self.folder.absolute())[1][self.variable]
        values = np.empty((end - begin, self.cells))
        for first, last in self.pieces(begin, end):
            path = self.folder / FOLDER / object_name(self.variable, first // STEPS)
            with _reading(path):
                _check_object(path, STEPS * self.cells * 4)
                piece = np.asarray(stored[first:last])
            values[first - begin : last - begin] = piece.reshape(last - first, -1)
        if not np.isfinite(values).all():
            time, cell = np.argwhere(~np.isfinite(values))[0].tolist()
            raise DataError(
                f"{self.folder}: missing value at {hour_text(int(self.hours[begin + time]))}, "
                f"latitude {self.latitudes[cell]:g}, longitude {self.longitudes[cell]:g}. Fetch "
                "the field without incomplete days: --missing drop"
            )
        return values


def hour_text(hour: int) -> str:
    """Format a number of hours since 1970-01-01 as a date and an hour.

    >>> hour_text(431_000)
    '2019-03-03T08'
    """
    return str(np.datetime64(hour, "h"))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn any error of zarr about a damaged file into a StoreError that names it."""
    try:
        yield
    except NumtokError:
        raise
    except Exception as error:
        raise damaged(path, str(error).partition("\n")[0] or type(error).__name__) from error


@cache
def _opened(folder: Path) -> "tuple[str, dict[str, zarr.Array[Any]]]":
    """Open and check the arrays of a field; return its variable and arrays (cached per process).

    Raises StoreError for arrays that :func:`_create` does not make, or that claim to be larger than
    their files can be, before memory is allocated.
    """
    try:
        import zarr
    except ImportError:
        raise UsageError(
            "fields need the packages xarray and zarr. Install them: pip install 'numtok[weather]'"
        ) from None
    folder = folder / FOLDER
    files.check_tree(folder)
    _METADATA.read(folder)
    with files.reporting("list", folder):
        names = {entry.name for entry in files.system.scandir(folder) if entry.is_dir()}
    if not names.issuperset(_AXES) or len(names) != len(_AXES) + 1:
        raise damaged(folder, f"it has the arrays {', '.join(sorted(names))}")
    (variable,) = names.difference(_AXES)
    arrays: dict[str, zarr.Array[Any]] = {}
    plan = zarr.open_group(zarr.storage.MemoryStore(), mode="w", zarr_format=3)
    for name in (*_AXES, variable):
        about = folder / name / _METADATA.name
        _METADATA.read(about.parent)
        with _reading(about):
            array = zarr.open_array(about.parent, mode="r", zarr_format=3)
            shape = array.shape if name in _AXES else tuple(arrays[axis].size for axis in _AXES)
            planned = _create(plan, name, shape, {}).metadata.to_dict()
            if planned != {**array.metadata.to_dict(), "attributes": {}}:
                raise ValueError("it does not have the format of a field")
            if math.prod(array.chunks) * array.dtype.itemsize > _most(array, about.parent):
                raise ValueError(f"its shape {[*shape]} is impossible for files of this size")
            if name == "time" and not _SINCE.fullmatch(str(array.attrs.get("units"))):
                raise ValueError("it does not have the format of a field")
        arrays[name] = array
    return variable, arrays


def _most(array: "zarr.Array[Any]", folder: Path) -> int:
    """Return the maximum bytes of an array's objects. Raises StoreError if an object is missing."""
    with files.reporting("list", folder):
        present = len(files.system.scandir(folder))
    packed = 0
    # Check at most one more than there are files: the claimed number may be huge.
    for index in range(min(array.nchunks, present + 1)):
        path = folder / array.metadata.encode_chunk_key((index,) + (0,) * (array.ndim - 1))
        with _reading(path):
            packed = max(packed, files.system.stat(path).st_size)
    return max(_ALWAYS, _TIMES * packed)


def _check_object(path: Path, size: int) -> None:
    """Raise ValueError unless a file is a blosc buffer of ``size`` bytes, judging by its header
    (``nbytes`` and ``cbytes``)."""
    with files.open_regular(path) as file:
        header = file.read(16)
    sizes = int.from_bytes(header[4:8], "little"), int.from_bytes(header[12:16], "little")
    if sizes != (size, path.stat().st_size):
        raise ValueError("it does not have the size that the field needs")
