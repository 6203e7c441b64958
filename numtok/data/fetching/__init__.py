"""Downloads of public data: files, texts and weather fields.

download.py      downloads that are retried and resumed
field.py         weather fields, written object by object; incomplete days are dropped
file_systems.py  file systems for addresses, with retries and readable network errors
texts.py         texts, written to one file per split
"""
