"""What a source has, brought here: files, texts and fields.

download.py      files from the web, gone on with where they broke off
field.py         a field, object by object, and which of its days are left out
file_systems.py  the file system of an address, how often a network is tried, what errors mean
texts.py         texts as they are read, a file a split
"""
