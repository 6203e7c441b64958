"""Fetch the data of a source: files, texts and fields.

download.py      downloads that are retried and resumed
field.py         fields, written object by object, without days that lack values
file_systems.py  file systems of addresses, retries, and the meaning of network errors
texts.py         texts, written to one file per split
"""
