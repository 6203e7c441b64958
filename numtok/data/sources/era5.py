"""era5: hourly weather from the ERA5 reanalysis, read from public stores or a CDS file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from numtok.data.sources.base import FieldSource
from numtok.data.weather.axes import Area, Period, hours
from numtok.data.weather.field import OpenField, public_name
from numtok.declaration import setting
from numtok.errors import UsageError, needing
from numtok.store.quota import Quota

if TYPE_CHECKING:
    from numtok.data.weather.gridded import Gridded

_GOOGLE = "https://storage.googleapis.com/"
_WEATHERBENCH = "gs://weatherbench2/datasets/era5/1959-2023_01_10-6h-"
_PLACES = {
    "arco": "gs://gcp-public-data-arco-era5/ar/full_37-1h-0p25deg-chunk-1.zarr-v3",
    "weatherbench2": f"{_WEATHERBENCH}240x121_equiangular_with_poles_conservative.zarr",
    "weatherbench2-64x32": f"{_WEATHERBENCH}64x32_equiangular_conservative.zarr",
}
_SCHEMES = ("gs", "http", "https")


@dataclass(frozen=True)
class Era5(FieldSource):
    """One variable from the ERA5 reanalysis (Hersbach et al. 2020) in an area and a period.

    from_
        ``arco``: ARCO-ERA5, hourly at 0.25 degrees. ``weatherbench2`` and ``weatherbench2-64x32``:
        WeatherBench 2, every six hours, at 1.5 and 5.6 degrees respectively. Other zarr stores of
        ERA5 on a latitude-longitude grid (at gs://, https:// or a path) also work, and so do CDS
        files (NetCDF from the old or the new converter, or GRIB, optionally in a zip).
    variable
        Name of the variable in public ERA5 stores. ``t2m`` and ``2t`` are aliases of
        2m_temperature.
    area
        N,W,S,E in degrees. An area across Greenwich can be written 58,-10,50,2 or 58,350,50,2.
    period
        First and last day in UTC: 2019-03-01..2019-03-31.
    every
        Step between the hours that are read each day; 6h reads the hours 0, 6, 12 and 18.
    missing
        Days with missing steps or values: ``refuse`` (an error) or ``drop`` (omit the day).

    ARCO-ERA5 stores one object per hour for the whole globe. Fetching a few hours at many locations
    is therefore cheap, but fetching years at one location is not. If gcsfs is not installed, the
    named stores are read over https, where Google serves the same objects. The field is always
    labeled as ERA5, with the license and attribution of ERA5, so do not pass other data.

    >>> dict(Era5("arco", area="58,350,50,2", period="2019-03-01").key)["area"]
    '58,-10,50,2'

    Raises UsageError if an option is invalid, or if area or period is missing for a public store,
    because such stores contain petabytes of data.
    """

    revision = 3
    licence = "CC-BY-4.0 (Copernicus Climate Change Service)"
    checked_at: ClassVar[str] = "era5,from_=field.nc"

    from_: str = "arco"
    variable: str = "2m_temperature"
    area: str | None = None
    period: str | None = None
    every: str | None = None
    missing: str = setting("refuse", choices=("refuse", "drop"))

    def __post_init__(self) -> None:
        self._window()
        location = _canonical(self.from_)
        if "://" not in location:
            return
        if location.partition("://")[0] not in _SCHEMES:
            raise UsageError(
                f"--from must be a gs://, https:// or http:// address, a path, or one of "
                f"{', '.join(_PLACES)} (got {self.from_})"
            )
        for option, value in (("--area N,W,S,E", self.area), ("--period", self.period)):
            if value is None:
                raise UsageError(
                    f"fetch era5 from {self.from_} needs {option}: the whole store is petabytes. "
                    "Example: --area 58,-10,50,2 --period 2019-03-01..2019-03-31"
                )

    @property
    def name(self) -> str:
        return f"era5-{public_name(self.variable)}".lower()

    @property
    def key(self) -> Mapping[str, str | None]:
        """Settings that identify the field.

        A remote store is identified by its address, because its bytes are unknown before they are
        downloaded. ``missing`` is not part of the key, because its two values never result in
        different fields: if days are missing, ``refuse`` results in no field.
        """
        area, period, every = self._window()
        location = _canonical(self.from_)
        return {
            "place": location if "://" in location else None,
            "variable": public_name(self.variable),
            "area": None if area is None else str(area),
            "period": None if period is None else str(period),
            "every": None if every is None else f"{every}h",
        }

    @property
    def drops(self) -> bool:
        return self.missing == "drop"

    def attribution(self, years: str) -> str:
        return (
            f"Contains modified Copernicus Climate Change Service information {years}. Neither the "
            "European Commission nor ECMWF is responsible for any use that may be made of the "
            "Copernicus information or data it contains. Hersbach, H., et al. (2020): The ERA5 "
            "global reanalysis. Q. J. R. Meteorol. Soc. 146, 1999-2049, doi:10.1002/qj.3803."
        )

    def files(self) -> Mapping[str, Sequence[Path]]:
        location = _canonical(self.from_)
        if "://" in location:
            return {}
        path = Path(location)
        if not path.exists():
            raise UsageError(
                f"--from {self.from_}: file or folder not found. Pass a path, a URL, or one of "
                f"{', '.join(_PLACES)}"
            )
        if path.is_dir():
            with self._gridded(Quota()) as gridded:
                return {location: gridded.files(path)}
        return {location: [path]}

    @contextmanager
    def open(self, quota: Quota) -> Iterator[OpenField]:
        with self._gridded(quota) as gridded:
            yield gridded.field()

    @contextmanager
    def _gridded(self, quota: Quota) -> Iterator["Gridded"]:
        with needing("fetch era5", "xarray and zarr"):
            import xarray  # noqa: F401
            import zarr  # noqa: F401
        from numtok.data.weather.gridded import Window, gridded
        from numtok.data.weather.places import opened

        window = Window(public_name(self.variable), *self._window())
        with opened(_reachable(self.from_), window.variable, quota) as dataset:
            yield gridded(dataset, window)

    def _window(self) -> tuple[Area | None, Period | None, int | None]:
        return (
            None if self.area is None else Area.parse(self.area),
            None if self.period is None else Period.parse(self.period),
            None if self.every is None else hours(self.every),
        )


def _canonical(location: str) -> str:
    """Return one name per location: Google's objects are the same over gs:// and https://.

    >>> _canonical("https://storage.googleapis.com/weatherbench2/x.zarr/")
    'gs://weatherbench2/x.zarr'
    """
    location = _PLACES.get(location, location)
    if location.startswith(_GOOGLE):
        location = location.replace(_GOOGLE, "gs://", 1)
    return location.rstrip("/") if "://" in location else location


def _reachable(location: str) -> str:
    """Return the address of a named store, over https if gcsfs is not installed."""
    if location not in _PLACES:
        return location.rstrip("/") if "://" in location else location
    try:
        import gcsfs  # noqa: F401
    except ImportError:
        return _PLACES[location].replace("gs://", _GOOGLE, 1)
    return _PLACES[location]
