"""Small field artifacts, for tests of tasks that read one."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.data.tasks._contract import (
    ATTRIBUTION,
    LATITUDES,
    LONGITUDES,
    hours,
    small_field,
    waves,
    write_field,
)
from numtok.store.artifact import FIELD, Artifact
from numtok.store.draft import Draft
from numtok.store.store import Store

__all__ = [
    "ATTRIBUTION",
    "LATITUDES",
    "LONGITUDES",
    "hours",
    "make",
    "numbered",
    "small_field",
    "waves",
]


def numbered(times: NDArray[np.datetime64], cells: int) -> NDArray[np.float32]:
    """Return distinct values [times, cells], so that each identifies its time and cell."""
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
    """Write an artifact of kind ``field`` to the store at ``root``: values [times, cells]."""
    pytest.importorskip("xarray", reason="fields need xarray and zarr")
    pytest.importorskip("zarr", reason="fields need xarray and zarr")
    settings = {"name": name, "first": str(times[0]), "times": len(times)}
    how = SimpleNamespace(force=True, restart=False)
    with Store(root).draft(FIELD, name, settings, [], ["numtok", "fetch"], how) as draft:
        assert isinstance(draft, Draft)
        write_field(draft.path, times, values, latitudes, longitudes, variable, units)
        return draft.publish({"times": len(times)}, {})
