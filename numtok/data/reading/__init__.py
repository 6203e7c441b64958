"""Read rows of JSON Lines and Parquet as columns: from the inputs of a command to units of work.

addresses.py      addresses of objects in stores and on the web
arrow.py          NumPy arrays and strings as Arrow columns
batches.py        batches of rows, including rejected ones
checksum.py       detection of files that changed
file_part.py      some rows of one file, as they were when planned
first_bytes.py    detection of format and encoding from the first bytes
json_lines.py     lines of one small file, decoded by a type or rejected with a reason
jsonl.py          rows of JSONL, plain or compressed
lines.py          positions of lines and their values, and lines that need a full parse
nested_values.py  members and pairs of JSON objects as columns
objects.py        objects in stores and on the web, read in ranges
parquet.py        rows of Parquet
rows.py           rows as columns, from lines or from records
sources.py        resolution of a command's inputs to files
split_rule.py     assignment of rows to splits
streams.py        standard input and pipes, read once or saved to files
units.py          units of work, planned in one pass, then read
values.py         values of JSON, read as columns
"""
