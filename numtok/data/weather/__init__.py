"""Weather data on grids: stored fields, and the public stores and files that they are read from.

axes.py         selection of time steps, latitudes and longitudes by value
field.py        a weather field: a variable on a grid at many times, stored as zarr
gridded.py      a variable in an opened data set as a field, read in blocks of days
objects.py      objects of a zarr store, requested with retries
places.py       opening of zarr stores, NetCDF and GRIB files, and zips
"""
