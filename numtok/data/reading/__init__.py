"""JSON Lines and Parquet inputs, read as columns in units of work.

addresses.py      addresses of objects in stores and on the web
arrow.py          conversion of NumPy arrays and strings to Arrow arrays
batches.py        batches of rows, including rejected ones
checksum.py       detection of changed files
file_part.py      parts of input files, and access to their bytes
first_bytes.py    detection of format and encoding from the first bytes
json_lines.py     decoding of small JSONL files line by line, with reasons for invalid lines
jsonl.py          rows from JSONL files, plain or compressed
lines.py          positions of lines and their values; detection of lines that need a full parse
nested_values.py  members and integer pairs of JSON objects as columns
objects.py        objects in stores and on the web, read in byte ranges
parquet.py        rows from Parquet files
rows.py           rows as columns, from lines or from records
sources.py        resolution of input arguments to files
split_rule.py     assignment of rows to splits
streams.py        standard input and pipes, read once or saved to files
units.py          units of work: planned in one pass over the inputs, then read
validation_reasons.py  validation errors of msgspec, reworded for users
values.py         JSON values, read as columns
"""
