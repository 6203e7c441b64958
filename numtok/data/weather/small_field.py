"""A small made-up field, in a folder of its own: what tasks that read a field are checked on."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numtok.data.weather.field import FOLDER, STEPS, object_bytes, object_name, other_objects

LATITUDES, LONGITUDES = np.arange(50, 58, 0.5), np.arange(-10, 2, 0.75)  # 16 each
ATTRIBUTION = "Made up."


def hours(count: int, first: str = "2019-01-01", step: int = 1) -> NDArray[np.datetime64]:
    """datetime64[count], ``step`` hours apart."""
    return np.datetime64(first, "h") + step * np.arange(count)


def waves(times: NDArray[np.datetime64], cells: int) -> NDArray[np.float32]:
    """Values [times, cells] that float32 holds exactly: days, drift and places, in sixteenths."""
    hour = times.astype(np.int64)[:, None]
    cell = np.arange(cells)
    day = np.abs(hour % 24 - 12)
    return (280 + (8 * day + hour // 24 % 7 + 5 * cell % 64 + hour * cell % 13) / 16).astype("f4")


def write(
    folder: Path,
    times: NDArray[np.datetime64],
    values: NDArray[np.float32],
    latitudes: NDArray[np.float64] = LATITUDES,
    longitudes: NDArray[np.float64] = LONGITUDES,
    variable: str = "2m_temperature",
    units: str = "K",
) -> None:
    """The objects of a field with values [times, cells], as ``field`` describes them."""
    grid = values.reshape(len(times), len(latitudes), len(longitudes))
    attributes = {"units": units, "attribution": ATTRIBUTION}
    objects = other_objects(variable, times, latitudes, longitudes, attributes)
    for index in range(-(-len(times) // STEPS)):
        part = grid[index * STEPS : (index + 1) * STEPS]
        objects[object_name(variable, index)] = object_bytes(part)
    for key, content in objects.items():
        path = folder / FOLDER / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@cache
def small() -> Path:
    """The folder of a field of 60 days and 256 cells: what digests of tasks are taken over."""
    folder = Path(tempfile.mkdtemp(prefix="numtok-field-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    times = hours(60 * 24)
    write(folder, times, waves(times, len(LATITUDES) * len(LONGITUDES)))
    return folder
