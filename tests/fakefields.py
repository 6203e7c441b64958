"""Small fields as artifacts, for the tests of tasks that read one."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.data.weather import small_field
from numtok.data.weather.small_field import ATTRIBUTION, LATITUDES, LONGITUDES, hours, small, waves
from numtok.store.artifact import FIELD, Artifact
from numtok.store.draft import Draft
from numtok.store.store import Store

__all__ = ["ATTRIBUTION", "LATITUDES", "LONGITUDES", "hours", "make", "numbered", "small", "waves"]


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
    settings = {"name": name, "first": str(times[0]), "times": len(times)}
    how = SimpleNamespace(force=True, restart=False)
    with Store(root).draft(FIELD, name, settings, [], ["numtok", "fetch"], how) as draft:
        assert isinstance(draft, Draft)
        small_field.write(draft.path, times, values, latitudes, longitudes, variable, units)
        return draft.publish({"times": len(times)}, {})
