"""One field: a variable on a grid of latitude and longitude at many times, as a zarr group.

::

    field.zarr/                     format 3; xarray.open_zarr opens it as it is
        2m_temperature/c.0.0.0 ...  float32 (time, latitude, longitude), STEPS steps of the whole
                                    grid in each object; units, licence, ... are its attributes
        time/, latitude/, longitude/    int64 hours or minutes since 1970, float64 degrees

The objects are made in memory and given out as bytes, so that the stage writes them as it writes
everything: whole or not at all. zarr is imported by the functions that need it.
"""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import zarr

FOLDER = "field.zarr"
STEPS = 24  # in each object
_EPOCH = "1970-01-01 00:00:00"


def object_name(variable: str, index: int) -> str:
    """Where the steps ``index * STEPS`` and on lie.

    >>> object_name("2m_temperature", 3)
    '2m_temperature/c.3.0.0'
    """
    return f"{variable}/c.{index}.0.0"


def object_bytes(values: NDArray[np.float32]) -> bytes:
    """Values of at most STEPS steps [n, latitude, longitude], none of them NaN, packed."""
    objects: dict[str, Any] = {}
    group = _group(objects)
    _variable(group, "one", values.shape, {})[:] = values
    made: bytes = objects[object_name("one", 0)].to_bytes()
    return made


def other_objects(
    variable: str,
    times: NDArray[np.datetime64],
    latitudes: NDArray[np.float64],
    longitudes: NDArray[np.float64],
    attributes: Mapping[str, str],
) -> dict[str, bytes]:
    """By name, everything but the values: metadata, with attributes of the variable, and axes."""
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
        dimension_names=("time", "latitude", "longitude"),
        attributes=dict(attributes),
    )
