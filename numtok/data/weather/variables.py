"""Variables of ERA5: names in public stores and in files of the CDS, and physical ranges."""

#: Units, lowest and highest value that can occur on Earth, with room to spare.
_WARMTH, _WIND, _PRESSURE = ("K", 100.0, 400.0), ("m s**-1", -200.0, 200.0), ("Pa", 3e4, 1.2e5)
#: By the name in the public stores: the names in NetCDF and GRIB files, and the range.
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
_FILL = 1e15  # no variable has such values, fill values such as 9.999e20 have
_PUBLIC = {other: name for name, (others, _) in _VARIABLES.items() for other in others}


def public_name(name: str) -> str:
    """The name in the public stores; a name that is in no list stays as it is.

    >>> public_name("t2m"), public_name("2t"), public_name("2m_temperature"), public_name("z")
    ('2m_temperature', '2m_temperature', '2m_temperature', 'z')
    """
    return _PUBLIC.get(name, name)


def physical_range(variable: str, units: str) -> tuple[float, float]:
    """Return the lowest and the highest value that a variable can have, by its public name.

    In other units than those of ERA5, and for other variables, only fill values are outside.

    >>> physical_range("2m_temperature", "K"), physical_range("2m_temperature", "degC")
    ((100.0, 400.0), (-1000000000000000.0, 1000000000000000.0))
    """
    _, (known, low, high) = _VARIABLES.get(variable, ((), (None, -_FILL, _FILL)))
    return (low, high) if known in (None, units) else (-_FILL, _FILL)
