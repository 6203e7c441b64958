"""What a source has, brought here: files, texts and fields.

download.py      files from the web, gone on with where they broke off
field.py         a field, object by object, and which of its days are left out
file_systems.py  which file system of fsspec an address is of, and what its errors mean
patience.py      how often a network is asked, and how long it is waited for
texts.py         texts as they are read, a file a split
"""
