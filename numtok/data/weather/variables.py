"""What a variable of ERA5 is called: one name in public stores, others in files of the CDS."""

# Name in the public stores: those in NetCDF and GRIB files.
_OTHERS = {
    "2m_temperature": ("t2m", "2t"),
    "2m_dewpoint_temperature": ("d2m", "2d"),
    "10m_u_component_of_wind": ("u10", "10u"),
    "10m_v_component_of_wind": ("v10", "10v"),
    "100m_u_component_of_wind": ("u100", "100u"),
    "100m_v_component_of_wind": ("v100", "100v"),
    "mean_sea_level_pressure": ("msl",),
    "sea_surface_temperature": ("sst",),
    "skin_temperature": ("skt",),
    "surface_pressure": ("sp",),
    "total_cloud_cover": ("tcc",),
    "total_precipitation": ("tp",),
}
_PUBLIC = {other: name for name, others in _OTHERS.items() for other in others}


def public_name(name: str) -> str:
    """The name in the public stores; a name that is in no list stays as it is.

    >>> public_name("t2m"), public_name("2t"), public_name("2m_temperature"), public_name("z")
    ('2m_temperature', '2m_temperature', '2m_temperature', 'z')
    """
    return _PUBLIC.get(name, name)
