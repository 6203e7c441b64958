"""Weather on grids: fields, and what public stores of them look like.

axes.py         which steps, rows and columns of a grid are meant, by value
field.py        one field of weather: a variable on a grid at many times, as zarr
gridded.py      a variable of an opened data set as a field, read in blocks of days
objects.py      objects of a zarr store, brought one at a time, tried again
places.py       what a place holds, opened: zarr, NetCDF, GRIB or a zip
"""
