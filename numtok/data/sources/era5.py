"""era5: hourly weather of the reanalysis ERA5, cut out of public stores or of a file of the CDS."""

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
    """A variable of ERA5 (Hersbach et al. 2020) over an area and a period.

    from_
        ``arco``: ARCO-ERA5, hourly at 0.25 degrees; ``weatherbench2`` and ``weatherbench2-64x32``:
        WeatherBench 2, every six hours at 1.5 and 5.6 degrees; any other zarr store of ERA5 with
        such axes, at gs://, https:// or a path; a file of the CDS, NetCDF of the old or the new
        converter or GRIB, also in a zip.
    variable
        By its name in the public stores; ``t2m`` and ``2t`` are 2m_temperature.
    area
        N,W,S,E in degrees; over Greenwich 58,-10,50,2 or 58,350,50,2.
    period
        Days, UTC, both included: 2019-03-01..2019-03-31.
    every
        Of these hours of the day alone: 6h is 0, 6, 12 and 18.
    missing
        What happens to a day that has steps or values missing: ``refuse`` is an error, ``drop``
        leaves the day out.

    A public store has one object for the whole globe and an hour (ARCO-ERA5), so few hours of
    many places are cheap, and one place over years is not. Where gcsfs is not installed, the
    named stores are read over https, where Google serves the same objects. Whatever the place,
    the field is said to be ERA5, with its licence and attribution: no other data is meant.

    >>> dict(Era5("arco", area="58,350,50,2", period="2019-03-01").key)["area"]
    '58,-10,50,2'

    Raises UsageError for options that are none of these, and for a public store without area or
    period, which would be petabytes.
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
        place = _canonical(self.from_)
        if "://" not in place:
            return
        if place.partition("://")[0] not in _SCHEMES:
            raise UsageError(
                f"--from {self.from_}: this cannot be read; allowed are gs://, https://, http://, "
                f"a path, or one of {', '.join(_PLACES)}"
            )
        for option, value in (("--area N,W,S,E", self.area), ("--period", self.period)):
            if value is None:
                raise UsageError(
                    f"fetch era5 from {self.from_} needs {option}, because all of it would be too "
                    "much; such as --area 58,-10,50,2 --period 2019-03-01..2019-03-31"
                )

    @property
    def name(self) -> str:
        return f"era5-{public_name(self.variable)}".lower()

    @property
    def key(self) -> Mapping[str, str | None]:
        """A store elsewhere is known by its address: its bytes are not known before all of them
        are brought. ``missing`` is no part of it: both settings make the same field, or none."""
        area, period, every = self._window()
        place = _canonical(self.from_)
        return {
            "place": place if "://" in place else None,
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
        place = _canonical(self.from_)
        if "://" in place:
            return {}
        path = Path(place)
        if not path.exists():
            raise UsageError(
                f"--from {self.from_}: there is no such file or folder; give a path, a URL, or one "
                f"of {', '.join(_PLACES)}"
            )
        if path.is_dir():
            with self._gridded(Quota()) as gridded:
                return {place: gridded.files(path)}
        return {place: [path]}

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
        with opened(_reachable(self.from_), window.variable, quota) as place:
            yield gridded(place, window)

    def _window(self) -> tuple[Area | None, Period | None, int | None]:
        return (
            None if self.area is None else Area.parse(self.area),
            None if self.period is None else Period.parse(self.period),
            None if self.every is None else hours(self.every),
        )


def _canonical(place: str) -> str:
    """One name for one place: objects of Google's are the same by either protocol.

    >>> _canonical("https://storage.googleapis.com/weatherbench2/x.zarr/")
    'gs://weatherbench2/x.zarr'
    """
    place = _PLACES.get(place, place)
    if place.startswith(_GOOGLE):
        place = place.replace(_GOOGLE, "gs://", 1)
    return place.rstrip("/") if "://" in place else place


def _reachable(place: str) -> str:
    """A place that was named without an address, by the protocol that can be read here."""
    if place not in _PLACES:
        return place.rstrip("/") if "://" in place else place
    try:
        import gcsfs  # noqa: F401
    except ImportError:
        return _PLACES[place].replace("gs://", _GOOGLE, 1)
    return _PLACES[place]
