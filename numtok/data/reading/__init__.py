"""Rows of JSON Lines and Parquet, as columns: from the inputs of a command to units of work.

addresses.py      addresses of objects in stores and on the web, as they look
arrow.py          NumPy arrays and strings as Arrow columns
batches.py        rows as they are read, bad ones among them
checksum.py       says whether a file is still what was read first
file_part.py      some rows of one file, as they were when planned
first_bytes.py    the format and encoding that the first bytes of a file show
json_lines.py     the lines of one file, each decoded by a type, or what is wrong with one
jsonl.py          rows of JSONL, plain or packed
lines.py          lines of JSONL: where they and their values are, which need a closer look
nested_values.py  members and pairs of JSON objects where they stand, as columns
objects.py        objects of stores and of the web, found and read in ranges
parquet.py        rows of Parquet
rows.py           rows as columns, from lines or from records
sources.py        which files the inputs of a command stand for
split_rule.py     which split a row belongs to
streams.py        standard input and pipes, read once or kept as files
units.py          the units of work, planned in one pass, and read again
values.py         values of JSON where they stand, read in columns
"""
