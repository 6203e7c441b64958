"""Weather data on grids: stored fields, and the public stores and files that contain the data.

axes.py         selection of time steps, latitudes and longitudes by value
field.py        weather fields: a variable on a grid at many times, stored as zarr
gridded.py      reading of a variable from an opened data set, in blocks of days
objects.py      access to the objects of a zarr store, with retries
places.py       opening of zarr stores, NetCDF and GRIB files, and zips
"""
