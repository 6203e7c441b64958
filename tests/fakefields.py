"""Small fields as artifacts, for the tests of tasks that read one."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.data.weather.field import FOLDER, STEPS, object_bytes, object_name, other_objects
from numtok.records import FIELD
from numtok.store.artifact import Artifact
from numtok.store.draft import Draft
from numtok.store.store import Store

LATITUDES, LONGITUDES = np.arange(50, 58, 0.5), np.arange(-10, 2, 0.75)  # 16 each
ATTRIBUTION = "Made by a test."


def hours(count: int, first: str = "2019-01-01", step: int = 1) -> NDArray[np.datetime64]:
    """So many times, ``step`` hours apart."""
    return np.datetime64(first, "h") + step * np.arange(count)


def waves(times: NDArray[np.datetime64], cells: int) -> NDArray[np.float32]:
    """Values [times, cells] that float32 holds exactly: days, drift and places, in sixteenths."""
    hour = times.astype(np.int64)[:, None]
    cell = np.arange(cells)
    day = np.abs(hour % 24 - 12)
    return (280 + (8 * day + hour // 24 % 7 + 5 * cell % 64 + hour * cell % 13) / 16).astype("f4")


def numbered(times: NDArray[np.datetime64], cells: int) -> NDArray[np.float32]:
    """Values [times, cells] that are all different: they tell the time and the cell."""
    return np.arange(len(times) * cells, dtype="f4").reshape(-1, cells)


def make(
    root: Path,
    times: NDArray[np.datetime64],
    values: NDArray[np.float32],
    latitudes: NDArray[np.float64] = LATITUDES,
    longitudes: NDArray[np.float64] = LONGITUDES,
    name: str = "field",
    variable: str = "2m_temperature",
    units: str = "K",
) -> Artifact:
    """An artifact of kind ``field`` in the store at ``root``: values [times, cells]."""
    pytest.importorskip("xarray", reason="fields need xarray and zarr")
    pytest.importorskip("zarr", reason="fields need xarray and zarr")
    grid = values.reshape(len(times), len(latitudes), len(longitudes))
    attributes = {"units": units, "attribution": ATTRIBUTION}
    objects = other_objects(variable, times, latitudes, longitudes, attributes)
    for index in range(-(-len(times) // STEPS)):
        part = grid[index * STEPS : (index + 1) * STEPS]
        objects[object_name(variable, index)] = object_bytes(part)
    settings = {"name": name, "first": str(times[0]), "times": len(times)}
    with Store(root).draft(FIELD, name, settings, [], ["numtok", "fetch"], force=True) as draft:
        assert isinstance(draft, Draft)
        for key, content in objects.items():
            path = draft.path / FOLDER / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return draft.publish({"times": len(times)}, {})


@cache
def small() -> Path:
    """The folder of a field of 60 days and 256 cells, made once: what digests are taken over."""
    root = Path(tempfile.mkdtemp(prefix="numtok-field-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    times = hours(60 * 24)
    return make(root, times, waves(times, len(LATITUDES) * len(LONGITUDES))).path
